"""A coordinator whose driver the test plays: clients, a log, a clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from holdfast.core.groups import (
    AnswerCommit,
    AnswerDelete,
    AnswerJoin,
    AnswerLeave,
    AnswerOffsetDelete,
    AnswerSync,
    Caller,
    Commit,
    Effect,
    Effects,
    Group,
    Groups,
    GroupSettings,
    GroupState,
    Join,
    JoinAnswer,
    Leaver,
    MemberProtocol,
    Persist,
    Record,
    Sync,
)
from holdfast.model import CommittedOffset, ErrorCode, Offset, TopicPartition

Answer = AnswerJoin | AnswerSync | AnswerLeave | AnswerCommit | AnswerOffsetDelete | AnswerDelete
AnswerT = TypeVar("AnswerT", bound=Answer)

G = "readers"
RANGE = MemberProtocol("range", b"topics:t")
ROUND = MemberProtocol("roundrobin", b"topics:t")
NO_DELAY = GroupSettings(group_initial_rebalance_delay_ms=0)
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def topics_of(metadata: bytes) -> Sequence[str] | None:
    """These tests' own metadata: b"topics:a,b"; anything else cannot be read."""
    kind, _, names = metadata.decode().partition(":")
    return tuple(names.split(",")) if kind == "topics" else None


