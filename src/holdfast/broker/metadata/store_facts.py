"""Reads the controller, partitions and brokers in the coordination store.

One read covers many partitions: a fail-over concerns thousands, and one round trip for each would
take longer than everything else. No decision uses a node that cannot be read. Names come from
commands, which anybody can send, so invented names cost no read each.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from holdfast.broker.metadata.metadata_cache import KnownBroker
from holdfast.broker.metadata.store_nodes import (
    DamagedNodeError,
    TopicNode,
    decode_broker,
    decode_controller,
    decode_controller_epoch,
    decode_state,
    decode_topic,
)
from holdfast.broker.settings.listeners import Endpoint
from holdfast.coordination import Node, Store, paths
from holdfast.core import NO_CONTROLLER, ControllerFact, PartitionFact
from holdfast.model import BrokerId, PartitionState, TopicPartition

AT_ONCE: Final = 500
"""Partitions in one read: their nodes are decoded in one turn of the event loop. This many are
read without checking first whether they exist."""

UNREADABLE: Final = b""
"""Replaces the topic id if the topic's node is damaged."""

Facts = dict[TopicPartition, PartitionFact]
"""Without partitions that cannot be read."""


async def read_controller(store: Store) -> ControllerFact:
    """The newest controller epoch and the holder of the controller's node; StoreError.

    An election writes both in one transaction. A node with another change number belongs to
    another epoch, so the holder of this epoch is unknown then.
    """
    wanted = [paths.CONTROLLER, paths.CONTROLLER_EPOCH]
    holder, epoch = await store.get_newest(wanted)
    if epoch is None:
        return NO_CONTROLLER
    try:
        number = decode_controller_epoch(paths.CONTROLLER_EPOCH, epoch.data)
        if holder is None or holder.created != epoch.modified:
            return ControllerFact(number, None)
        return ControllerFact(number, decode_controller(paths.CONTROLLER, holder.data))
    except DamagedNodeError:
        return NO_CONTROLLER


async def read_partitions(store: Store, names: Sequence[TopicPartition]) -> Facts:
    """The states of these partitions in the store; StoreError.

    The names may be invented. Beyond a few reads, only existing nodes are read: first the list of
    topics, then their assignments, then the states of their partitions.
    """
    facts: Facts = {}
    if len(names) > AT_ONCE:
        names = await _assigned(store, names, facts)
    for first in range(0, len(names), AT_ONCE):
        await _read_some(store, names[first : first + AT_ONCE], facts)
    return facts


async def _assigned(
    store: Store, names: Sequence[TopicPartition], facts: Facts
) -> list[TopicPartition]:
    """The partitions that exist; the others are recorded as missing."""
    topics = list(dict.fromkeys(name.topic for name in names))
    nodes: dict[str, TopicNode | None] = dict.fromkeys(topics)
    present = await _present(store, paths.TOPICS, topics)
    damaged: dict[str, None] = {}
    for first in range(0, len(present), AT_ONCE):
        some = present[first : first + AT_ONCE]
        found = await store.get_newest([paths.topic(topic) for topic in some])
        for topic, node in zip(some, found, strict=True):
            try:
                nodes[topic] = None if node is None else decode_topic(paths.topic(topic), node.data)
            except DamagedNodeError:
                damaged[topic] = None
    assigned: list[TopicPartition] = []
    for name in names:
        known = nodes[name.topic]
        if known is not None and name.partition in known.replicas:
            assigned.append(name)
        elif name.topic not in damaged:
            facts[name] = PartitionFact(None if known is None else known.topic_id, None)
    return assigned


async def _present(store: Store, parent: str, names: Sequence[str]) -> Sequence[str]:
    """The children that may exist: if there are many, those in the parent's list."""
    if len(names) <= AT_ONCE:
        return names
    await store.get_newest(())  # The list is not older than this read.
    children = dict.fromkeys(await store.children(parent))
    return [name for name in names if name in children]


async def _read_some(store: Store, names: Sequence[TopicPartition], facts: Facts) -> None:
    """States first, then topics: a state older than its topic belongs to an earlier topic."""
    topics = list(dict.fromkeys(name.topic for name in names))
    wanted = [paths.partition_state(*name) for name in names]
    wanted += [paths.topic(topic) for topic in topics]
    nodes = await store.get_newest(wanted)
    found = dict(zip(topics, nodes[len(names) :], strict=True))
    ids = {topic: _topic_id(topic, node) for topic, node in found.items()}
    for name, state in zip(names, nodes, strict=False):
        topic_id, topic = ids[name.topic], found[name.topic]
        is_its = state is not None and topic is not None and state.created >= topic.created
        with suppress(DamagedNodeError):
            if topic_id != UNREADABLE:
                facts[name] = PartitionFact(topic_id, _state(name, state) if is_its else None)


def _topic_id(topic: str, node: Node | None) -> bytes | None:
    try:
        return None if node is None else decode_topic(paths.topic(topic), node.data).topic_id
    except DamagedNodeError:
        return UNREADABLE


def _state(name: TopicPartition, node: Node | None) -> PartitionState | None:
    return None if node is None else decode_state(paths.partition_state(*name), node.data)


async def read_brokers(store: Store, brokers: Sequence[BrokerId]) -> dict[BrokerId, KnownBroker]:
    """The registered ones of these brokers, with their addresses; StoreError."""
    names = await _present(store, paths.BROKER_IDS, [str(one) for one in brokers])
    wanted = [f"{paths.BROKER_IDS}/{name}" for name in names]
    found: dict[BrokerId, KnownBroker] = {}
    for path, node in zip(wanted, await store.get_newest(wanted), strict=True):
        try:
            if node is not None:
                known = decode_broker(path, node.data)
                endpoint = Endpoint(known.host, known.port)
                found[known.broker] = KnownBroker(known.broker, endpoint, known.rack)
        except DamagedNodeError:
            continue
    return found
