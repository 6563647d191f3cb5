"""The operations of the control socket on a broker, and the state that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.broker.faults.faulty_disk import FaultyDisk
from holdfast.broker.faults.link_faults import Links
from holdfast.core import Follower, Leader

if TYPE_CHECKING:
    from holdfast.broker.node import Broker
    from holdfast.broker.replication.partition import Partition


class ControlledBroker:
    """A broker that the control socket can operate."""

    def __init__(self, broker: Broker, disks: Sequence[FaultyDisk]) -> None:
        self._broker = broker
        self.disks = disks

    @property
    def links(self) -> Links:
        return self._broker.links

    def status(self) -> dict[str, Any]:
        broker = self._broker
        return {
            "id": broker.id,
            "state": broker.state(),
            "epoch": broker.incarnation.broker_epoch,
            "host": broker.endpoint.host,
            "port": broker.endpoint.port,
            "metrics": None if broker.metrics is None else broker.metrics.address,
            "cluster": broker.metadata.cluster_id,
            "controller": broker.metadata.controller,
            "is_controller": broker.controller is not None,
            "store": broker.store.state.value,
            "partitions": {
                str(name): _partition_status(partition)
                for name, partition in broker.replicas.partitions.items()
            },
        }

    def disconnect_store(self) -> None:
        self._broker.store.disconnect()

    def reconnect_store(self) -> None:
        self._broker.store.reconnect()

    async def expire_session(self) -> None:
        await self._broker.store.expire()

    def flush(self) -> None:
        self._broker.replicas.flush_all()

    def flush_trace(self) -> None:
        if self._broker.trace is not None:
            self._broker.trace.flush()

    def begin_stop(self) -> None:
        self._broker.begin_stop()


def _partition_status(partition: Partition) -> dict[str, Any]:
    replica, state = partition.replica, partition.state
    role = replica.role
    numbers = replica.log
    name = "leader" if isinstance(role, Leader) else "follower"
    return {
        "role": name if isinstance(role, Leader | Follower) else "offline",
        "leader": partition.leader,
        "leader_epoch": replica.leader_epoch,
        "partition_epoch": -1 if state is None else state.partition_epoch,
        "isr": [] if state is None else list(state.isr),
        "log_start": numbers.log_start_offset,
        "leo": numbers.log_end_offset,
        "hw": numbers.high_watermark,
        "flushed_offset": partition.log.recovery_point,
        "copy_problem": partition.copy_problem,
    }
