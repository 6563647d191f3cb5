"""Logs of topics that were deleted or moved away while no command could reach this broker.

A log is stray only if the coordination store says so (`core.is_removed`): the store has the topic's
name with another id or not at all, or does not list us as a replica. A log is kept if the store
cannot be read. While the broker runs, a partition that was moved away may return at any moment, so
only logs of deleted topics are removed: a topic id never returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.metadata.store_facts import read_partitions
from holdfast.core import is_removed

if TYPE_CHECKING:
    from holdfast.broker.node import Broker


async def delete_stray_logs(broker: Broker, *, is_running: bool) -> None:
    """Delete stray logs where the disk permits; StoreError if the store cannot be read."""
    replicas = broker.replicas
    own = {name: replicas.topic_id(name) for name in tuple(broker.directory.partitions)}
    facts = await read_partitions(broker.store, list(own))
    for name, identity in own.items():
        fact = facts.get(name)
        if fact is not None and is_running:
            fact = fact._replace(state=None)
        # A new topic of the same name may exist by now.
        is_same = replicas.has(name) and replicas.topic_id(name) == identity
        if is_same and is_removed(broker.id, identity, fact):
            broker.log.warning("a stray log is deleted", partition=str(name))
            try:
                replicas.drop(name)
            except OSError as error:
                broker.log.error(
                    "a stray log is not deleted", partition=str(name), error=str(error)
                )
