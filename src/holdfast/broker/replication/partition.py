"""One partition on this broker: drives a `Replica` of the core and a `Log` of storage.

It makes no decisions. Every event becomes a call to the core, and the returned effects are carried
out in order. Two rules of its own:

1. Batches that arrive in one tick are written with one write, at the end of the tick. The role does
   not change between assigning a batch its offset and writing it: a role change writes first.
2. A disk that fails takes this replica offline, and the broker reports that to the controller.
   After that nothing is answered with success.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, cast

from holdfast.broker.replication.append_batches import ProduceWaiter, append_all, copy_all
from holdfast.broker.replication.append_cache import AppendCache
from holdfast.broker.replication.partition_host import PartitionHost
from holdfast.core import (
    Acknowledge,
    ConsiderExpand,
    Effects,
    Flush,
    HighWatermarkMoved,
    IsrApplied,
    Leader,
    ProposeIsr,
    Refuse,
    Replica,
    TruncateTo,
    WakeFetch,
    WriteEpoch,
    state_age,
)
from holdfast.model import (
    NO_BROKER,
    NO_OFFSET,
    BrokerId,
    ErrorCode,
    Offset,
    PartitionState,
    TopicPartition,
)
from holdfast.protocol import Payload
from holdfast.protocol.records import (
    MalformedBatchError,
    RecordBatchHeader,
    Rules,
    prepare_produced,
    stamp,
    stamped,
)
from holdfast.storage import Log, LogClosedError, LogOfflineError, read

if TYPE_CHECKING:
    from holdfast.broker.settings import TopicSettings
    from holdfast.core import FetchSession, Reader


class Partition:
    """A replica and its log."""

    __slots__ = (
        "_unacknowledged",
        "_unwritten",
        "_unwritten_headers",
        "append_time_ms",
        "copy_problem",
        "host",
        "leader_high_watermark",
        "log",
        "name",
        "replica",
        "rules",
        "sessions",
        "settings",
        "state",
        "tail",
        "topic_id",
        "traffic",
    )

    state: PartitionState | None
    """The newest state from the controller."""
    sessions: dict[FetchSession[Partition], Reader[Partition]]
    """Fetch sessions that read this partition, to notify when one of its offsets moves."""
    rules: Rules
    """What producers may send, by the topic's settings."""

    def __init__(
        self,
        host: PartitionHost,
        name: TopicPartition,
        topic_id: bytes,
        replica: Replica,
        log: Log,
        settings: TopicSettings,
    ) -> None:
        self.host = host
        self.name = name
        self.topic_id = topic_id
        self.replica = replica
        self.log = log
        self.settings = settings
        self.rules = settings.records
        self.state = None
        self.sessions = {}
        self.tail = AppendCache(host.tail_memory)
        self.traffic = host.traffic.join(name.topic)
        self.append_time_ms = -1
        self.leader_high_watermark = 0
        """The last one that a leader sent, for the lag."""
        self.copy_problem = ""
        """Why the last copy from our leader failed; empty if it did not."""
        self._unwritten: list[memoryview] = []
        self._unwritten_headers: list[RecordBatchHeader] = []
        self._unacknowledged: list[tuple[ProduceWaiter, Offset]] = []
        """Waiters with acks=0 of this tick: they are notified only if the write fails."""

    # Producers.

    def append(
        self, data: memoryview, acks: int, waiter: ProduceWaiter, deadline_ms: int, wall_ms: int
    ) -> None:
        """Append a producer's batch, or give the waiter an error; raises MalformedBatchError."""
        ready, header = prepare_produced(data, wall_ms, self.rules)
        if header.size > self.log.settings.segment_bytes:
            reason = f"{header.size} bytes, a segment has {self.log.settings.segment_bytes}"
            raise MalformedBatchError(0, reason, ErrorCode.RECORD_LIST_TOO_LARGE)
        self.append_time_ms = wall_ms
        self.append_checked(memoryview(ready), header, acks, waiter, deadline_ms)

    def append_checked(
        self,
        data: memoryview,
        header: RecordBatchHeader,
        acks: int,
        waiter: ProduceWaiter,
        deadline_ms: int,
    ) -> None:
        """Append a validated batch; it is written at the end of this tick."""
        answer = self.replica.append_as_leader(header.to_model(), acks, waiter, deadline_ms)
        if answer.error:
            waiter.finished(answer.error, NO_OFFSET)
            return
        if answer.duplicate:
            self.run(answer.effects)
            if not acks:
                waiter.finished(ErrorCode.NONE, answer.base_offset)
            return
        stamp(data, 0, answer.base_offset, answer.leader_epoch)
        if not self._unwritten:
            self.host.queue_write(self)
        self._unwritten.append(data)
        self._unwritten_headers.append(stamped(header, answer.base_offset, answer.leader_epoch))
        if not acks:
            self._unacknowledged.append((waiter, answer.base_offset))

    def write(self) -> None:
        """Write the batches of this tick."""
        batches, headers = self._unwritten, self._unwritten_headers
        if not batches:
            return
        self._unwritten, self._unwritten_headers = [], []
        try:
            clock = self.host.clock
            append_all(self.log, batches, headers, clock.wall_ms())
            self.traffic.produced(headers)
            effects = self.replica.appended(clock.now_ms())
            self.tail.trim(self.replica.log.high_watermark)
            for header, data in zip(headers, batches, strict=True):
                self.tail.add(header[0], header.end_offset, data)
            if self.host.trace is not None:
                self.host.trace.appended(self, headers, as_leader=True)
            self.run(effects)
        except LogOfflineError as error:
            self.failed(error)
        except Exception as error:  # noqa: BLE001  # only this partition is lost by it
            self._disagrees(error)
        else:
            self._finish_unacknowledged(ErrorCode.NONE)

    def _finish_unacknowledged(self, error: ErrorCode) -> None:
        waiting, self._unacknowledged = self._unacknowledged, []
        for waiter, base_offset in waiting:
            waiter.finished(error, NO_OFFSET if error else base_offset)

    # Following.

    def copy(
        self, records: memoryview, headers: list[RecordBatchHeader], leader_high_watermark: int
    ) -> bool:
        """Write batches from our leader; False if the log failed. AppendRefusedError if they cannot
        be appended: then nothing has changed.
        """
        clock = self.host.clock
        high_watermark = Offset(leader_high_watermark)
        try:
            models = copy_all(self.log, records, headers, clock.wall_ms())
            self.traffic.replication_bytes_in += len(records)
            effects = self.replica.append_as_follower(models, high_watermark, clock.now_ms())
        except LogOfflineError as error:
            self.failed(error)
            return False
        except Exception as error:
            if self.log.log_end_offset == self.replica.log.log_end_offset:
                raise  # Nothing was appended: the fetcher tries again.
            self._disagrees(error)
            return False
        if self.host.trace is not None:
            self.host.trace.appended(self, headers, as_leader=False)
        self.leader_high_watermark = leader_high_watermark
        self.run(effects)
        if self.replica.is_awaited:
            self.host.await_tick(self)
        return True

    def advance_start_to(self, offset: int) -> None:
        """Records below this offset were deleted."""
        start = Offset(min(offset, self.replica.log.high_watermark))
        if start > self.log.log_start_offset:
            self.log.advance_start_to(start)
            self.replica.log.advance_start_to(start)
            for session, reader in self.sessions.items():
                session.moved(reader)

    # Roles.

    def apply(self, state: PartitionState) -> None:
        """The controller has sent a newer state, which the store has confirmed."""
        self.write()
        self.tail.clear()
        replica = self.replica
        before = replica.role
        self._know(state)
        if state.leader == replica.broker:
            effects = replica.become_leader(state, self.host.clock.now_ms())
        else:
            effects = replica.become_follower(state)
        changed = replica.role is not before and not replica.has_failed
        if changed and self.host.trace is not None:
            self.host.trace.role_changed(self, state)
        self.run(effects)

    def isr_answered(self, error: ErrorCode, state: PartitionState | None) -> None:
        """The controller has answered our proposal."""
        if error and self.host.trace is not None:
            self.host.trace.isr_refused(self, error)
        if state is not None:
            self._know(state)
        self.run(self.replica.isr_answer(error, state))
        self.host.await_tick(self)

    def _know(self, state: PartitionState) -> None:
        """Keep the newest: a repeated command may carry an older state."""
        if self.state is None or state_age(state) >= state_age(self.state):
            self.state = state

    def failed(self, error: LogOfflineError) -> None:
        """The disk has failed: take the replica offline and report it to the controller."""
        if self.replica.has_failed:
            return
        self.host.log_failed(self, error)
        self.tail.clear()
        self._unwritten, self._unwritten_headers = [], []
        self.run(self.replica.log_failed(str(error)))
        self._finish_unacknowledged(ErrorCode.KAFKA_STORAGE_ERROR)
        self.host.role_changes.notify(self)

    def read_failed(self, error: LogOfflineError) -> None:
        """The same for a read, unless the broker stops and has closed the log itself."""
        if not isinstance(error, LogClosedError):
            self.failed(error)

    def _disagrees(self, error: Exception) -> None:
        """A bug: the log and the core have different end offsets. The replica goes offline,
        because only a restart rebuilds the core's state from the log.
        """
        self.host.log.bug("a replica is taken offline", error, partition=str(self.name))
        self.failed(self.log.fail(OSError(errno.EIO, f"{type(error).__name__}: {error}")))

    def close(self) -> None:
        """This broker no longer hosts the partition: all waiters get an error."""
        self.write()
        self.tail.clear()
        replica = self.replica
        if not replica.has_failed:
            if isinstance(replica.role, Leader):
                self.run(replica.role.renounce(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            self.state = PartitionState((), (), NO_BROKER, replica.leader_epoch)
        for session in tuple(self.sessions):
            session.removed(self)

    def use(self, settings: TopicSettings) -> None:
        """The topic's settings have changed."""
        self.settings = settings
        self.log.settings = settings.log
        self.rules = settings.records
        self.run(self.replica.settings_changed(settings.core))

    # Effects.

    def run(self, effects: Effects) -> None:  # noqa: C901  # one flat case per effect
        """Carry out the effects of the core, in order."""
        for effect in effects:
            if isinstance(effect, Acknowledge):
                cast("ProduceWaiter", effect.waiter).finished(ErrorCode.NONE, effect.base_offset)
            elif isinstance(effect, WakeFetch):
                cast("FetchSession[Partition]", effect.waiter).grew(self, self.host.clock.now_ms())
            elif isinstance(effect, HighWatermarkMoved):
                self._high_watermark_moved(effect)
            elif isinstance(effect, Refuse):
                cast("ProduceWaiter", effect.waiter).finished(effect.error, effect.base_offset)
            elif isinstance(effect, ConsiderExpand):
                self.host.consider(self, effect.follower)
            elif isinstance(effect, ProposeIsr):
                self._propose(effect)
            elif isinstance(effect, IsrApplied):
                self._isr_applied(effect)
            elif isinstance(effect, Flush):
                self.host.flush(self)
            elif isinstance(effect, TruncateTo):
                self._truncate(effect)
            elif isinstance(effect, WriteEpoch):
                self.host.flush(self, has_records=False)

    def _high_watermark_moved(self, moved: HighWatermarkMoved) -> None:
        for session, reader in self.sessions.items():
            session.moved(reader)
        self.host.high_watermark_moves.notify(self)
        if self.host.trace is not None:
            self.host.trace.high_watermark(self, moved)

    def _propose(self, proposal: ProposeIsr) -> None:
        if self.host.trace is not None:
            self.host.trace.isr_proposed(self, proposal)
        self.host.propose(self)

    def _isr_applied(self, applied: IsrApplied) -> None:
        for session, reader in self.sessions.items():
            session.isr_changed(reader, applied.isr)
        if self.host.trace is not None:
            self.host.trace.isr_applied(self, applied)

    def _truncate(self, truncation: TruncateTo) -> None:
        wall_ms = self.host.clock.wall_ms()
        numbers = self.replica.log
        try:
            if numbers.must_restart(self.log.log_start_offset, truncation.end_offset):
                self.log.restart_at(truncation.end_offset, wall_ms)
            else:
                end = self.log.truncate_to(truncation.end_offset, wall_ms)
                if end < truncation.end_offset:
                    numbers.truncate_to(end)
        except LogOfflineError as error:
            self.failed(error)
            return
        if self.host.trace is not None:
            self.host.trace.truncated(self, truncation)

    def flushed(self, end_offset: Offset) -> None:
        """Everything below this offset is on the disk."""
        if self.host.trace is not None:
            self.host.trace.flushed(self, end_offset)
        self.run(self.replica.flushed(end_offset, self.host.clock.now_ms()))

    # Queries.

    @property
    def leader(self) -> BrokerId:
        """The leader in the newest state."""
        return self.state.leader if self.state is not None else NO_BROKER

    def read(self, offset: int, max_bytes: int, upto: int) -> Payload:
        """Whole batches from `offset`, below `upto`: from memory if they are new enough.

        Raises LogOfflineError or OffsetOutOfRangeError.
        """
        if offset >= self.log.log_start_offset:
            recent = self.tail.read(offset, max_bytes, upto)
            if recent is not None:
                return recent
        return read(self.log, offset, max_bytes, upto)

    @property
    def presumes_leadership(self) -> bool:
        """Whether this replica acts as leader."""
        return self.replica.presumes_leadership
