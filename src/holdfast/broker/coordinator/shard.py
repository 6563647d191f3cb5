"""One partition of an internal topic that we lead, in one leader epoch: its state and its writes.

A shard first reads the log, then waits until all of it is committed, and only then answers. A
coordinator that answered earlier could show a state that the next coordinator does not have.

The shard handles results of appends at the end of the tick. They arrive while the partition carries
out its own effects, and the next writes of the coordinator must not come in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from holdfast.broker.clock import Clock
from holdfast.broker.coordinator.log_loader import Decode, LogLoader
from holdfast.broker.coordinator.log_writes import Encode, Write
from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.auto_topic_creation import AutoCreation
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.replicas import Replicas
from holdfast.core.coordinator import MAY_STILL_COMMIT, CoordinatorState, Persist, Phase
from holdfast.model import ErrorCode
from holdfast.storage import LogOfflineError

State = TypeVar("State", bound=CoordinatorState)


@dataclass(frozen=True, slots=True)
class CoordinatorParts:
    """The parts of a broker that every coordinator uses."""

    clock: Clock
    log: LogLines
    replicas: Replicas
    metadata: Metadata
    auto_creation: AutoCreation
    is_stopping: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class CoordinatorKind(Generic[State]):
    """What distinguishes the coordinator of one internal topic from others."""

    topic: str
    name: str
    """What its records are about, for log lines."""
    new_state: Callable[[], State]
    encode: Encode
    decode: Decode
    carry_out: Callable[[Any], None]
    """Carries out every effect of the state but `Persist`."""
    write_timeout_ms: Callable[[], int]
    """How long the in-sync replicas have to replicate a write."""


class CoordinatorShard(Generic[State]):
    """The state of one partition, and its writes to the log."""

    def __init__(
        self,
        parts: CoordinatorParts,
        kind: CoordinatorKind[State],
        partition: Partition,
        deadline_changed: Callable[[CoordinatorShard[State]], None],
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.replica.leader_epoch
        self.state = kind.new_state()
        end_offset = partition.replica.log.log_end_offset
        self.loader = LogLoader(
            partition.log, end_offset, kind.name, kind.decode, self.state.replay
        )
        self._parts = parts
        self._kind = kind
        self._deadline_changed = deadline_changed
        self._is_read = False
        self._verdicts: list[tuple[Write, ErrorCode]] = []
        self._late: deque[Write] = deque()
        """Written, answered as failed, not committed; in the order of the log."""
        self._date_ms = parts.clock.wall_ms() - parts.clock.now_ms()

    # Time: dates, because they are stored; but a shard's dates do not jump with the clock.

    def now_ms(self) -> int:
        """The date, without any change of the clock since this shard began."""
        return self._parts.clock.now_ms() + self._date_ms

    def due_in_ms(self) -> int | None:
        """The time until the next call of `tick` is due."""
        deadline_ms = self.state.next_deadline_ms()
        return None if deadline_ms is None else deadline_ms - self.now_ms()

    def tick(self) -> None:
        """Time has passed."""
        self.run(self.state.tick(self.now_ms()))

    # Start and end.

    def load(self) -> bool:
        """Load one slice of the log; whether there is more."""
        try:
            if self.loader.step():
                return True
        except LogOfflineError as error:
            self.partition.failed(error)
            return False
        self._is_read = True
        self._maybe_begin()
        return False

    def _maybe_begin(self) -> None:
        is_waiting = self._is_read and self.state.phase is Phase.LOADING
        if is_waiting and self._high_watermark >= self.loader.end_offset:
            self.run(self.state.loaded(self.now_ms()))
            self.loader.report(self._parts.log)

    def end(self) -> None:
        """We no longer lead the partition in this epoch."""
        self.run(self.state.unload())
        self._late.clear()

    # Effects.

    def run(self, effects: Sequence[object]) -> None:
        """Carry out the effects of the state, in order."""
        for effect in effects:
            if isinstance(effect, Persist):
                self._persist(effect)
            else:
                self._kind.carry_out(effect)
        self._deadline_changed(self)

    # Writing.

    def _persist(self, effect: Persist[Any]) -> None:
        write = Write(effect.token, self._settled)
        replica = self.partition.replica
        if not replica.presumes_leadership or replica.leader_epoch != self.leader_epoch:
            self._settled(write, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        clock = self._parts.clock
        deadline_ms = clock.now_ms() + self._kind.write_timeout_ms()
        records = map(self._kind.encode, effect.records)
        write.append(self.partition, records, deadline_ms, clock.wall_ms())

    def _settled(self, write: Write, error: ErrorCode) -> None:
        if not self._verdicts:
            self._parts.clock.loop.call_soon(self._take_verdicts)
        self._verdicts.append((write, error))

    def _take_verdicts(self) -> None:
        verdicts, self._verdicts = self._verdicts, []
        if self.state.phase is Phase.GONE:
            return
        for write, error in verdicts:
            if error in MAY_STILL_COMMIT:
                self._late.append(write)
            self.run(self.state.persisted(write.token, error, self.now_ms()))
        self._take_late()

    def _take_late(self) -> None:
        late, committed = self._late, self._high_watermark
        while late and late[0].end_offset <= committed:
            write = late.popleft()
            self.run(self.state.persisted(write.token, ErrorCode.NONE, self.now_ms()))

    @property
    def _high_watermark(self) -> int:
        return self.partition.replica.log.high_watermark

    def high_watermark_moved(self) -> None:
        """More of the log is committed."""
        if self._late or self.state.phase is Phase.LOADING:
            self._parts.clock.loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._maybe_begin()
        self._take_late()
