"""An offsets partition and its broker, as far as groups need them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.metadata_cache import KnownPartition, KnownTopic
from holdfast.broker.metadata.topic_names import OFFSETS_TOPIC
from holdfast.broker.replication.partition_host import Subscribers
from holdfast.model import NO_OFFSET, BrokerId, ErrorCode, TopicPartition
from holdfast.protocol.records import RecordBatchHeader, Rules

NAME = TopicPartition(OFFSETS_TOPIC, 0)


class FakeLoop:
    """Time that a test moves, and the callbacks for the end of a tick."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.soon: list[tuple[Any, tuple[Any, ...]]] = []
        self.timers: list[tuple[float, Any]] = []

    def time(self) -> float:
        return self.now_s

    def call_soon(self, work: Any, *args: Any) -> None:
        self.soon.append((work, args))

    def call_at(self, when: float, work: Any) -> SimpleNamespace:
        timer = (when, work)
        self.timers.append(timer)
        return SimpleNamespace(cancel=lambda: self.timers.remove(timer))

    def run(self) -> None:
        """Run everything that is due now."""
        while self.soon or any(when <= self.now_s for when, _ in self.timers):
            soon, self.soon = self.soon, []
            for timer in [one for one in self.timers if one[0] <= self.now_s]:
                self.timers.remove(timer)
                timer[1]()
            for work, args in soon:
                work(*args)


class FakePartition:
    """A log that accepts everything and commits when the test says so."""

    def __init__(self, log_end_offset: int = 0) -> None:
        self.name = NAME
        self.rules = Rules()
        self.refusal = ErrorCode.NONE
        self.waiting: list[tuple[int, Any]] = []
        self.log = SimpleNamespace(
            settings=SimpleNamespace(segment_bytes=1 << 20),
            log_start_offset=log_end_offset,
            log_end_offset=log_end_offset,
            offline=None,
        )
        self.replica = SimpleNamespace(
            presumes_leadership=True,
            has_failed=False,
            leader_epoch=1,
            log=SimpleNamespace(
                high_watermark=0, log_end_offset=log_end_offset, next_offset=log_end_offset
            ),
        )

    def append_checked(
        self, data: memoryview, header: RecordBatchHeader, acks: int, waiter: Any, deadline_ms: int
    ) -> None:
        if self.refusal:
            waiter.finished(self.refusal, NO_OFFSET)
            return
        numbers = self.replica.log
        numbers.next_offset += header.record_count
        self.waiting.append((numbers.next_offset, waiter))

    def expire(self) -> None:
        """The writes time out."""
        waiting, self.waiting = self.waiting, []
        for end, waiter in waiting:
            waiter.finished(ErrorCode.REQUEST_TIMED_OUT, end - 1)

    def commit(self) -> None:
        """The followers have everything."""
        self.replica.log.high_watermark = self.replica.log.next_offset
        waiting, self.waiting = self.waiting, []
        for end, waiter in waiting:
            waiter.finished(ErrorCode.NONE, end - 1)


class FakeBroker:
    """One broker that leads the only offsets partition."""

    def __init__(self, partition: FakePartition) -> None:
        self.loop = FakeLoop()
        self.clock = SimpleNamespace(
            now_ms=lambda: int(self.loop.now_s * 1000), wall_ms=lambda: 1_000_000_000_000
        )
        self.is_stopping = False
        self.settings = SimpleNamespace(
            group_min_session_timeout_ms=1_000,
            group_max_session_timeout_ms=60_000,
            group_initial_rebalance_delay_ms=0,
            group_max_size=10,
            offset_metadata_max_bytes=100,
            offsets_commit_timeout_ms=5_000,
            offsets_retention_minutes=10_000,
            offsets_retention_check_interval_ms=600_000,
        )
        self.lines: list[str] = []
        self.log = SimpleNamespace(
            info=lambda event, **_: self.lines.append(event),
            warning=lambda event, **_: self.lines.append(event),
        )
        topic = KnownTopic(OFFSETS_TOPIC, b"\1" * 16)
        topic.partitions[0] = KnownPartition(BrokerId(1), 1, (1,), (1,), (), 1)
        self.metadata = SimpleNamespace(topics={OFFSETS_TOPIC: topic})
        self.replicas = SimpleNamespace(
            partitions={NAME: partition},
            role_changes=Subscribers(LogLines(1)),
            high_watermark_moves=Subscribers(LogLines(1)),
        )
        self.partition = partition
        self.groups = GroupCoordinator(self)  # type: ignore[arg-type]

    def role_changed(self) -> None:
        """The controller has sent a state of the partition."""
        self.replicas.role_changes.notify(self.partition)
        self.loop.run()

    def commit_moved(self) -> None:
        """The partition commits, and notifies the coordinator."""
        self.partition.commit()
        self.replicas.high_watermark_moves.notify(self.partition)
        self.loop.run()
