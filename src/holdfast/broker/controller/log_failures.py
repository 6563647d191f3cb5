"""Reads the reports of failed logs that brokers write to /log_dir_event_notification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.controller.conditions import RepeatedTask
from holdfast.broker.metadata.store_nodes import DamagedNodeError, decode_replica_failures
from holdfast.broker.replication.log_failures import NOTIFICATIONS
from holdfast.coordination import Delete, StoreError, Watch
from holdfast.model import NO_BROKER_EPOCH, BrokerEpoch, TopicPartition

if TYPE_CHECKING:
    from holdfast.broker.controller.service import ControllerService


class FailureReader:
    """Takes each report out of the store once.

    If this broker loses the controllership between reading a report and acting on it, nothing is
    lost: the broker of the failed log answers the next LeaderAndIsr with KAFKA_STORAGE_ERROR.
    """

    def __init__(self, service: ControllerService) -> None:
        self._service = service
        self._watch: Watch | None = None
        self._read = RepeatedTask(service.host.loop, self._read_all, service.host.log)

    def start(self) -> None:
        """Read the present reports and all later ones."""
        self._watch = self._service.host.store.watch(NOTIFICATIONS, lambda _: self._read.soon())
        self._read.soon()

    def close(self) -> None:
        """Stop reading."""
        self._read.close()
        if self._watch is not None:
            self._watch.cancel()

    async def _read_all(self) -> None:
        store = self._service.host.store
        try:
            names = await store.children(NOTIFICATIONS)
            wanted = [f"{NOTIFICATIONS}/{name}" for name in names]
            nodes = await store.get_many(wanted)
        except StoreError as error:
            self._service.host.log.warning("failed logs not read", error=str(error))
            return
        for path, node in zip(wanted, nodes, strict=True):
            if node is not None and not self._service.is_over:
                self._take(path, node.data)
                self._service.writer.add([Delete(path)], lambda _: None)

    def _take(self, path: str, data: bytes) -> None:
        service = self._service
        try:
            failures = decode_replica_failures(path, data)
        except DamagedNodeError as error:
            service.host.log.error("a report of failed logs is dropped", error=str(error))
            return
        known = service.core.brokers.get(failures.broker)
        epoch = failures.broker_epoch
        if epoch == NO_BROKER_EPOCH and known is not None:
            epoch = BrokerEpoch(known.broker_epoch)
        for topic, number in failures.partitions:
            service.replica_failed(TopicPartition(topic, number), failures.broker, epoch)
