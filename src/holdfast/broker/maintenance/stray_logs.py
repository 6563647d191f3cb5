"""Logs of topics that were deleted or moved away while no command could reach this broker.

A log is stray only if the coordination store says so (`core.is_removed`): the store has the topic's
name with another id or not at all, or does not list us as a replica. A log is kept if the store
cannot be read. While the broker runs, a partition that was moved away may return at any moment, so
only logs of deleted topics are removed: a topic id never returns.
"""

from __future__ import annotations

import asyncio

from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.store_facts import read_partitions
from holdfast.broker.replication.replicas import Replicas
from holdfast.coordination import Store, StoreError
from holdfast.core import is_removed


class StrayLogs:
    """Finds stray logs and deletes them."""

    def __init__(self, store: Store, replicas: Replicas, log: LogLines) -> None:
        self._store = store
        self._replicas = replicas
        self._log = log
        self._task: asyncio.Task[None] | None = None

    def delete_soon(self) -> None:
        """Delete the stray logs of a broker that runs and was away."""
        self._task = asyncio.get_running_loop().create_task(self._delete_while_running())

    async def _delete_while_running(self) -> None:
        try:
            await self.delete(is_running=True)
        except (StoreError, OSError) as error:
            self._log.warning("stray logs not checked", error=error)

    async def delete(self, *, is_running: bool) -> None:
        """Delete stray logs where the disk permits; StoreError if the store cannot be read."""
        replicas = self._replicas
        own = {name: replicas.topic_id(name) for name in tuple(replicas.directory.partitions)}
        facts = await read_partitions(self._store, list(own))
        for name, identity in own.items():
            fact = facts.get(name)
            if fact is not None and is_running:
                fact = fact._replace(state=None)
            # A new topic of the same name may exist by now.
            is_same = replicas.has(name) and replicas.topic_id(name) == identity
            if is_same and is_removed(replicas.broker, identity, fact):
                self._log.warning("a stray log is deleted", partition=str(name))
                try:
                    replicas.drop(name)
                except OSError as error:
                    self._log.error(
                        "a stray log is not deleted", partition=str(name), error=str(error)
                    )
