"""Writes of offsets, from the request to the result: commits, deletions, expiry.

All of them are `OffsetsWrite`s and end in the same way: a refused write changes nothing; the
records of a committed one are applied in the order of the log.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.coordinator import MAY_STILL_COMMIT
from holdfast.core.groups.effects import AnswerCommit, AnswerDelete, AnswerOffsetDelete
from holdfast.core.groups.group import Group
from holdfast.core.groups.group_states import GroupState
from holdfast.core.groups.offsets.committed_offsets import (
    OffsetStore,
    commit_refusal,
    expired,
    group_delete_refusal,
    offset_delete_refusal,
)
from holdfast.core.groups.pending_writes import (
    OffsetsWrite,
    Reply,
    Turn,
    offsets_error,
)
from holdfast.core.groups.requests import Commit
from holdfast.model import ErrorCode, GroupRecord, OffsetRecord, TopicPartition

MINUTE_MS = 60_000


class OffsetWrites:
    """The offsets of one offsets partition, and the writes that change them."""

    __slots__ = ("_groups", "store")

    def __init__(self, groups: dict[str, Group]) -> None:
        self._groups = groups
        self.store = OffsetStore()

    def _begin(self, turn: Turn, write: OffsetsWrite) -> None:
        self.store.begin(write.offsets)
        records: tuple[GroupRecord | OffsetRecord, ...] = write.offsets
        if write.removes_group:
            # Last: a group whose tombstone is found has no offsets left either.
            records = (*records, GroupRecord(write.group_id, None))
        turn.persist(records, write)

    def commit(self, turn: Turn, request: Commit, waiter: object) -> None:
        """An OffsetCommit: store what may be stored, refuse the rest by partition."""
        caller = request.caller
        group = self._groups.get(caller.group_id)
        refusal = commit_refusal(group, caller, names_missing_group=request.names_missing_group)
        longest = turn.settings.offset_metadata_max_bytes
        results: list[tuple[TopicPartition, ErrorCode]] = []
        records: list[OffsetRecord] = []
        for partition, committed in request.offsets:
            error = refusal
            if not error and len(committed.metadata) > longest:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            if not error:
                stamped = committed._replace(commit_timestamp_ms=turn.now_ms)
                records.append(OffsetRecord(caller.group_id, partition, stamped))
            results.append((partition, error))
        if not refusal and group is not None and caller.member_id in group.members:
            group.members[caller.member_id].seen(turn.now_ms)
        reply = AnswerCommit(waiter, tuple(results))
        if records:
            self._begin(turn, OffsetsWrite(caller.group_id, tuple(records), reply))
        else:
            turn.add(reply)

    def delete_offsets(
        self, turn: Turn, group_id: str, partitions: Sequence[TopicPartition], waiter: object
    ) -> None:
        """An OffsetDelete: topics that members read are refused (KIP-496)."""
        group = self._groups.get(group_id)
        refusal = offset_delete_refusal(group)
        if refusal or group is None:
            turn.add(AnswerOffsetDelete(waiter, refusal))
            return
        in_use = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        results = tuple(
            (each, in_use if group.is_subscribed_to(each.topic) else ErrorCode.NONE)
            for each in partitions
        )
        known = self.store.known(group_id)
        records = tuple(
            OffsetRecord(group_id, partition, None)
            for partition in dict.fromkeys(each for each, error in results if not error)
            if partition in known
        )
        reply = AnswerOffsetDelete(waiter, ErrorCode.NONE, results)
        if records:
            self._begin(turn, OffsetsWrite(group_id, records, reply))
        else:
            turn.add(reply)

    def delete_group(self, turn: Turn, group_id: str, waiter: object) -> None:
        """Delete the group and its offsets; it is Dead until the tombstones are stored."""
        group = self._groups.get(group_id)
        refusal = group_delete_refusal(group)
        if refusal or group is None:
            turn.add(AnswerDelete(waiter, refusal))
            return
        self._bury(turn, group, AnswerDelete(waiter, ErrorCode.NONE))

    def _bury(self, turn: Turn, group: Group, reply: Reply | None) -> None:
        group.move_to(GroupState.DEAD, group.state_timestamp_ms)
        group.pending_members.clear()
        records = tuple(
            OffsetRecord(group.group_id, partition, None)
            for partition in self.store.known(group.group_id)
        )
        self._begin(turn, OffsetsWrite(group.group_id, records, reply, removes_group=True))

    def forget_partitions(self, turn: Turn, partitions: Sequence[TopicPartition]) -> None:
        """Remove the offsets of all groups in deleted partitions."""
        for group_id in tuple(dict.fromkeys((*self._groups, *self.store.groups()))):
            known = self.store.known(group_id)
            records = tuple(
                OffsetRecord(group_id, each, None) for each in partitions if each in known
            )
            if records:
                self._begin(turn, OffsetsWrite(group_id, records, None))

    def expire(self, turn: Turn) -> None:
        """Remove expired offsets, and empty groups without offsets."""
        retention_ms = turn.settings.offsets_retention_minutes * MINUTE_MS
        for group in tuple(self._groups.values()):
            offsets = self.store.of(group.group_id)
            over = [
                partition
                for partition in expired(group, offsets, retention_ms, turn.now_ms)
                if not self.store.is_under_way(group.group_id, partition)
            ]
            is_over = len(over) == len(self.store.known(group.group_id))
            if is_over and group.state is GroupState.EMPTY and not group.pending_members:
                self._bury(turn, group, None)
            elif over:
                records = tuple(OffsetRecord(group.group_id, each, None) for each in over)
                self._begin(turn, OffsetsWrite(group.group_id, records, None))

    # Results.

    def committed(self, turn: Turn, write: OffsetsWrite) -> None:
        """The log committed the records: apply them and answer."""
        self.store.end(write.offsets)
        for record in write.offsets:
            self.store.apply(record)
        if write.removes_group:
            del self._groups[write.group_id]
        elif write.group_id not in self._groups and self.store.of(write.group_id):
            # A client without group management: the group consists of its offsets.
            self._groups[write.group_id] = Group(write.group_id, turn.now_ms)
        if write.reply is not None:
            turn.add(write.reply)

    def failed(self, turn: Turn, write: OffsetsWrite, error: ErrorCode) -> OffsetsWrite | None:
        """Answer with the error. Return the rest of the write if its records may still commit."""
        if write.reply is not None:
            turn.add(_failed(write.reply, offsets_error(error)))
        if error in MAY_STILL_COMMIT:
            return write._replace(reply=None)
        self.store.end(write.offsets)
        if write.removes_group:
            group = self._groups[write.group_id]
            group.move_to(GroupState.EMPTY, group.state_timestamp_ms)
        return None

    def abandon(self, turn: Turn) -> None:
        """The broker no longer leads: answer NOT_COORDINATOR for the writes in flight."""
        for write in turn.journal.take_all():
            if isinstance(write, OffsetsWrite) and write.reply is not None:
                turn.add(_failed(write.reply, ErrorCode.NOT_COORDINATOR))
        self.store = OffsetStore()


def _failed(reply: Reply, error: ErrorCode) -> Reply:
    """The same answer after a failure: what was refused before stays refused for its own reason."""
    if isinstance(reply, AnswerDelete):
        return AnswerDelete(reply.waiter, error)
    results = tuple((partition, refused or error) for partition, refused in reply.results)
    return reply._replace(results=results)
