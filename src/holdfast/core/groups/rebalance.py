"""Rebalance: the step from one generation to the next.

A rebalance begins when a member joins, leaves or changes. It ends when all have joined, or when the
slowest member's rebalance timeout is over. A group that was empty waits a little longer for more
members, so that ten consumers that start together make one generation and not ten.
"""

from __future__ import annotations

from holdfast.core.groups.effects import AnswerJoin, AnswerSync, JoinAnswer, JoinedMember
from holdfast.core.groups.group import Group, InitialDelay
from holdfast.core.groups.group_states import GroupState
from holdfast.core.groups.member import GroupMember
from holdfast.core.groups.pending_writes import Turn
from holdfast.model import ErrorCode

SHORTEST_PAUSE_MS = 1_000


def rebalance_or_complete(turn: Turn, group: Group) -> None:
    """A member joined, left or changed: begin a rebalance, or check the one in progress."""
    if group.may_rebalance:
        prepare_rebalance(turn, group)
    else:
        maybe_complete_join(turn, group)


def prepare_rebalance(turn: Turn, group: Group) -> None:
    """Begin a rebalance: every member has to join again."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        fail_syncs(turn, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.unsynced.clear()
    group.sync_deadline_ms = None
    group.is_assignment_being_stored = False
    for member in group.members.values():
        # A static member whose new id is on its way to the log now waits for the generation.
        member.is_being_stored = False
    is_initial = group.state is GroupState.EMPTY
    group.move_to(GroupState.PREPARING_REBALANCE, turn.now_ms)
    if is_initial:
        delay_ms = turn.settings.group_initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.initial_delay = InitialDelay(delay_ms, remaining_ms)
        group.join_deadline_ms = turn.now_ms + delay_ms
        if delay_ms == 0:
            join_deadline_came(turn, group)
    elif group.have_all_joined:
        _complete_join(turn, group)
    else:
        group.join_deadline_ms = turn.now_ms + group.rebalance_timeout_ms


def maybe_complete_join(turn: Turn, group: Group) -> None:
    """Begin the generation if all have joined and no initial delay is running."""
    if group.state is not GroupState.PREPARING_REBALANCE or not group.have_all_joined:
        return
    # Without members there is nothing to delay.
    if group.initial_delay is None or not group.members:
        _complete_join(turn, group)


def join_deadline_came(turn: Turn, group: Group) -> None:
    """End the join phase, unless new members extend the initial delay."""
    delay = group.initial_delay
    if delay is None or not delay.has_newcomer or delay.remaining_ms == 0:
        _complete_join(turn, group)
        return
    longer_ms = min(turn.settings.group_initial_rebalance_delay_ms, delay.remaining_ms)
    group.initial_delay = InitialDelay(longer_ms, max(delay.remaining_ms - delay.delay_ms, 0))
    group.join_deadline_ms = turn.now_ms + longer_ms


def sync_deadline_came(turn: Turn, group: Group) -> None:
    """Remove members that joined but sent no SyncGroup."""
    group.sync_deadline_ms = None
    if not group.unsynced:
        return
    for member_id in tuple(group.unsynced):
        removed = group.remove(member_id)
        assert removed is not None
        dismiss(turn, removed, ErrorCode.UNKNOWN_MEMBER_ID)
    prepare_rebalance(turn, group)


def _complete_join(turn: Turn, group: Group) -> None:
    group.join_deadline_ms = None
    group.initial_delay = None
    for member in tuple(group.members.values()):
        # A static member may be restarting: only its session decides that it is gone (KIP-345).
        if member.join_waiter is None and member.group_instance_id is None:
            group.remove(member.member_id)
    if group.members and not _elect_leader(group):
        # Only static members that have not joined are left: they will join or expire. A client may
        # ask for a rebalance timeout of 0, which must not make us check without a pause.
        pause_ms = max(group.rebalance_timeout_ms, SHORTEST_PAUSE_MS)
        group.join_deadline_ms = turn.now_ms + pause_ms
        return
    group.generation += 1
    group.protocol_name = group.chosen_protocol() if group.members else None
    group.note_topics(turn.topics_of)
    if group.members:
        _begin_generation(turn, group)
    else:
        group.move_to(GroupState.EMPTY, turn.now_ms)
        # If this is not stored, a new coordinator loads the former members, which then expire.
        turn.persist((group.record(),))


def _elect_leader(group: Group) -> bool:
    """Choose a leader among the joined members, since it assigns; return whether there is one."""
    assert group.leader is not None
    if group.members[group.leader].join_waiter is not None:
        return True
    joined = [each for each, member in group.members.items() if member.join_waiter is not None]
    if joined:
        group.leader = joined[0]
    return bool(joined)


def _begin_generation(turn: Turn, group: Group) -> None:
    group.move_to(GroupState.COMPLETING_REBALANCE, turn.now_ms)
    group.sync_deadline_ms = turn.now_ms + group.rebalance_timeout_ms
    group.unsynced = dict.fromkeys(group.members)
    for member in group.members.values():
        member.assignment = b""
        member.is_new = False
        member.seen(turn.now_ms)
        if member.join_waiter is not None:
            answer_join(turn, group, member)


def answer_join(
    turn: Turn, group: Group, member: GroupMember, *, skip_assignment: bool = False
) -> None:
    """Answer a waiting JoinGroup with the current generation."""
    waiter, member.join_waiter = member.join_waiter, None
    answer = generation_of(group, member.member_id)
    turn.add(AnswerJoin(waiter, answer._replace(skip_assignment=skip_assignment)))


def generation_of(group: Group, member_id: str) -> JoinAnswer:
    """The JoinGroup response for the current generation; the leader's lists the members."""
    assert group.leader is not None
    members: tuple[JoinedMember, ...] = ()
    if member_id == group.leader:
        members = tuple(
            JoinedMember(each.member_id, each.group_instance_id, each.metadata(group.protocol_name))
            for each in group.members.values()
        )
    return JoinAnswer(
        ErrorCode.NONE,
        member_id,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        members,
    )


def fail_syncs(turn: Turn, group: Group, error: ErrorCode) -> None:
    """Answer every waiting SyncGroup with an error."""
    for member in group.members.values():
        member.assignment = b""
        if member.sync_waiter is not None:
            turn.add(AnswerSync(member.sync_waiter, error))
            member.sync_waiter = None
            member.seen(turn.now_ms)


def dismiss(turn: Turn, member: GroupMember, error: ErrorCode) -> None:
    """Answer the waiting requests of a removed member."""
    if member.join_waiter is not None:
        # A fenced member is answered with its old id; an unknown one must ask for a new id.
        fenced = error is ErrorCode.FENCED_INSTANCE_ID
        turn.add(
            AnswerJoin(member.join_waiter, JoinAnswer(error, member.member_id if fenced else ""))
        )
        member.join_waiter = None
    if member.sync_waiter is not None:
        turn.add(AnswerSync(member.sync_waiter, error))
        member.sync_waiter = None
