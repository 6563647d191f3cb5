"""Reports failed logs to the controller through the store, where no message can be lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.broker.metadata.store_nodes import ReplicaFailures, encode_replica_failures
from holdfast.coordination import ConflictError, Create, StoreError

if TYPE_CHECKING:
    from holdfast.broker.node import Broker

RETRY_S: Final = 0.1
NOTIFICATIONS: Final = "/log_dir_event_notification"


class FailureReports:
    """Writes one node for all logs that failed since the last report."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._task: asyncio.Task[None] | None = None
        self._count = 0

    def report_soon(self) -> None:
        """A log has failed."""
        if self._task is None and not self._broker.is_stopping:
            self._task = self._broker.loop.create_task(self._report())

    async def _report(self) -> None:
        broker = self._broker
        failures = broker.replicas.failures
        try:
            while failures and not broker.is_stopping:
                reported = tuple(failures)
                epoch = broker.incarnation.broker_epoch
                data = encode_replica_failures(ReplicaFailures(broker.id, epoch, reported))
                path = f"{NOTIFICATIONS}/log_dir_event_{broker.id}_{epoch}_{self._count}"
                self._count += 1
                try:
                    await broker.store.ensure_path(NOTIFICATIONS)
                    await broker.store.commit(Create(path, data))
                except ConflictError:
                    continue
                except StoreError as error:
                    broker.log.warning("failed logs not reported", error=str(error))
                    await asyncio.sleep(RETRY_S)
                    continue
                del failures[: len(reported)]
        finally:
            self._task = None
