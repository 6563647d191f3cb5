"""The partitions of a broker with one fetch session, and the clients that read them."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.core import (
    Asked,
    ConsiderExpand,
    Effects,
    Fetch,
    FetchSession,
    HighWatermarkMoved,
    IsrApplied,
    Leader,
    LogState,
    NextFetch,
    Reader,
    Replica,
    Settings,
    WakeFetch,
)
from holdfast.core.rules import FlushRule
from holdfast.model import (
    NO_BROKER,
    NO_EPOCH,
    BatchHeader,
    BrokerEpoch,
    BrokerId,
    ErrorCode,
    LeaderEpoch,
    Offset,
    PartitionEpoch,
    PartitionState,
)

ONE, TWO, THREE = BROKERS = BrokerId(1), BrokerId(2), BrokerId(3)
"""The leader, the session's follower, and another one."""
FLUSHED_FIRST = Settings(flush_rule=FlushRule.EVERY_APPEND)
EPOCH = BrokerEpoch(1)


class Partition:
    """A partition on the broker; it begins without its followers in the ISR."""

    def __init__(self, index: int) -> None:
        self.place = ("t", index)
        self.replica = Replica(ONE, LogState(Settings()))
        self.sessions: dict[FetchSession[Any], Reader[Any]] = {}
        self.is_here = True
        self.state = PartitionState(BROKERS, (ONE,), ONE, LeaderEpoch(1), PartitionEpoch(1))
        self.run(self.replica.become_leader(self.state, 0))

    @property
    def role(self) -> Leader:
        role = self.replica.role
        assert isinstance(role, Leader)
        return role

    def run(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case WakeFetch(waiter):
                    assert isinstance(waiter, FetchSession)
                    waiter.grew(self, 0)
                case HighWatermarkMoved():
                    self.offsets_moved()
                case IsrApplied(isr, _):
                    for session, reader in self.sessions.items():
                        session.isr_changed(reader, isr)
                case ConsiderExpand(follower):
                    self.run(self.replica.expand_isr(follower))
                case _:
                    pass  # A proposed ISR waits for `confirm`; nothing is written here.

    def offsets_moved(self) -> None:
        for session, reader in self.sessions.items():
            session.moved(reader)

    def produce(self) -> None:
        self.replica.append_as_leader(BatchHeader(1), 1)
        self.run(self.replica.appended(0))

    def other_fetches(self) -> None:
        end, epoch = self.replica.log.log_end_offset, self.state.leader_epoch
        self.run(self.replica.fetched(Fetch(THREE, end, NO_EPOCH, epoch, EPOCH), 0).effects)

    def confirm(self) -> None:
        """The controller accepts the proposed ISR."""
        proposal = self.role.insync.proposal
        assert proposal is not None
        isr = tuple(member.broker for member in proposal.isr)
        self._next_state(isr=isr)
        self.run(self.replica.isr_answer(ErrorCode.NONE, self.state))

    def elect(self) -> None:
        """The same leader, in a new leader epoch."""
        self._next_state(leader_epoch=LeaderEpoch(self.state.leader_epoch + 1))
        self.run(self.replica.become_leader(self.state, 0))

    def _next_state(self, **changes: Any) -> None:
        epoch = PartitionEpoch(self.state.partition_epoch + 1)
        self.state = self.state._replace(partition_epoch=epoch, **changes)

    def delete(self) -> None:
        self.replica.log.advance_start_to(self.replica.log.high_watermark)
        self.offsets_moved()

    def leave(self) -> None:
        self.is_here = False
        for session in tuple(self.sessions):
            session.removed(self)


class Part(NamedTuple):
    """One partition of an answer."""

    partition: int
    error: ErrorCode
    records: int
    high_watermark: Offset
    log_start_offset: Offset


class Message(NamedTuple):
    """A request on its way to the broker."""

    number: int
    session_id: int
    session_epoch: int
    named: tuple[Asked, ...]
    forgotten: tuple[tuple[str, int], ...]


class Client:
    """What both kinds of clients share: the session, and which partitions they must name."""

    most_under_way = 1
    follower = NO_BROKER

    def __init__(self, partitions: list[Partition]) -> None:
        self.partitions = partitions
        self.changed = dict.fromkeys(range(len(partitions)))
        self.forgotten: dict[int, None] = {}
        self.session_id = self.session_epoch = self.requests = self.under_way = 0

    def may_send(self) -> bool:
        overtakes = self.session_id and (self.changed or self.forgotten)
        return self.under_way < (self.most_under_way if overtakes else 1)

    def send(self) -> Message:
        self.requests += 1
        self.under_way += 1
        named = [one for one in map(self.name, tuple(self.changed)) if one is not None]
        message = Message(
            self.requests,
            self.session_id,
            self.session_epoch,
            tuple(named),
            tuple(("t", index) for index in self.forgotten),
        )
        self.changed, self.forgotten = {}, {}
        if self.session_id:
            self.session_epoch += 1
        return message

    def receive(self, number: int, parts: tuple[Part, ...], *, discards: bool) -> None:
        self.under_way -= 1
        if not self.session_id:
            self.session_id = self.session_epoch = 1
        for part in parts:
            self.take(number, part, discards=discards)

    def name(self, index: int) -> Asked | None:
        raise NotImplementedError

    def take(self, number: int, part: Part, *, discards: bool) -> None:
        raise NotImplementedError

    def steps(self, index: int) -> list[str]:
        """What happens at the client by itself."""
        del index
        return []

    def missing(self) -> str:
        """What the client has not got, when nothing happens any more."""
        raise NotImplementedError


class FollowerClient(Client):
    """A replica fetcher: two requests under way; a record is flushed before the next fetch."""

    most_under_way = 2
    follower = TWO

    def __init__(self, partitions: list[Partition]) -> None:
        super().__init__(partitions)
        self.replicas = [Replica(TWO, LogState(FLUSHED_FIRST)) for _ in partitions]
        self.asked: list[NextFetch | None] = [None] * len(partitions)
        self.asked_in = [0] * len(partitions)
        for index in range(len(partitions)):
            self.learn(index)

    def steps(self, index: int) -> list[str]:
        replica = self.replicas[index]
        found = ["flush"] if replica.log.must_flush else []
        if replica.leader_epoch != self.partitions[index].state.leader_epoch:
            found.append("learn")
        return found

    def learn(self, index: int) -> None:
        """The controller's newest state arrives."""
        self.replicas[index].become_follower(self.partitions[index].state)
        self.changed[index] = None

    def flush(self, index: int) -> None:
        replica = self.replicas[index]
        replica.flushed(replica.log.log_end_offset, 0)
        self.changed[index] = None

    def name(self, index: int) -> Asked | None:
        asked = self.replicas[index].next_fetch()
        if asked is None:
            return None
        if asked != self.asked[index]:
            self.asked_in[index] = self.requests
        self.asked[index] = asked
        self.forgotten.pop(index, None)
        epochs = asked.last_fetched_epoch, asked.current_leader_epoch
        return ("t", index), Fetch(TWO, asked.fetch_offset, *epochs, EPOCH), -1, 1

    def take(self, number: int, part: Part, *, discards: bool) -> None:
        del discards
        index = part.partition
        asked, replica = self.asked[index], self.replicas[index]
        if asked is None or self.asked_in[index] > number:
            return
        self.changed[index] = None
        if not replica.accepts_answer(asked):
            return
        if part.error:
            if part.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                leader = self.partitions[index].replica.log
                replica.out_of_range(leader.log_start_offset, leader.log_end_offset)
            self.forgotten[index] = None
            self.asked[index] = None
            return
        epoch = replica.leader_epoch
        batches = [BatchHeader(1, epoch, asked.fetch_offset)] if part.records else []
        before = (replica.log.log_end_offset, replica.log.log_start_offset)
        replica.append_as_follower(batches, part.high_watermark, 0)
        start = min(part.log_start_offset, replica.log.high_watermark)
        replica.log.advance_start_to(Offset(start))
        if before == (replica.log.log_end_offset, replica.log.log_start_offset):
            del self.changed[index]

    def missing(self) -> str:
        for index, (ours, partition) in enumerate(zip(self.replicas, self.partitions, strict=True)):
            theirs = partition.replica.log
            for name in ("log_end_offset", "high_watermark", "log_start_offset"):
                has, wants = getattr(ours.log, name), getattr(theirs, name)
                if has != wants:
                    return f"partition {index}: {name} is {has}, the leader has {wants}"
            if TWO not in partition.role.insync.isr:
                return f"partition {index}: the follower does not join the ISR"
        return ""


class ConsumerClient(Client):
    """One request under way; it may discard an answer, and then omits its partitions."""

    def __init__(self, partitions: list[Partition]) -> None:
        super().__init__(partitions)
        self.positions = [0] * len(partitions)
        self.marks = [-1] * len(partitions)

    def name(self, index: int) -> Asked | None:
        fetch = Fetch(NO_BROKER, Offset(self.positions[index]), NO_EPOCH, NO_EPOCH)
        return ("t", index), fetch, -1, 1

    def take(self, number: int, part: Part, *, discards: bool) -> None:
        del number
        index = part.partition
        if part.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self.positions[index] = self.partitions[index].replica.log.log_start_offset
            self.changed[index] = None
        elif not part.error and not discards:
            self.marks[index] = part.high_watermark
            if part.records:
                self.positions[index] += part.records
                self.changed[index] = None

    def missing(self) -> str:
        for index, partition in enumerate(self.partitions):
            wants = partition.replica.log.high_watermark
            if self.positions[index] != wants:
                return f"partition {index}: read up to {self.positions[index]}, not {wants}"
            if self.marks[index] > wants:
                return f"partition {index}: high watermark {self.marks[index]}, not {wants}"
        return ""
