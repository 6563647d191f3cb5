"""The groups of one partition of `__consumer_offsets`: the methods that a driver calls.

A broker coordinates the groups of every offsets partition it leads, and has one `Groups` for each.
`core/coordinator.py` lists the duties of its driver. Groups add these:

- a request: find the partition by its group id, and call the method of the same name. `waiter` is
  any handle but None. Every waiter is answered exactly once, perhaps by a later call; what is
  returned directly (heartbeat, views, fetched offsets) needs none.
- draw `new_member_id` for every JoinGroup: the instance id, or else the client id, then "-" and a
  random UUID. Member ids must never repeat, and must fit a string of the wire: shorten names.
- a deleted topic: `partitions_deleted`.

A group keeps the bytes of requests while the member is in it, so they must be copies and not views
of a network buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.coordinator import Phase
from holdfast.core.groups import join_group, leave_group, rebalance, sync_group
from holdfast.core.groups.deadlines import Deadlines
from holdfast.core.groups.descriptions import FetchedOffsets, GroupView, ListedGroup, described
from holdfast.core.groups.effects import (
    AnswerCommit,
    AnswerDelete,
    AnswerLeave,
    AnswerOffsetDelete,
    AnswerSync,
    Effects,
    Record,
)
from holdfast.core.groups.group import Group, TopicsOf, fault_of
from holdfast.core.groups.group_settings import GroupSettings
from holdfast.core.groups.offsets.offset_writes import OffsetWrites
from holdfast.core.groups.pending_writes import Journal, Turn
from holdfast.core.groups.requests import NO_MEMBER, Caller, Commit, Join, Leaver, Sync
from holdfast.core.groups.write_results import settle
from holdfast.model import ErrorCode, GroupRecord, TopicPartition


class Groups:
    """All groups whose id falls to one offsets partition."""

    __slots__ = (
        "_deadlines",
        "_expiry_deadline_ms",
        "_groups",
        "_journal",
        "_topics_of",
        "_writes",
        "phase",
        "settings",
    )

    def __init__(self, settings: GroupSettings, topics_of: TopicsOf) -> None:
        self.settings = settings
        self.phase = Phase.LOADING
        self._topics_of = topics_of
        self._groups: dict[str, Group] = {}
        self._journal = Journal()
        self._writes = OffsetWrites(self._groups)
        self._deadlines = Deadlines()
        self._expiry_deadline_ms: int | None = None

    @property
    def error(self) -> ErrorCode:
        """The error for every request in this phase; NONE while ACTIVE."""
        return self.phase.value

    def group(self, group_id: str) -> Group | None:
        """A group, to read only."""
        return self._groups.get(group_id)

    def _turn(self, now_ms: int) -> Turn:
        return Turn(self._journal, self.settings, self._topics_of, now_ms)

    def _end(self, turn: Turn, group: Group | None = None) -> Effects:
        """What a call asks for; the group it was about gets its next deadline noted."""
        if group is not None:
            self._deadlines.note(group.group_id, group.next_deadline_ms())
        return tuple(turn.effects)

    def _note_session(self, caller: Caller) -> None:
        """After a heartbeat or a commit: a member whose deadline was suspended has one again."""
        group = self._groups.get(caller.group_id)
        member = group.members.get(caller.member_id) if group is not None else None
        if member is not None:
            self._deadlines.note(caller.group_id, member.session_deadline_ms)

    def _refusal(self, group_id: str) -> ErrorCode:
        """For requests of members. Only offsets may have an empty group id, as in old versions."""
        return self.error if group_id else ErrorCode.INVALID_GROUP_ID

    # Loading and unloading.

    def replay(self, record: Record) -> str | None:
        """Apply a record from the log. An invalid one changes nothing; return why."""
        assert self.phase is Phase.LOADING
        if not isinstance(record, GroupRecord):
            self._writes.store.apply(record)
            return None
        if record.metadata is None:
            self._groups.pop(record.group_id, None)
            return None
        fault = fault_of(record.metadata)
        if fault is None:
            group = Group.stored(record.group_id, record.metadata, self._topics_of)
            self._groups[record.group_id] = group
        return fault

    def loaded(self, now_ms: int) -> Effects:
        """All records have been replayed: sessions begin now; their true begin is unknown."""
        assert self.phase is Phase.LOADING
        self.phase = Phase.ACTIVE
        self._expiry_deadline_ms = now_ms + self.settings.offsets_retention_check_interval_ms
        for group_id in self._writes.store.groups():
            if group_id not in self._groups:
                self._groups[group_id] = Group(group_id, now_ms)
        turn = self._turn(now_ms)
        for group in self._groups.values():
            for member in group.members.values():
                member.seen(now_ms)
            if len(group.members) > self.settings.group_max_size:
                rebalance.prepare_rebalance(turn, group)
            self._deadlines.note(group.group_id, group.next_deadline_ms())
        return tuple(turn.effects)

    def unload(self) -> Effects:
        """Another broker leads the partition: answer every waiter with NOT_COORDINATOR."""
        turn = self._turn(0)
        for group in self._groups.values():
            for member in group.members.values():
                rebalance.dismiss(turn, member, ErrorCode.NOT_COORDINATOR)
        self._writes.abandon(turn)
        self._groups.clear()
        self._deadlines = Deadlines()
        self._expiry_deadline_ms = None
        self.phase = Phase.GONE
        return tuple(turn.effects)

    def persisted(self, token: int, error: ErrorCode, now_ms: int) -> Effects:
        """The result of a `Persist`."""
        if self.phase is Phase.GONE:
            return ()
        turn = self._turn(now_ms)
        for group in settle(turn, self._groups, self._writes, token, error):
            self._deadlines.note(group.group_id, group.next_deadline_ms())
        return tuple(turn.effects)

    # Members.

    def join(self, request: Join, waiter: object, now_ms: int) -> Effects:
        """JoinGroup."""
        turn = self._turn(now_ms)
        settings = self.settings
        error = self._refusal(request.group_id)
        shortest, longest = (
            settings.group_min_session_timeout_ms,
            settings.group_max_session_timeout_ms,
        )
        if not error and not shortest <= request.session_timeout_ms <= longest:
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        group = self._groups.get(request.group_id)
        if not error and group is None and request.member_id != NO_MEMBER:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error:
            join_group.refuse(turn, waiter, error, request.member_id)
            return self._end(turn)
        group = group or Group(request.group_id, now_ms)
        join_group.join(turn, group, request, waiter)
        if group.members or group.pending_members:
            self._groups[request.group_id] = group
        return self._end(turn, self._groups.get(request.group_id))

    def sync(self, request: Sync, waiter: object, now_ms: int) -> Effects:
        """SyncGroup. While loading, the response makes the client join again."""
        turn = self._turn(now_ms)
        error = self._refusal(request.caller.group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        group = self._groups.get(request.caller.group_id)
        if error or group is None:
            turn.add(AnswerSync(waiter, error or ErrorCode.UNKNOWN_MEMBER_ID))
            return self._end(turn)
        sync_group.sync(turn, group, request, waiter)
        return self._end(turn, group)

    def heartbeat(self, caller: Caller, now_ms: int) -> ErrorCode:
        """Heartbeat. No error while loading: sessions begin again after that."""
        error = self._refusal(caller.group_id)
        if error:
            loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return ErrorCode.NONE if loading else error
        group = self._groups.get(caller.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = sync_group.heartbeat(self._turn(now_ms), group, caller)
        self._note_session(caller)
        return error

    def leave(
        self, group_id: str, leavers: Sequence[Leaver], waiter: object, now_ms: int
    ) -> Effects:
        """LeaveGroup."""
        turn = self._turn(now_ms)
        error = self._refusal(group_id)
        group = self._groups.get(group_id)
        if error or group is None:
            turn.add(AnswerLeave(waiter, error or ErrorCode.UNKNOWN_MEMBER_ID))
            return self._end(turn)
        leave_group.leave(turn, group, tuple(leavers), waiter)
        return self._end(turn, group)

    # Offsets.

    def commit_offsets(self, request: Commit, waiter: object, now_ms: int) -> Effects:
        """OffsetCommit: answered once the log has committed the records."""
        turn = self._turn(now_ms)
        error = self.error
        if error:
            results = tuple((partition, error) for partition, _ in request.offsets)
            turn.add(AnswerCommit(waiter, results))
        else:
            self._writes.commit(turn, request, waiter)
            self._note_session(request.caller)
        return self._end(turn)

    def fetch_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition] | None = None
    ) -> FetchedOffsets:
        """OffsetFetch of these partitions, or of all. A missing group has no offsets."""
        error = self.error
        if error:
            return FetchedOffsets(error, {})
        committed = self._writes.store.of(group_id)
        if partitions is None:
            return FetchedOffsets(ErrorCode.NONE, dict(committed))
        asked = {each: committed[each] for each in partitions if each in committed}
        return FetchedOffsets(ErrorCode.NONE, asked)

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition], waiter: object, now_ms: int
    ) -> Effects:
        """OffsetDelete."""
        turn = self._turn(now_ms)
        error = self._refusal(group_id)
        if error:
            turn.add(AnswerOffsetDelete(waiter, error))
        else:
            self._writes.delete_offsets(turn, group_id, partitions, waiter)
        return self._end(turn)

    def delete_group(self, group_id: str, waiter: object, now_ms: int) -> Effects:
        """DeleteGroups, one group at a time."""
        turn = self._turn(now_ms)
        error = self.error
        if error:
            turn.add(AnswerDelete(waiter, error))
        else:
            self._writes.delete_group(turn, group_id, waiter)
        return self._end(turn)

    def partitions_deleted(self, partitions: Sequence[TopicPartition], now_ms: int) -> Effects:
        """These partitions were deleted: remove their committed offsets."""
        turn = self._turn(now_ms)
        if not self.error:
            self._writes.forget_partitions(turn, partitions)
        return self._end(turn)

    # Views. Check `error` first: a coordinator that is loading must not answer "no such group".

    def describe(self, group_id: str) -> GroupView:
        """DescribeGroups, one group at a time."""
        error = self.error
        group = self._groups.get(group_id)
        if error or group is None:
            return GroupView(error or ErrorCode.GROUP_ID_NOT_FOUND, group_id)
        return described(group)

    def list_groups(self) -> tuple[ListedGroup, ...]:
        """ListGroups."""
        return tuple(
            ListedGroup(group.group_id, group.protocol_type or "", group.state)
            for group in self._groups.values()
        )

    @property
    def offset_count(self) -> int:
        """How many offsets these groups have committed."""
        return len(self._writes.store)

    # Time.

    def next_deadline_ms(self) -> int | None:
        """When to call `tick` next; None without any deadline."""
        deadlines = (self._deadlines.next_ms(), self._expiry_deadline_ms)
        return min((each for each in deadlines if each is not None), default=None)

    def tick(self, now_ms: int) -> Effects:
        """Time has passed: expire sessions, close rebalances, remove old offsets."""
        if self.phase is not Phase.ACTIVE:
            return ()
        turn = self._turn(now_ms)
        for group_id in self._deadlines.take_due(now_ms):
            group = self._groups.get(group_id)
            if group is not None:
                self._tick_group(turn, group)
                self._deadlines.note(group_id, group.next_deadline_ms())
        if self._expiry_deadline_ms is not None and self._expiry_deadline_ms <= now_ms:
            self._expiry_deadline_ms = now_ms + self.settings.offsets_retention_check_interval_ms
            self._writes.expire(turn)
        return tuple(turn.effects)

    def _tick_group(self, turn: Turn, group: Group) -> None:
        leave_group.sessions_ended(turn, group)
        now_ms = turn.now_ms
        if group.join_deadline_ms is not None and group.join_deadline_ms <= now_ms:
            rebalance.join_deadline_came(turn, group)
        if group.sync_deadline_ms is not None and group.sync_deadline_ms <= now_ms:
            rebalance.sync_deadline_came(turn, group)

    def check_invariants(self) -> None:
        """What must hold after every call of an ACTIVE coordinator."""
        for group_id, group in self._groups.items():
            assert group.group_id == group_id
            group.check_invariants()
            due_ms = group.next_deadline_ms()
            assert due_ms is None or self._deadlines.covers(group_id, due_ms)
