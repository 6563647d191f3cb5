"""A broker with one fetch session, its client and a wire: small enough for every schedule.

The session, the leader's replicas and a follower's replicas are those of the core. `_Request`
drives the session as the broker's `ParkedFetch` does; one answer has room for one record.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from holdfast.core import (
    FetchAnswer,
    FetchSession,
    FetchSessions,
    Reader,
    Replica,
)
from holdfast.model import (
    NO_BROKER,
    ErrorCode,
    Offset,
)
from tests.search.fetch_session_clients import (
    EPOCH,
    THREE,
    Client,
    ConsumerClient,
    FollowerClient,
    Message,
    Part,
    Partition,
)

Action = tuple[str, int]


class _Request:
    """A request at the broker."""

    def __init__(self, world: World, session: FetchSession[Partition], number: int) -> None:
        self.world, self.session, self.number = world, session, number
        self.is_answered = False

    def begin(self, message: Message) -> None:
        session = self.session
        overtaken = session.parked
        if overtaken is not None:
            overtaken.finish()
        reported = session.requested(
            message.named, message.forgotten, EPOCH, 0, overtakes=overtaken is not None
        )
        for reader in reported if session.follower is not None else ():
            partition = self._partition_of(reader)
            if partition is not None:
                partition.run(session.fetched(reader, partition).effects)
        if session.is_new:
            self.finish()
        else:
            self.check()

    def _partition_of(self, reader: Reader[Partition]) -> Partition | None:
        partition = self.world.partitions[reader.place[1]]
        if reader.partition is None and partition.is_here:
            self.session.meet(reader, partition)
        return reader.partition

    def _judge(self, reader: Reader[Partition]) -> FetchAnswer | None:
        partition = self._partition_of(reader)
        return None if partition is None else partition.replica.read(reader.fetch)

    def check(self) -> None:
        """Answer if there is anything to send, or wait."""
        self.session.parked = None
        for reader in self.session.pending:
            read = self._judge(reader)
            if read is None or read.error or read.end_offset > read.fetch_offset:
                self.finish()
                return
        self.session.park(self)

    def wake(self) -> None:
        self.world.woken[self] = None

    def finish(self) -> None:
        if self.is_answered:
            return
        self.is_answered = True
        self.session.parked = None
        parts: list[Part] = []
        room = 1
        for reader in self.session.take_pending():
            part, is_all = self._part(reader, self._judge(reader), room)
            room -= part.records
            offsets = (part.high_watermark, part.log_start_offset)
            is_refused = part.error is not ErrorCode.NONE
            if self.session.answered(
                reader, offsets, part.records, is_refused=is_refused, is_all=is_all
            ):
                parts.append(part)
        self.world.answers.append((self.number, tuple(parts)))

    def _part(
        self, reader: Reader[Partition], read: FetchAnswer | None, room: int
    ) -> tuple[Part, bool]:
        index, none = reader.place[1], Offset(-1)
        if read is None or read.error:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER if read is None else read.error
            return Part(index, error, 0, none, none), True
        missing = read.end_offset - read.fetch_offset
        records = min(missing, room)
        log_start, high_watermark = read.log_start_offset, read.high_watermark
        part = Part(index, ErrorCode.NONE, records, high_watermark, log_start)
        return part, missing <= 0 or records > 0


class World:
    """Everything, and how often each action may still happen."""

    def __init__(
        self, kind: type[Client], partitions: int, late: tuple[str, ...] = (), **left: int
    ) -> None:
        self.partitions = [Partition(index) for index in range(partitions)]
        self.client = kind(self.partitions)
        self.sessions: FetchSessions[Partition] = FetchSessions(1, lambda: 1)
        self.messages: deque[Message] = deque()
        self.answers: deque[tuple[int, tuple[Part, ...]]] = deque()
        self.woken: dict[_Request, None] = {}
        self.late = late
        """Steps that happen only when all faults are over."""
        self.left = left

    def session(self) -> FetchSession[Partition] | None:
        return self.sessions._sessions.get(1)

    def actions(self) -> list[Action]:
        """What can happen now, with faults and limited actions."""
        found = [one for one in self.steps() if one[0] not in self.late]
        may = [name for name, left in self.left.items() if left]
        session = self.session()
        for index, partition in enumerate(self.partitions):
            found += [
                (name, index)
                for name in ("produce", "elect", "delete", "leave")
                if name in may and (partition.is_here or name != "leave")
            ]
        if self.answers and "discard" in may:
            found.append(("discard", 0))
        if "time" in may and session is not None and session.parked is not None:
            found.append(("time", 0))
        return found

    def steps(self) -> list[Action]:
        """What happens by itself."""
        client = self.client
        found: list[Action] = []
        if client.may_send():
            found.append(("send", 0))
        if self.messages:
            found.append(("receive", 0))
        if self.answers:
            found.append(("answer", 0))
        for index, partition in enumerate(self.partitions):
            log, role = partition.replica.log, partition.role
            if not partition.is_here:
                found.append(("return", index))
            if role.insync.followers[THREE].log_end_offset < log.log_end_offset:
                found.append(("other", index))
            if role.insync.proposal is not None:
                found.append(("confirm", index))
            found += [(name, index) for name in client.steps(index)]
        return found

    def do(self, action: Action) -> None:
        """Take one action; then the requests that it woke check again."""
        name, index = action
        if name in self.left:
            self.left[name] -= 1
        getattr(self, f"_{name}")(index)
        while self.woken:
            woken, self.woken = self.woken, {}
            for request in woken:
                if not request.is_answered:
                    request.check()

    def _send(self, _: int) -> None:
        self.messages.append(self.client.send())

    def _receive(self, _: int) -> None:
        message = self.messages.popleft()
        follower = self.client.follower if self.client.follower != NO_BROKER else None
        session, error = self.sessions.find(message.session_id, message.session_epoch, follower)
        assert session is not None, error
        _Request(self, session, message.number).begin(message)

    def _answer(self, _: int) -> None:
        number, parts = self.answers.popleft()
        self.client.receive(number, parts, discards=False)

    def _discard(self, _: int) -> None:
        number, parts = self.answers.popleft()
        self.client.receive(number, parts, discards=True)

    def _time(self, _: int) -> None:
        session = self.session()
        assert session is not None
        assert session.parked is not None
        session.parked.finish()

    def _produce(self, index: int) -> None:
        self.partitions[index].produce()

    def _elect(self, index: int) -> None:
        self.partitions[index].elect()

    def _delete(self, index: int) -> None:
        self.partitions[index].delete()

    def _other(self, index: int) -> None:
        self.partitions[index].other_fetches()

    def _confirm(self, index: int) -> None:
        self.partitions[index].confirm()

    def _leave(self, index: int) -> None:
        self.partitions[index].leave()

    def _return(self, index: int) -> None:
        self.partitions[index].is_here = True

    def _flush(self, index: int) -> None:
        assert isinstance(self.client, FollowerClient)
        self.client.flush(index)

    def _learn(self, index: int) -> None:
        assert isinstance(self.client, FollowerClient)
        self.client.learn(index)

    # States.

    def come_to_rest(self) -> str:
        """Without faults, until two waits in a row bring nothing; returns what is missing then."""
        idle = 0
        # A bound that catches an endless exchange: a small world rests after some 50 steps.
        for _ in range(1_000):
            steps = self.steps()
            if steps:
                before = self._progress()
                self.do(steps[-1])  # The client comes last: it may repeat a refused request.
                if before != self._progress():
                    idle = 0
                continue
            if idle > 2:
                return self.client.missing()
            idle += 1
            self._time(0)
        return self.client.missing() or "it never rests"

    def _progress(self) -> Any:
        client = self.client
        logs = [_numbers(one.replica) for one in self.partitions]
        if isinstance(client, FollowerClient):
            logs += [_numbers(one) for one in client.replicas]
        own = (client.positions, client.marks) if isinstance(client, ConsumerClient) else ()
        return repr((logs, own))

    def key(self) -> Any:
        """Worlds with equal keys behave alike."""
        session, client = self.session(), self.client
        return repr(
            (
                self._progress(),
                [_leading(one) for one in self.partitions],
                None if session is None else _of_session(session, client.requests),
                [_message(one, client.requests) for one in self.messages],
                [(client.requests - number, parts) for number, parts in self.answers],
                client.changed,
                client.forgotten,
                client.under_way,
                client.session_id,
                [
                    (asked, min(client.requests - number, client.under_way))
                    for asked, number in zip(client.asked, client.asked_in, strict=True)
                ]
                if isinstance(client, FollowerClient)
                else (),
                self.left,
            )
        )


def _numbers(replica: Replica) -> Any:
    log = replica.log
    ends = (log.log_start_offset, log.high_watermark, log.log_end_offset, log.flushed_offset)
    return (*ends, replica.leader_epoch)


def _leading(partition: Partition) -> Any:
    role = partition.role
    ends = [one.log_end_offset for one in role.insync.followers.values()]
    parked = len(role.parked_at_end), len(role.parked_at_high_watermark)
    return role.insync.state, ends, parked, partition.is_here, role.epoch_start_offset


def _of_session(session: FetchSession[Partition], requests: int) -> Any:
    readers = [
        (one.place, one.answered, one.fetch, one.partition is None)
        for one in session.readers.values()
    ]
    parked = session.parked
    return (
        sorted(readers),
        [one.place for one in session.pending],
        sorted(one.place for one in session.outsiders),
        [one.place for one in session.served],
        requests - parked.number if isinstance(parked, _Request) else None,
    )


def _message(message: Message, requests: int) -> Any:
    return requests - message.number, message.named, message.forgotten
