"""How members leave: by LeaveGroup, by an administrator, or when their session expires."""

from __future__ import annotations

from holdfast.core.groups.effects import AnswerLeave, LeftMember
from holdfast.core.groups.group import Group
from holdfast.core.groups.group_states import GroupState
from holdfast.core.groups.pending_writes import Turn
from holdfast.core.groups.rebalance import (
    dismiss,
    maybe_complete_join,
    prepare_rebalance,
    rebalance_or_complete,
)
from holdfast.core.groups.requests import NO_MEMBER, Leaver
from holdfast.model import ErrorCode


def leave(turn: Turn, group: Group, leavers: tuple[Leaver, ...], waiter: object) -> None:
    """A LeaveGroup. All members leave together, with one rebalance for all of them."""
    if group.state is GroupState.DEAD:
        turn.add(AnswerLeave(waiter, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    members_before = len(group.members)
    left = tuple(_take_out(turn, group, each) for each in leavers)
    turn.add(AnswerLeave(waiter, ErrorCode.NONE, left))
    if len(group.members) < members_before:
        rebalance_or_complete(turn, group)
    else:
        maybe_complete_join(turn, group)


def _take_out(turn: Turn, group: Group, leaver: Leaver) -> LeftMember:
    member_id, instance_id = leaver
    if member_id == NO_MEMBER and instance_id is not None:
        member_id = group.static_members.get(instance_id, NO_MEMBER)
    if member_id in group.pending_members:
        group.remove(member_id)
        return LeftMember(*leaver, ErrorCode.NONE)
    error = group.find(member_id, instance_id)
    if not error:
        _remove(turn, group, member_id)
    return LeftMember(*leaver, error)


def _remove(turn: Turn, group: Group, member_id: str) -> None:
    member = group.remove(member_id)
    assert member is not None
    # The error makes a client that still runs join again as a new member.
    dismiss(turn, member, ErrorCode.UNKNOWN_MEMBER_ID)


def sessions_ended(turn: Turn, group: Group) -> None:
    """Remove members and pending members whose deadline has passed."""
    now_ms = turn.now_ms
    late = [each for each, deadline_ms in group.pending_members.items() if deadline_ms <= now_ms]
    for member_id in late:
        group.remove(member_id)
    silent = 0
    for member in tuple(group.members.values()):
        deadline_ms = member.session_deadline_ms
        if deadline_ms is None or deadline_ms > now_ms:
            continue
        if member.waits and not member.is_new:
            # It cannot send heartbeats while we keep it waiting. The answer starts its clock.
            member.session_deadline_ms = None
            continue
        silent += 1
        _remove(turn, group, member.member_id)
    if silent and group.may_rebalance:
        prepare_rebalance(turn, group)
    elif silent or late:
        maybe_complete_join(turn, group)