class Coordinator:
    """Drives a `Groups`. Writes succeed immediately unless `holds_writes` is set.

    Every waiter is a number; an answer to an unknown waiter, or a second one, fails the test.
    """

    def __init__(
        self,
        settings: GroupSettings = NO_DELAY,
        records: Sequence[Record] = (),
        now_ms: int = 1_000_000,
    ) -> None:
        self.groups = Groups(settings, topics_of)
        self.now_ms = now_ms
        self.holds_writes = False
        self.writes: list[Persist[Record]] = []
        self.log: list[Record] = list(records)
        self.asked = 0
        self.answers: dict[object, Answer] = {}
        self.skipped = [self.groups.replay(record) for record in records]
        self.run(self.groups.loaded(now_ms))

    def run(self, effects: Effects) -> None:
        for effect in effects:
            self.carry_out(effect)
        self.groups.check_invariants()

    def carry_out(self, effect: Effect) -> None:
        if not isinstance(effect, Persist):
            assert effect.waiter in range(1, self.asked + 1), effect
            assert effect.waiter not in self.answers, effect
            self.answers[effect.waiter] = effect
        elif self.holds_writes:
            self.writes.append(effect)
        else:
            self.log += effect.records
            self.run(self.groups.persisted(effect.token, ErrorCode.NONE, self.now_ms))

    def finish(self, error: ErrorCode = ErrorCode.NONE, *, place: int = 0) -> None:
        """End a held write; on success its records are in the log."""
        write = self.writes.pop(place)
        if not error:
            self.log += write.records
        self.run(self.groups.persisted(write.token, error, self.now_ms))

    def waiter(self) -> int:
        self.asked += 1
        return self.asked

    def answer(self, waiter: int, kind: type[AnswerT]) -> AnswerT:
        """The answer to a request, which must have been given."""
        answer = self.answers[waiter]
        assert isinstance(answer, kind)
        return answer

    def waits(self, waiter: int) -> bool:
        return waiter not in self.answers

    @property
    def group(self) -> Group:
        group = self.groups.group(G)
        assert group is not None
        return group

    def state(self) -> GroupState:
        return self.group.state

    def pass_time(self, milliseconds: int) -> None:
        """Tick at every deadline on the way, as a driver does."""
        end_ms = self.now_ms + milliseconds
        for _ in range(1_000):
            due_ms = self.groups.next_deadline_ms()
            if due_ms is None or due_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, due_ms)
            self.run(self.groups.tick(self.now_ms))
        else:
            raise AssertionError("deadlines that are never in the future")
        self.now_ms = end_ms

    # Requests.

    def join(
        self,
        member_id: str = "",
        new_id: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[MemberProtocol, ...] = (RANGE,),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        requires_member_id: bool = False,
        may_skip_assignment: bool = False,
        group_id: str = G,
    ) -> int:
        request = Join(
            group_id,
            member_id,
            new_id or f"new-{self.asked}",
            "client",
            "/127.0.0.1",
            session_ms,
            rebalance_ms,
            protocol_type,
            protocols,
            instance,
            requires_member_id,
            may_skip_assignment,
        )
        waiter = self.waiter()
        self.run(self.groups.join(request, waiter, self.now_ms))
        return waiter

    def joined(self, waiter: int) -> JoinAnswer:
        return self.answer(waiter, AnswerJoin).answer

    def join_error(self, waiter: int) -> ErrorCode:
        return self.joined(waiter).error

    def sync(
        self,
        member_id: str,
        assignments: dict[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> int:
        asked = self.group.generation if generation is None else generation
        caller = Caller(G, member_id, asked, instance)
        dealt = tuple((assignments or {}).items())
        waiter = self.waiter()
        request = Sync(caller, dealt, protocol_type, protocol_name)
        self.run(self.groups.sync(request, waiter, self.now_ms))
        return waiter

    def sync_error(self, waiter: int) -> ErrorCode:
        return self.answer(waiter, AnswerSync).error

    def heartbeat(
        self, member_id: str, generation: int | None = None, instance: str | None = None
    ) -> ErrorCode:
        asked = self.group.generation if generation is None else generation
        error = self.groups.heartbeat(Caller(G, member_id, asked, instance), self.now_ms)
        self.groups.check_invariants()
        return error

    def leave(self, *leavers: Leaver | str) -> int:
        named = [Leaver(each) if isinstance(each, str) else each for each in leavers]
        waiter = self.waiter()
        self.run(self.groups.leave(G, named, waiter, self.now_ms))
        return waiter

    def left(self, waiter: int) -> list[ErrorCode]:
        return [each.error for each in self.answer(waiter, AnswerLeave).members]

    def commit(
        self,
        offset: int,
        caller: Caller | None = None,
        *,
        partitions: Sequence[TopicPartition] = (T0,),
        metadata: str = "",
        expire_ms: int = -1,
    ) -> int:
        committed = CommittedOffset(
            Offset(offset), metadata=metadata, expire_timestamp_ms=expire_ms
        )
        offsets = tuple((each, committed) for each in partitions)
        waiter = self.waiter()
        request = Commit(caller or Caller(G, ""), offsets)
        self.run(self.groups.commit_offsets(request, waiter, self.now_ms))
        return waiter

    def commit_errors(self, waiter: int) -> list[ErrorCode]:
        return [error for _, error in self.answer(waiter, AnswerCommit).results]

    def offset(self, partition: TopicPartition = T0) -> int | None:
        """The committed offset, or None."""
        committed = self.groups.fetch_offsets(G, (partition,)).offsets.get(partition)
        return None if committed is None else committed.offset

    def delete(self, group_id: str = G) -> int:
        waiter = self.waiter()
        self.run(self.groups.delete_group(group_id, waiter, self.now_ms))
        return waiter

    def delete_offsets(self, *partitions: TopicPartition) -> int:
        waiter = self.waiter()
        self.run(self.groups.delete_offsets(G, partitions, waiter, self.now_ms))
        return waiter

    # Groups that are ready to use.

    def caller(self, member_id: str) -> Caller:
        return Caller(G, member_id, self.group.generation)

    def settle_group(self) -> None:
        """All members join and sync again; the leader assigns b"id"."""
        for member in tuple(self.group.members.values()):
            if self.state() is GroupState.PREPARING_REBALANCE and member.join_waiter is None:
                instance = member.group_instance_id
                self.join(member.member_id, protocols=member.protocols, instance=instance)
        assert self.state() is GroupState.COMPLETING_REBALANCE, self.state()
        dealt = {each: each.encode() for each in self.group.members}
        for member_id in tuple(self.group.members):
            self.sync(member_id, dealt if member_id == self.group.leader else None)
        assert self.state() is GroupState.STABLE, self.state()


def stable(*member_ids: str, settings: GroupSettings = NO_DELAY) -> Coordinator:
    """A Stable group of consumers with these members; the first one leads."""
    coordinator = Coordinator(settings)
    for member_id in member_ids:
        coordinator.join(new_id=member_id)
        coordinator.settle_group()
    return coordinator


def stable_static(*instances: str, settings: GroupSettings = NO_DELAY) -> Coordinator:
    """The same with static members: instance "i" has the member id "i-1"."""
    coordinator = Coordinator(settings)
    for instance in instances:
        coordinator.join(new_id=f"{instance}-1", instance=instance)
        coordinator.settle_group()
    return coordinator
