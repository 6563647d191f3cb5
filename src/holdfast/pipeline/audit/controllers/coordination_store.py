"""What Holdfast's controllers decided, from the coordination store: ISR, assignments, topic ids.

The store has the present state of a partition and the unclean elections in it; it keeps no record
of clean ones. The embedded store is a file beside the brokers' directories and is found without an
option; ZooKeeper must be named.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from holdfast.broker.metadata.store_nodes import (
    DamagedNodeError,
    decode_state,
    decode_topic,
    decode_unclean,
)
from holdfast.coordination import StoreError, ZooKeeperStore, paths
from holdfast.pipeline.audit.controllers.kraft_metadata import (
    Election,
    Metadata,
    Partition,
    TopicIncarnation,
)
from holdfast.pipeline.errors import PipelineError

EMBEDDED: Final = "store.sqlite"
PATIENCE_MS: Final = 10_000
Nodes = Mapping[str, bytes]


def find_store(logs: Iterable[Path]) -> str | None:
    """The embedded store of the cluster with these directories: DATA/brokers/1/log, …"""
    homes = {root.resolve().parent.parent.parent for root in logs}
    files = [home / EMBEDDED for home in homes]
    return str(files[0]) if len(files) == 1 and files[0].is_file() else None


def read_store(store: str, topics: Collection[str]) -> Metadata:
    """`store`: the embedded store's file, or ZooKeeper at `host:port,host:port/folder`.

    PipelineError if it cannot be read.
    """
    try:
        if Path(store).is_file():
            nodes = _embedded(store, topics)
        else:
            nodes = asyncio.run(_zookeeper(store, topics))
        return _metadata(nodes, topics, store)
    except (StoreError, sqlite3.Error, DamagedNodeError, OSError) as error:
        raise PipelineError(
            f"the coordination store {store} cannot be read: {error}",
            hint="name the file store.sqlite, or ZooKeeper as host:port/folder",
        ) from None


def _embedded(file: str, topics: Collection[str]) -> Nodes:
    """Reads the file directly: no session, no writes."""
    uri = f"{Path(file).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=PATIENCE_MS / 1000)) as connection:
        rows = connection.execute("SELECT path, data FROM nodes WHERE path LIKE ?", ("/brokers/%",))
        found = {path: bytes(data) for path, data in rows}
    wanted = tuple(paths.topic(name) for name in topics)
    return {path: data for path, data in found.items() if _is_of(path, wanted)}


def _is_of(path: str, wanted: Sequence[str]) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in wanted)


async def _zookeeper(hosts: str, topics: Collection[str]) -> Nodes:
    store = ZooKeeperStore(hosts, connect_timeout_ms=PATIENCE_MS)
    try:
        await store.open()
        names = [paths.topic(name) for name in topics]
        nodes = dict(zip(names, await store.get_many(names), strict=True))
        states = [
            paths.partition_state(name, number)
            for name in topics
            if (node := nodes[paths.topic(name)]) is not None
            for number in decode_topic(paths.topic(name), node.data).replicas
        ]
        nodes |= dict(zip(states, await store.get_many(states), strict=True))
    finally:
        await store.close()
    return {path: node.data for path, node in nodes.items() if node is not None}


def _metadata(nodes: Nodes, topics: Collection[str], store: str) -> Metadata:
    metadata = Metadata(topics, is_whole=False)
    for name in topics:
        path = paths.topic(name)
        if path not in nodes:
            continue
        topic = decode_topic(path, nodes[path])
        topic_id = topic.topic_id
        metadata.incarnations[name].append(
            TopicIncarnation(topic_id, None, None, f"{store}: {path}")
        )
        for number in topic.replicas:
            place = paths.partition_state(name, number)
            if place in nodes:
                known = _partition(topic_id, place, nodes[place], store)
                metadata.partitions[topic_id, number] = known
    return metadata


def _partition(topic_id: bytes, path: str, data: bytes, store: str) -> Partition:
    state = decode_state(path, data)
    return Partition(
        topic_id,
        state.replicas,
        state.isr,
        state.eligible_leaders,
        state.leader_epoch,
        [
            Election(one.leader, one.leader_epoch, one.wall_ms, one.isr, True, f"{store}: {path}")
            for one in decode_unclean(path, data)
        ],
        state.adding,
    )
