"""SyncGroup and Heartbeat: the leader sends all assignments; each member fetches its own.

Assignments are stored before any member receives one. Otherwise a new coordinator could load older
assignments than the members use.
"""

from __future__ import annotations

from holdfast.core.groups.effects import AnswerSync
from holdfast.core.groups.group import Group
from holdfast.core.groups.group_states import GroupState
from holdfast.core.groups.member import GroupMember
from holdfast.core.groups.pending_writes import AssignmentWrite, Turn, group_error
from holdfast.core.groups.rebalance import fail_syncs, prepare_rebalance
from holdfast.core.groups.requests import Caller, Sync
from holdfast.model import ErrorCode


def _refusal(group: Group, caller: Caller) -> ErrorCode:
    """Why the caller is no member of the current generation."""
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.find(caller.member_id, caller.group_instance_id)
    if not error and caller.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def heartbeat(turn: Turn, group: Group, caller: Caller) -> ErrorCode:
    """Extend the session. The response notifies the member of a rebalance."""
    error = _refusal(group, caller)
    if error:
        return error
    group.members[caller.member_id].seen(turn.now_ms)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def sync(turn: Turn, group: Group, request: Sync, waiter: object) -> None:
    """A SyncGroup for a group that exists."""
    error = _refusal(group, request.caller)
    if not error and _is_other_protocol(group, request):
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not error and group.state is GroupState.PREPARING_REBALANCE:
        error = ErrorCode.REBALANCE_IN_PROGRESS
    if error:
        turn.add(AnswerSync(waiter, error))
        return
    member = group.members[request.caller.member_id]
    group.unsynced.pop(member.member_id, None)
    if not group.unsynced:
        group.sync_deadline_ms = None
    if group.state is GroupState.STABLE:
        _answer(turn, group, member, waiter)
        return
    if member.sync_waiter is not None:
        # The client has asked twice, so it has given up on the first request.
        turn.add(AnswerSync(member.sync_waiter, ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_waiter = waiter
    if group.leader == member.member_id and not group.is_assignment_being_stored:
        _store(turn, group, request)


def _is_other_protocol(group: Group, request: Sync) -> bool:
    is_other_type = request.protocol_type not in (None, group.protocol_type)
    return is_other_type or request.protocol_name not in (None, group.protocol_name)


def _store(turn: Turn, group: Group, request: Sync) -> None:
    """Store the leader's assignments. Its first SyncGroup of a generation counts."""
    dealt = dict(request.assignments)
    assignments = {member_id: dealt.get(member_id, b"") for member_id in group.members}
    group.is_assignment_being_stored = True
    write = AssignmentWrite(group.group_id, group.generation, assignments)
    turn.persist((group.record(assignments),), write)


def assignment_settled(turn: Turn, group: Group, write: AssignmentWrite, error: ErrorCode) -> None:
    """The write of the assignments has its result; ignored if a rebalance began meanwhile."""
    is_awaited = group.state is GroupState.COMPLETING_REBALANCE
    if not is_awaited or write.generation != group.generation:
        return
    group.is_assignment_being_stored = False
    if error:
        fail_syncs(turn, group, group_error(error))
        prepare_rebalance(turn, group)
        return
    group.move_to(GroupState.STABLE, turn.now_ms)
    for member in group.members.values():
        member.assignment = write.assignments[member.member_id]
        if member.sync_waiter is not None:
            waiter, member.sync_waiter = member.sync_waiter, None
            _answer(turn, group, member, waiter)


def _answer(turn: Turn, group: Group, member: GroupMember, waiter: object) -> None:
    member.seen(turn.now_ms)
    turn.add(
        AnswerSync(
            waiter, ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment
        )
    )
