"""Reports failed logs to the controller through the store, where no message can be lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.store_nodes import ReplicaFailures, encode_replica_failures
from holdfast.coordination import ConflictError, Create, Store, StoreError
from holdfast.core import BrokerIncarnation
from holdfast.model import BrokerId, TopicPartition

RETRY_S: Final = 0.1
NOTIFICATIONS: Final = "/log_dir_event_notification"


class FailureReports:
    """Writes one node for all logs that failed since the last report."""

    def __init__(
        self,
        broker: BrokerId,
        incarnation: BrokerIncarnation,
        loop: asyncio.AbstractEventLoop,
        store: Store,
        log: LogLines,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._broker = broker
        self._incarnation = incarnation
        self._loop = loop
        self._store = store
        self._log = log
        self._is_stopping = is_stopping
        self._failed: list[TopicPartition] = []
        """Failed logs that are not yet reported."""
        self._task: asyncio.Task[None] | None = None
        self._count = 0

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """These logs have failed."""
        self._failed += partitions

    def report_soon(self) -> None:
        """Report the logs that have failed, if there are any."""
        if self._failed and self._task is None and not self._is_stopping():
            self._task = self._loop.create_task(self._report())

    async def _report(self) -> None:
        failed = self._failed
        try:
            while failed and not self._is_stopping():
                reported = tuple(failed)
                epoch = self._incarnation.broker_epoch
                data = encode_replica_failures(ReplicaFailures(self._broker, epoch, reported))
                path = f"{NOTIFICATIONS}/log_dir_event_{self._broker}_{epoch}_{self._count}"
                self._count += 1
                try:
                    await self._store.ensure_path(NOTIFICATIONS)
                    await self._store.commit(Create(path, data))
                except ConflictError:
                    continue
                except StoreError as error:
                    self._log.warning("failed logs not reported", error=str(error))
                    await asyncio.sleep(RETRY_S)
                    continue
                del failed[: len(reported)]
        finally:
            self._task = None
