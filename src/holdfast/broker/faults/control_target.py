"""The operations of the control socket on a broker, and the state that it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.broker.faults.faulty_disk import FaultyDisk
from holdfast.broker.faults.link_faults import Links
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.replication.replicas import Replicas
from holdfast.broker.settings.listeners import Endpoint
from holdfast.broker.trace_events import BrokerTrace
from holdfast.coordination import Store
from holdfast.core import BrokerIncarnation, Follower, Leader
from holdfast.model import BrokerId

if TYPE_CHECKING:
    from holdfast.broker.replication.partition import Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledBroker:
    """The parts of a broker that the control socket can show or operate."""

    id: BrokerId
    state: Callable[[], str]
    endpoint: Callable[[], Endpoint]
    metrics: Callable[[], str | None]
    """The address of /metrics, if it is served."""
    is_controller: Callable[[], bool]
    begin_stop: Callable[[], None]
    incarnation: BrokerIncarnation
    metadata: Metadata
    store: Store
    replicas: Replicas
    links: Links
    disks: Sequence[FaultyDisk]
    trace: BrokerTrace | None

    def status(self) -> dict[str, Any]:
        endpoint = self.endpoint()
        return {
            "id": self.id,
            "state": self.state(),
            "epoch": self.incarnation.broker_epoch,
            "host": endpoint.host,
            "port": endpoint.port,
            "metrics": self.metrics(),
            "cluster": self.metadata.cluster_id,
            "controller": self.metadata.controller,
            "is_controller": self.is_controller(),
            "store": self.store.state.value,
            "partitions": {
                str(name): _partition_status(partition)
                for name, partition in self.replicas.partitions.items()
            },
        }

    def disconnect_store(self) -> None:
        self.store.disconnect()

    def reconnect_store(self) -> None:
        self.store.reconnect()

    async def expire_session(self) -> None:
        await self.store.expire()

    def flush(self) -> None:
        self.replicas.flush_all()

    def flush_trace(self) -> None:
        if self.trace is not None:
            self.trace.flush()


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
