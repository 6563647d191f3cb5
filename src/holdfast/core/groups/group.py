"""A group: its members, its generation and its state, without the rules that change them.

`join_group`, `sync_group` and `leave_group` hold the rules of one request each, `rebalance` those
of the step to the next generation. All of them change a group through the methods below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from holdfast.core.groups.group_states import MOVES, GroupState
from holdfast.core.groups.member import GroupMember
from holdfast.model import NO_TIMESTAMP, ErrorCode, GroupMetadata, GroupRecord

CONSUMER = "consumer"
"""The protocol type whose metadata the coordinator may read, to know the topics in use."""

TopicsOf = Callable[[bytes], Sequence[str] | None]
"""A member's topics from its consumer-protocol metadata; None if it cannot be read."""


class InitialDelay:
    """A new group waits for more members: a delay that newcomers extend, up to a limit."""

    __slots__ = ("delay_ms", "has_newcomer", "remaining_ms")

    def __init__(self, delay_ms: int, remaining_ms: int) -> None:
        self.delay_ms = delay_ms
        self.remaining_ms = remaining_ms
        self.has_newcomer = False


class Group:
    """One group id."""

    __slots__ = (
        "generation",
        "group_id",
        "initial_delay",
        "is_assignment_being_stored",
        "join_deadline_ms",
        "leader",
        "members",
        "pending_members",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
        "sync_deadline_ms",
        "unsynced",
    )

    generation: int
    """Rises by one with every rebalance, never falls."""
    leader: str | None
    """A member's id whenever there are members."""
    members: dict[str, GroupMember]
    """By id, in the order of joining: the first one left becomes the next leader."""
    static_members: dict[str, str]
    """Instance id to member id, of exactly those members that have one (KIP-345)."""
    pending_members: dict[str, int]
    """Member ids given to clients that have yet to join with them, and until when (KIP-394)."""
    unsynced: dict[str, None]
    """Members that have yet to send SyncGroup in this generation."""
    subscribed_topics: tuple[str, ...] | None
    """The topics of this generation; None if the coordinator cannot read the metadata."""
    state_timestamp_ms: int
    """Since when the group is in its state; -1 in records that are older than this field."""

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader = None
        self.members = {}
        self.static_members = {}
        self.pending_members = {}
        self.unsynced = {}
        self.subscribed_topics = None
        self.initial_delay: InitialDelay | None = None
        self.is_assignment_being_stored = False
        self.join_deadline_ms: int | None = None
        self.sync_deadline_ms: int | None = None

    @classmethod
    def stored(cls, group_id: str, metadata: GroupMetadata, topics_of: TopicsOf) -> Group:
        """A group as an earlier coordinator left it. The record must have no `fault_of`."""
        group = cls(group_id, metadata.state_timestamp_ms)
        group.generation = metadata.generation
        group.protocol_type = metadata.protocol_type or None
        group.protocol_name = metadata.protocol_name
        for each in metadata.members:
            assert metadata.protocol_name is not None
            group.add(GroupMember.stored(each, metadata.protocol_name))
        if group.members:
            # Not a move: the group is found like this.
            group.state = GroupState.STABLE
            group.leader = metadata.leader if metadata.leader in group.members else group.leader
        group.note_topics(topics_of)
        return group

    def record(self, assignments: Mapping[str, bytes] | None = None) -> GroupRecord:
        """This generation as it is stored, with these assignments or those that members have."""
        members = tuple(
            member.to_metadata(
                self.protocol_name,
                member.assignment if assignments is None else assignments[member.member_id],
            )
            for member in self.members.values()
        )
        metadata = GroupMetadata(
            self.protocol_type or "",
            self.generation,
            self.protocol_name,
            self.leader,
            self.state_timestamp_ms,
            members,
        )
        return GroupRecord(self.group_id, metadata)

    # State.

    def move_to(self, state: GroupState, now_ms: int) -> None:
        """The only way to another state."""
        assert state in MOVES[self.state], f"{self.group_id}: {self.state} to {state}"
        self.state = state
        self.state_timestamp_ms = now_ms

    @property
    def may_rebalance(self) -> bool:
        """Whether a rebalance can begin from here."""
        return GroupState.PREPARING_REBALANCE in MOVES[self.state]

    @property
    def have_all_joined(self) -> bool:
        """Whether all members have joined the next generation."""
        joined = all(member.join_waiter is not None for member in self.members.values())
        return joined and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The slowest member's."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    # Members.

    def add(self, member: GroupMember) -> None:
        """Let a member in; the first one leads."""
        assert member.member_id not in self.members
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        self.members[member.member_id] = member
        self.pending_members.pop(member.member_id, None)
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> GroupMember | None:
        """Forget a member or a pending one. Who waits in the returned one must be answered."""
        self.pending_members.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def rename(self, old_id: str, new_id: str) -> tuple[GroupMember, GroupMember]:
        """A static member rejoins under a new id: the old and the new member.

        Requests with the old id are fenced. The new member keeps the place in the order.
        """
        old = self.members[old_id]
        assert old.group_instance_id is not None
        new = old.renamed(new_id)
        self.members = {
            (new_id if each == old_id else each): (new if each == old_id else member)
            for each, member in self.members.items()
        }
        self.static_members[old.group_instance_id] = new_id
        self.unsynced.pop(old_id, None)
        if self.leader == old_id:
            self.leader = new_id
        return old, new

    def find(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Whether this is a member, and the current one of its instance id."""
        if group_instance_id is not None:
            owner = self.static_members.get(group_instance_id)
            if owner is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # Protocols.

    def supports(self, protocol_type: str, names: Sequence[str]) -> bool:
        """Whether a client with these protocols can be a member."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        if protocol_type != self.protocol_type:
            return False
        members = self.members.values()
        return any(all(member.knows(name) for member in members) for name in names)

    def chosen_protocol(self) -> str:
        """The protocol with the most votes among those that all members support; first on a tie."""
        members = list(self.members.values())
        candidates = [
            each.name
            for each in members[0].protocols
            if all(member.knows(each.name) for member in members)
        ]
        votes = [member.vote(candidates) for member in members]
        return max(candidates, key=votes.count)

    def note_topics(self, topics_of: TopicsOf) -> None:
        """Read what the generation that begins now is subscribed to."""
        self.subscribed_topics = None
        if self.protocol_type != CONSUMER:
            return
        topics: dict[str, None] = {}
        for member in self.members.values():
            read = topics_of(member.metadata(self.protocol_name))
            if read is None:
                return
            topics.update(dict.fromkeys(read))
        self.subscribed_topics = tuple(topics)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read this topic. Unreadable consumer metadata counts as every topic."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    # Time.

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline in this group."""
        deadlines = [self.join_deadline_ms, self.sync_deadline_ms, *self.pending_members.values()]
        deadlines += [member.session_deadline_ms for member in self.members.values()]
        return min((each for each in deadlines if each is not None), default=None)

    def check_invariants(self) -> None:
        """What must hold after every call."""
        members = self.members
        statics = {
            member.group_instance_id: member_id
            for member_id, member in members.items()
            if member.group_instance_id is not None
        }
        assert self.static_members == statics
        assert all(each == member.member_id for each, member in members.items())
        assert self.leader in members if members else self.leader is None
        assert not any(each in members for each in self.pending_members)
        assert all(each in members for each in self.unsynced)
        if self.state in (GroupState.EMPTY, GroupState.DEAD):
            assert not members
        if self.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert members
        for member in members.values():
            self._check_member(member)

    def _check_member(self, member: GroupMember) -> None:
        # Without a deadline a silent member would stay for ever.
        assert member.session_deadline_ms is not None or member.waits
        waits_to_join = member.join_waiter is not None
        if self.state is GroupState.STABLE:
            assert member.sync_waiter is None
            assert waits_to_join == member.is_being_stored
            return
        assert not member.is_being_stored
        assert member.sync_waiter is None or self.state is GroupState.COMPLETING_REBALANCE
        assert not waits_to_join or self.state is GroupState.PREPARING_REBALANCE


def fault_of(metadata: GroupMetadata) -> str | None:
    """Why a stored group is invalid, or None."""
    ids = [member.member_id for member in metadata.members]
    instances = [each.group_instance_id for each in metadata.members if each.group_instance_id]
    if not ids:
        return None
    if metadata.protocol_name is None:
        return "members, but no protocol"
    if len(ids) != len(dict.fromkeys(ids)):
        return "a member id twice"
    if len(instances) != len(dict.fromkeys(instances)):
        return "a group instance id twice"
    if metadata.state_timestamp_ms < NO_TIMESTAMP or metadata.generation < 0:
        return "a negative time or generation"
    return None
