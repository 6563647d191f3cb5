"""The broker as its partitions use it, and the subscribers to changes of a partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.broker.clock import Clock
from holdfast.broker.log_lines import LogLines
from holdfast.model import BrokerId
from holdfast.storage import LogOfflineError

if TYPE_CHECKING:
    from holdfast.broker.replication.append_cache import AppendCacheMemory
    from holdfast.broker.replication.partition import Partition
    from holdfast.broker.replication.topic_traffic import Traffic
    from holdfast.broker.trace_events import BrokerTrace

Subscriber = Callable[["Partition"], None]


class Subscribers:
    """The functions to call when something has changed in a partition, by topic."""

    def __init__(self, log: LogLines) -> None:
        self._log = log
        self._by_topic: dict[str, tuple[Subscriber, ...]] = {}

    def subscribe(self, topic: str, subscriber: Subscriber) -> None:
        """Call this function, too, with every partition of the topic that has changed."""
        self._by_topic[topic] = (*self._by_topic.get(topic, ()), subscriber)

    def notify(self, partition: Partition) -> None:
        """Call all of them. A subscriber's bug affects neither the others nor the partition."""
        for subscriber in self._by_topic.get(partition.name.topic, ()):
            try:
                subscriber(partition)
            except Exception as error:  # noqa: BLE001
                self._log.bug("a subscriber failed", error, partition=str(partition.name))


class PartitionHost(Protocol):
    """Does for a partition what many partitions share: clocks, the end of a tick, flushes."""

    clock: Clock
    log: LogLines
    trace: BrokerTrace | None
    tail_memory: AppendCacheMemory
    traffic: Traffic
    high_watermark_moves: Subscribers
    role_changes: Subscribers

    def queue_write(self, partition: Partition) -> None:
        """Write this partition's batches when the tick is over."""

    def await_tick(self, partition: Partition) -> None:
        """Check this partition in the next tick."""

    def flush(self, partition: Partition, *, has_records: bool = True) -> None:
        """Flush this log soon; without records, only its leader-epoch checkpoint."""

    def consider(self, partition: Partition, follower: BrokerId) -> None:
        """A follower may have caught up: check again when this tick is over."""

    def propose(self, partition: Partition) -> None:
        """Send the ISR that the replica proposes to the controller."""

    def log_failed(self, partition: Partition, error: LogOfflineError) -> None:
        """The log is offline: report it to the controller."""
