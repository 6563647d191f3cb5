"""What the coordination store says of the controller, of partitions and of brokers.

Read in one go for many partitions: a fail-over concerns thousands, and one round trip for each
would take longer than everything else. What cannot be read is no fact: nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.broker.controller.nodes import (
    DamagedNodeError,
    decode_broker,
    decode_controller,
    decode_controller_epoch,
    decode_state,
    decode_topic,
)
from holdfast.broker.metadata import KnownBroker
from holdfast.broker.settings.listeners import Endpoint
from holdfast.coordination import Node, Store, paths
from holdfast.core import NO_CONTROLLER, ControllerFact, PartitionFact
from holdfast.model import BrokerId, PartitionState, TopicPartition

AT_ONCE: Final = 500
"""Partitions in one read: their nodes are decoded before the event loop turns again."""

UNREADABLE: Final = b""
"""In place of a topic's id, where its node is damaged."""

Facts = dict[TopicPartition, PartitionFact]
"""Without those that cannot be read."""


async def read_controller(store: Store) -> ControllerFact:
    """The newest controller epoch and who holds the controller's node; StoreError.

    An election writes both in one transaction. A node with another change number belongs to
    another epoch, so then nobody is known to hold this one.
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
    """What the store says of these now; StoreError."""
    facts: Facts = {}
    for first in range(0, len(names), AT_ONCE):
        some = names[first : first + AT_ONCE]
        topics = list(dict.fromkeys(name.topic for name in some))
        wanted = [paths.topic(topic) for topic in topics]
        wanted += [paths.partition_state(*name) for name in some]
        nodes = await store.get_newest(wanted)
        found = dict(zip(wanted, nodes, strict=True))
        ids = {topic: _topic_id(topic, found[paths.topic(topic)]) for topic in topics}
        for name in some:
            topic_id = ids[name.topic]
            if topic_id != UNREADABLE:
                facts[name] = PartitionFact(topic_id, _state(name, found))
    return facts


def _topic_id(topic: str, node: Node | None) -> bytes | None:
    try:
        return None if node is None else decode_topic(paths.topic(topic), node.data).topic_id
    except DamagedNodeError:
        return UNREADABLE


def _state(name: TopicPartition, found: dict[str, Node | None]) -> PartitionState | None:
    path = paths.partition_state(*name)
    node = found[path]
    try:
        return None if node is None else decode_state(path, node.data)
    except DamagedNodeError:
        return None


async def read_brokers(store: Store, brokers: Sequence[BrokerId]) -> dict[BrokerId, KnownBroker]:
    """Those of these brokers that are registered, and where they listen; StoreError."""
    wanted = [paths.broker_id(broker) for broker in brokers]
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
