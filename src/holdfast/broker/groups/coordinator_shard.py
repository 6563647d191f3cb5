"""One offsets partition that we lead, in one leader epoch: its groups and their writes.

A shard first reads the log, then waits until all of it is committed, and only then answers. A
coordinator that answered earlier could show an offset that the next coordinator does not have.

The shard handles results of appends at the end of the tick. They arrive while the partition carries
out its own effects, and the next writes of groups must not come in between.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from holdfast.broker.groups.offsets_loader import Loader
from holdfast.broker.groups.offsets_writer import Write
from holdfast.broker.replication.partition import Partition
from holdfast.core.groups import Effects, Groups, GroupSettings, Persist, Phase
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.coordinator_records import subscribed_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.broker.groups.coordinator import GroupCoordinator

IN_THE_LOG: Final = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
"""Errors after which the records may still be committed."""


class CoordinatorShard:
    """The groups of one offsets partition, and their writes to its log."""

    def __init__(
        self, coordinator: GroupCoordinator, partition: Partition, settings: GroupSettings
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.replica.leader_epoch
        self.groups = Groups(settings, subscribed_topics)
        self.loader = Loader(partition, self.groups)
        self._coordinator = coordinator
        self._is_read = False
        self._verdicts: list[tuple[Write, ErrorCode]] = []
        self._late: deque[Write] = deque()
        """Written, answered as failed, not committed; in the order of the log."""
        clock = coordinator.clock
        self._date_ms = clock.wall_ms() - clock.now_ms()

    # Time: dates, because they are stored; but a shard's dates do not jump with the clock.

    def now_ms(self) -> int:
        """The date, without any change of the clock since this shard began."""
        return self._coordinator.clock.now_ms() + self._date_ms

    def due_in_ms(self) -> int | None:
        """The time until the next call of `tick` is due."""
        deadline_ms = self.groups.next_deadline_ms()
        return None if deadline_ms is None else deadline_ms - self.now_ms()

    def tick(self) -> None:
        """Time has passed."""
        self.run(self.groups.tick(self.now_ms()))

    # Start and end.

    def was_loaded(self) -> None:
        """The log has been loaded."""
        self._is_read = True
        self._maybe_begin()

    def _maybe_begin(self) -> None:
        is_waiting = self._is_read and self.groups.phase is Phase.LOADING
        if is_waiting and self._high_watermark >= self.loader.end_offset:
            self.run(self.groups.loaded(self.now_ms()))
            self._coordinator.began(self)

    def end(self) -> None:
        """We no longer lead the partition in this epoch."""
        self.run(self.groups.unload())
        self._late.clear()

    # Effects.

    def run(self, effects: Effects) -> None:
        """Carry out the effects of the core, in order."""
        for effect in effects:
            if isinstance(effect, Persist):
                self._persist(effect)
            else:
                self._coordinator.answer(effect)
        self._coordinator.arm(self)

    def forget_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        """Their topic was deleted."""
        self.run(self.groups.partitions_deleted(partitions, self.now_ms()))

    # Writing.

    def _persist(self, effect: Persist) -> None:
        write = Write(effect.token, self._settled)
        replica = self.partition.replica
        if not replica.presumes_leadership or replica.leader_epoch != self.leader_epoch:
            self._settled(write, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        clock = self._coordinator.clock
        deadline_ms = clock.now_ms() + self._coordinator.commit_timeout_ms
        write.append(self.partition, effect.records, deadline_ms, clock.wall_ms())

    def _settled(self, write: Write, error: ErrorCode) -> None:
        if not self._verdicts:
            self._coordinator.loop.call_soon(self._take_verdicts)
        self._verdicts.append((write, error))

    def _take_verdicts(self) -> None:
        verdicts, self._verdicts = self._verdicts, []
        for write, error in verdicts:
            if error in IN_THE_LOG:
                self._late.append(write)
            self.run(self.groups.persisted(write.token, error, self.now_ms()))
        self._take_late()

    def _take_late(self) -> None:
        late, committed = self._late, self._high_watermark
        while late and late[0].end_offset <= committed:
            write = late.popleft()
            self.run(self.groups.persisted(write.token, ErrorCode.NONE, self.now_ms()))

    @property
    def _high_watermark(self) -> int:
        return self.partition.replica.log.high_watermark

    def high_watermark_moved(self) -> None:
        """More of the log is committed."""
        if self._late or self.groups.phase is Phase.LOADING:
            self._coordinator.loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._maybe_begin()
        self._take_late()
