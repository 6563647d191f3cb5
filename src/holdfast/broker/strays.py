"""Logs of topics that were deleted, or moved elsewhere, while nobody could tell us.

A log is a stray only if the agreed store says so: it knows the topic's name with another id or not
at all, or does not count us among the replicas. What cannot be read is kept. While we run, roles
may be given to us at any moment, so then only topics that are gone for good count: an id never
comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.broker.controller.nodes import DamagedNodeError, decode_state, decode_topic
from holdfast.coordination import Store, paths
from holdfast.model import BrokerId, TopicPartition

if TYPE_CHECKING:
    from holdfast.broker.node import Broker


async def drop_strays(broker: Broker, *, is_running: bool) -> None:
    """Delete them. StoreError if the store cannot be asked: then none is."""
    directory = broker.directory
    known = {name: directory.topic_id(name) for name in tuple(directory.partitions)}
    own = {name: found.bytes for name, found in known.items() if found is not None}
    gone = await _of_gone_topics(broker.store, own)
    if not is_running:
        gone |= await _moved_away(broker.store, own, broker.id)
    for name, identity in own.items():
        now = directory.topic_id(name) if name in directory.partitions else None
        # By now a new topic of the same name may have taken its place.
        if name in gone and now is not None and now.bytes == identity:
            broker.log.warning("a log of no topic of ours is deleted", partition=str(name))
            broker.replicas.drop(name)


async def _of_gone_topics(
    store: Store, own: Mapping[TopicPartition, bytes]
) -> dict[TopicPartition, None]:
    topics = list(dict.fromkeys(name.topic for name in own))
    nodes = await store.get_many([paths.topic(topic) for topic in topics])
    ids: dict[str, bytes | None] = {}
    unreadable: dict[str, None] = {}
    for topic, node in zip(topics, nodes, strict=True):
        try:
            path = paths.topic(topic)
            ids[topic] = decode_topic(path, node.data).topic_id if node is not None else None
        except DamagedNodeError:
            unreadable[topic] = None
    return {
        name: None
        for name, identity in own.items()
        if name.topic not in unreadable and ids[name.topic] != identity
    }


async def _moved_away(
    store: Store, own: Mapping[TopicPartition, bytes], broker: BrokerId
) -> dict[TopicPartition, None]:
    wanted = [paths.partition_state(*name) for name in own]
    moved: dict[TopicPartition, None] = {}
    for name, path, node in zip(own, wanted, await store.get_many(wanted), strict=True):
        try:
            if node is None or broker not in decode_state(path, node.data).replicas:
                moved[name] = None
        except DamagedNodeError:
            continue
    return moved
