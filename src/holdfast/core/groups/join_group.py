"""JoinGroup: which client may join, under which member id, and whether the group rebalances.

The coordinator sends a new client its member id, and the client joins again with it (KIP-394); a
client that never reads that response leaves only an id behind. A static member that rejoins without
its id replaces its old entry; if nothing else changes, no rebalance follows (KIP-345). A follower
that repeats its JoinGroup receives the current generation. Every other JoinGroup begins a rebalance
or takes part in the one in progress.
"""

from __future__ import annotations

from holdfast.core.coordinator import MAY_STILL_COMMIT
from holdfast.core.groups.effects import AnswerJoin, JoinAnswer
from holdfast.core.groups.group import Group
from holdfast.core.groups.group_settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from holdfast.core.groups.group_states import GroupState
from holdfast.core.groups.member import GroupMember, distinct
from holdfast.core.groups.pending_writes import (
    MemberBefore,
    StaticMemberWrite,
    Turn,
    group_error,
)
from holdfast.core.groups.rebalance import (
    answer_join,
    dismiss,
    generation_of,
    maybe_complete_join,
    prepare_rebalance,
    rebalance_or_complete,
)
from holdfast.core.groups.requests import NO_MEMBER, Join
from holdfast.model import ErrorCode


def refuse(turn: Turn, waiter: object, error: ErrorCode, member_id: str = NO_MEMBER) -> None:
    """Answer a JoinGroup with an error."""
    turn.add(AnswerJoin(waiter, JoinAnswer(error, member_id)))


