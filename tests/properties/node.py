"""One broker of the small cluster: a log in memory, and the process that may run on it."""

from __future__ import annotations

from holdfast.core import (
    BrokerIncarnation,
    CleanShutdown,
    EpochCache,
    LogState,
    Replica,
    Rules,
    Settings,
)
from holdfast.model import (
    NO_BROKER_EPOCH,
    NO_PRODUCER,
    NO_SEQUENCE,
    BatchHeader,
    BrokerId,
    Offset,
    ProducerId,
)
from tests.properties.wire import Record

PRODUCER = ProducerId(7)


class Node:
    """A broker: its disk, and the process that may be running on it."""

    def __init__(self, broker: BrokerId, settings: Settings, rules: Rules) -> None:
        self.id = broker
        self.settings = settings
        self.rules = rules
        self.log: list[Record] = []
        self.alive = False
        self.incarnation = 0
        self.shutdown: CleanShutdown | None = None
        self.broker_epoch = NO_BROKER_EPOCH
        self.lost_in = NO_BROKER_EPOCH
        """The broker epoch in which it lost records; it may not hold older ones any more."""
        self.start(Offset(0))

    def start(self, high_watermark: Offset) -> None:
        """A new process over what the disk holds."""
        self.alive = True
        self.incarnation += 1
        self.broker_incarnation = BrokerIncarnation(
            self.incarnation, self.shutdown, self.rules.guards
        )
        self.shutdown = None
        log = LogState(
            self.settings,
            log_end_offset=Offset(len(self.log)),
            high_watermark=high_watermark,
            epochs=EpochCache.rebuilt_from(self.headers()),
        )
        self.replica = Replica(self.id, log, self.rules)
        log.producers.rebuild(self.headers())

    def headers(self, start: int = 0) -> list[BatchHeader]:
        """The log as batches of one record each."""
        return [
            header_of(record, Offset(offset))
            for offset, record in enumerate(self.log[start:], start)
        ]


def header_of(record: Record, offset: Offset) -> BatchHeader:
    ours = record.value >= 0
    return BatchHeader(
        1,
        record.leader_epoch,
        offset,
        PRODUCER if ours else NO_PRODUCER,
        0 if ours else -1,
        record.value if ours else NO_SEQUENCE,
    )
