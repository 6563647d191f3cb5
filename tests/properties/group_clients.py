"""A coordinator whose log refuses, lags and moves to another broker; and its clients."""

from __future__ import annotations

from holdfast.core.groups import (
    AnswerJoin,
    AnswerSync,
    Caller,
    Effect,
    Effects,
    Group,
    Groups,
    GroupSettings,
    GroupState,
    JoinAnswer,
    JoinedMember,
    Persist,
    Record,
)
from holdfast.model import CommittedOffset, ErrorCode, GroupRecord, OffsetRecord, TopicPartition
from tests.unit.core.groups.support import RANGE, Coordinator, G, topics_of

SETTINGS = GroupSettings(
    group_initial_rebalance_delay_ms=3_000,
    group_max_size=5,
    offsets_retention_minutes=2,
    offsets_retention_check_interval_ms=30_000,
)


class Client:
    """A consumer, dynamic or static. Its state comes from responses only."""

    def __init__(self, name: str, instance: str | None) -> None:
        self.name = name
        self.instance = instance
        self.forget()

    def forget(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.leads: tuple[JoinedMember, ...] = ()

    def caller(self) -> Caller:
        return Caller(G, self.member_id, self.generation, self.instance)

    def share(self, generation: int, member_id: str) -> bytes:
        return share(self.instance, member_id, generation)


def share(instance: str | None, member_id: str, generation: int) -> bytes:
    """The assignment in these tests: it names its owner and generation."""
    return f"{instance or member_id}@{generation}".encode()


class Driver(Coordinator):
    """Appends or refuses records; the test moves the high watermark, also over many records."""

    def __init__(self) -> None:
        self.appended: list[Persist[Record]] = []
        self.refused: list[Persist[Record]] = []
        self.refusing = False
        self.empty_was_refused = False
        self.last_seen: tuple[Group | None, int] = (None, 0)
        self.leaders: dict[int, str] = {}
        self.syncs: dict[int, tuple[Client, str, int]] = {}
        self.joins: dict[int, Client] = {}
        super().__init__(SETTINGS)

    # The log.

    def carry_out(self, effect: Effect) -> None:
        if not isinstance(effect, Persist):
            super().carry_out(effect)
            return
        (self.refused if self.refusing else self.appended).append(effect)
        for record in effect.records:
            if isinstance(record, GroupRecord):
                is_empty = record.metadata is None or not record.metadata.members
                self.empty_was_refused = self.refusing and is_empty

    def run(self, effects: Effects) -> None:
        super().run(effects)
        while self.refused:
            token = self.refused.pop(0).token
            verdict = self.groups.persisted(token, ErrorCode.NOT_ENOUGH_REPLICAS, self.now_ms)
            super().run(verdict)
        self.look()

    def move_high_watermark(self, count: int) -> None:
        """Report only the last result: it covers those before it."""
        taken, self.appended = self.appended[:count], self.appended[count:]
        for write in taken:
            self.log += write.records
        if taken:
            self.run(self.groups.persisted(taken[-1].token, ErrorCode.NONE, self.now_ms))

    def time_out(self, place: int) -> None:
        token = self.appended[place % len(self.appended)].token
        self.run(self.groups.persisted(token, ErrorCode.REQUEST_TIMED_OUT, self.now_ms))

    def fail_over(self, survivors: int) -> None:
        """Another broker takes over; this many of the uncommitted writes are in its log."""
        self.run(self.groups.unload())
        assert len(self.answers) == self.asked, "somebody still waits for a coordinator that left"
        for write in self.appended[:survivors]:
            self.log += write.records
        self.appended.clear()
        self.groups = replayed(self.log, self.now_ms)
        self.empty_was_refused = False
        self.last_seen = (None, 0)
        self.leaders.clear()
        self.joins.clear()
        self.syncs.clear()

    # What must hold.

    def look(self) -> None:
        """The generation of one group never falls."""
        group = self.groups.group(G)
        seen, generation = self.last_seen
        if group is not seen:
            self.leaders.clear()
        elif group is not None:
            assert group.generation >= generation
        self.last_seen = (group, group.generation if group is not None else 0)
        if group is not None and group.state is GroupState.STABLE:
            for member_id, member in group.members.items():
                expected = share(member.group_instance_id, member_id, group.generation)
                assert member.assignment == expected

    def take_answers(self) -> None:
        """Clients read their responses."""
        for waiter in [each for each in self.joins if each in self.answers]:
            client, answer = self.joins.pop(waiter), self.answers[waiter]
            assert isinstance(answer, AnswerJoin)
            self.join_answered(client, answer.answer)
        for waiter in [each for each in self.syncs if each in self.answers]:
            (client, member_id, generation), answer = self.syncs.pop(waiter), self.answers[waiter]
            assert isinstance(answer, AnswerSync)
            if not answer.error:
                assert answer.assignment == client.share(generation, member_id)

    def join_answered(self, client: Client, answer: JoinAnswer) -> None:
        lost = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
        if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif answer.error in lost or answer.error is ErrorCode.GROUP_MAX_SIZE_REACHED:
            client.forget()
        elif not answer.error:
            assert answer.generation >= 1
            client.member_id, client.generation = answer.member_id, answer.generation
            client.leads = () if answer.skip_assignment else answer.members
            if client.leads:
                assert answer.leader == answer.member_id
                owner = client.instance or client.member_id
                assert self.leaders.setdefault(answer.generation, owner) == owner

    def check_offsets(self) -> None:
        """OffsetFetch returns exactly what the log has committed."""
        expected: dict[TopicPartition, CommittedOffset] = {}
        for record in self.log:
            if isinstance(record, OffsetRecord):
                expected.pop(record.partition, None)
                if record.committed is not None:
                    expected[record.partition] = record.committed
        assert self.groups.fetch_offsets(G).offsets == expected

    def check_replay(self) -> None:
        """Without writes in flight or a rebalance, the records have the group's whole state."""
        group = self.groups.group(G)
        if self.appended or self.empty_was_refused:
            return
        following = replayed(self.log, self.now_ms).group(G)
        if group is None:
            assert following is None
        elif following is None:
            at_rest = group.state in (GroupState.STABLE, GroupState.EMPTY)
            assert group.generation == 0 or not at_rest
        elif group.state is GroupState.STABLE:
            metadata = group.record().metadata
            assert metadata is not None
            stored = following.record().metadata
            assert stored is not None
            assert stored._replace(state_timestamp_ms=0) == metadata._replace(state_timestamp_ms=0)
        elif group.state is GroupState.EMPTY and group.protocol_type is not None:
            assert following.record() == group.record()

    # Requests.

    def ask_join(
        self, client: Client, new_id: str, *, hurries: bool, skips: bool, changed: bool
    ) -> None:
        metadata = b"topics:u" if changed else b"topics:t"
        waiter = self.asked + 1
        self.joins[waiter] = client
        self.join(
            client.member_id,
            new_id,
            instance=client.instance,
            protocols=(RANGE._replace(metadata=metadata),),
            requires_member_id=not hurries,
            may_skip_assignment=skips,
            rebalance_ms=20_000,
        )
        self.take_answers()

    def ask_sync(self, client: Client) -> None:
        dealt = {
            each.member_id: share(each.group_instance_id, each.member_id, client.generation)
            for each in client.leads
        }
        waiter = self.asked + 1
        self.syncs[waiter] = (client, client.member_id, client.generation)
        self.sync(client.member_id, dealt, generation=client.generation, instance=client.instance)
        self.take_answers()


def replayed(log: list[Record], now_ms: int) -> Groups:
    """A coordinator that has read this log."""
    groups = Groups(SETTINGS, topics_of)
    for record in log:
        assert groups.replay(record) is None
    effects = groups.loaded(now_ms)
    assert effects == ()
    return groups