def join(turn: Turn, group: Group, request: Join, waiter: object) -> None:
    """A JoinGroup for a group that exists."""
    member_id = request.member_id
    names = [protocol.name for protocol in request.protocols]
    if group.state is GroupState.DEAD:
        refuse(turn, waiter, ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
    elif not _has_room(turn, group, request):
        group.remove(member_id)
        refuse(turn, waiter, ErrorCode.GROUP_MAX_SIZE_REACHED)
        maybe_complete_join(turn, group)
    elif not group.supports(request.protocol_type, names):
        refuse(turn, waiter, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
    elif member_id == NO_MEMBER:
        _join_as_nobody(turn, group, request, waiter)
    elif member_id in group.pending_members and request.group_instance_id is None:
        _let_in(turn, group, request, member_id, waiter)
    else:
        _join_again(turn, group, request, waiter)


def _has_room(turn: Turn, group: Group, request: Join) -> bool:
    """Whether group.max.size allows this. A rejoining static member takes no new place."""
    member_id = request.member_id
    if member_id == NO_MEMBER and request.group_instance_id is not None:
        member_id = group.static_members.get(request.group_instance_id, NO_MEMBER)
    member = group.members.get(member_id)
    limit = turn.settings.group_max_size
    if group.state is GroupState.PREPARING_REBALANCE:
        # Count the members that have joined, not all members: after the limit was lowered, the
        # last ones to join again lose their place.
        joined = sum(each.join_waiter is not None for each in group.members.values())
        return (member is not None and member.join_waiter is not None) or joined < limit
    return member is not None or group.state is GroupState.EMPTY or len(group.members) < limit


def _join_as_nobody(turn: Turn, group: Group, request: Join, waiter: object) -> None:
    instance_id = request.group_instance_id
    if instance_id is not None and instance_id in group.static_members:
        _come_back(turn, group, request, waiter)
    elif instance_id is None and request.requires_member_id:
        deadline_ms = turn.now_ms + request.session_timeout_ms
        group.pending_members[request.new_member_id] = deadline_ms
        refuse(turn, waiter, ErrorCode.MEMBER_ID_REQUIRED, request.new_member_id)
    else:
        _let_in(turn, group, request, request.new_member_id, waiter)


def _let_in(turn: Turn, group: Group, request: Join, member_id: str, waiter: object) -> None:
    member = GroupMember.joining(request, member_id)
    member.join_waiter = waiter
    member.session_deadline_ms = turn.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
    if not group.members:
        group.protocol_type = request.protocol_type
    group.add(member)
    if group.initial_delay is not None:
        group.initial_delay.has_newcomer = True
    rebalance_or_complete(turn, group)


def _join_again(turn: Turn, group: Group, request: Join, waiter: object) -> None:
    """A JoinGroup with a member id."""
    error = group.find(request.member_id, request.group_instance_id)
    if error:
        refuse(turn, waiter, error, request.member_id)
        return
    member = group.members[request.member_id]
    leads_stable = group.state is GroupState.STABLE and group.leader == member.member_id
    changes = member.protocols != distinct(request.protocols)
    # The leader's JoinGroup always begins a rebalance: it may have seen new partitions.
    if group.state is not GroupState.PREPARING_REBALANCE and not changes and not leads_stable:
        turn.add(AnswerJoin(waiter, generation_of(group, member.member_id)))
        return
    if member.join_waiter is not None:
        # The client has asked twice, so it has given up on the first request.
        refuse(turn, member.join_waiter, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
    member.update(request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    member.join_waiter = waiter
    rebalance_or_complete(turn, group)


# Static members.


def _come_back(turn: Turn, group: Group, request: Join, waiter: object) -> None:
    """A static member without its id replaces its old entry, which is fenced."""
    assert request.group_instance_id is not None
    old_id = group.static_members[request.group_instance_id]
    if group.members[old_id].is_being_stored:
        # One change of an instance at a time, or a refused write could not be undone.
        refuse(turn, waiter, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return
    assert group.leader is not None
    leader_before = group.leader
    old, new = group.rename(old_id, request.new_member_id)
    before = MemberBefore(
        old_id, leader_before, old.rebalance_timeout_ms, old.session_timeout_ms, old.protocols
    )
    dismiss(turn, old, ErrorCode.FENCED_INSTANCE_ID)
    new.update(request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    new.join_waiter = waiter
    new.seen(turn.now_ms)
    if group.state is not GroupState.STABLE:
        rebalance_or_complete(turn, group)
    elif group.chosen_protocol() != group.protocol_name:
        prepare_rebalance(turn, group)
    else:
        new.is_being_stored = True
        write = StaticMemberWrite(
            group.group_id, new.member_id, waiter, before, request.may_skip_assignment
        )
        turn.persist((group.record(),), write)


def static_member_settled(
    turn: Turn, group: Group, write: StaticMemberWrite, error: ErrorCode
) -> None:
    """The write of a rejoining member's id has its result.

    It is ignored if the member has left or a rebalance has begun meanwhile.
    """
    member = group.members.get(write.member_id)
    if member is None or not member.is_being_stored:
        return
    member.is_being_stored = False
    if not error:
        member.seen(turn.now_ms)
        _welcome_back(turn, group, member, write)
        return
    refuse(turn, write.waiter, group_error(error))
    member.join_waiter = None
    member.seen(turn.now_ms)
    if error not in MAY_STILL_COMMIT:
        _undo(turn, group, write)


def _welcome_back(turn: Turn, group: Group, member: GroupMember, write: StaticMemberWrite) -> None:
    leads = group.leader == member.member_id
    if write.may_skip_assignment:
        answer_join(turn, group, member, skip_assignment=leads)
        return
    # Before KIP-814 only a response without the leadership kept a leader from assigning.
    member.join_waiter = None
    current = generation_of(group, member.member_id)
    answer = current._replace(leader=write.before.leader, members=())
    turn.add(AnswerJoin(write.waiter, answer))


def _undo(turn: Turn, group: Group, write: StaticMemberWrite) -> None:
    """The log has only the old id, so the member keeps the old id."""
    before = write.before
    _, old = group.rename(write.member_id, before.member_id)
    old.update(before.protocols, before.rebalance_timeout_ms, before.session_timeout_ms)
    old.seen(turn.now_ms)
