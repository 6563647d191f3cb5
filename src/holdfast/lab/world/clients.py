"""Simulated producers and consumers that follow the rules of real clients.

A producer caches the leader, retries retriable errors, and with idempotence numbers its batches.
A consumer reads up to the high watermark, remembers the epoch of what it read (KIP-320), and
commits its position when its mode says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.core import ACKS_ALL, ACKS_NONE
from holdfast.lab.world.client_history import Acknowledgement, Status, Work
from holdfast.lab.world.messages import (
    Envelope,
    ProduceRequest,
    ProduceResponse,
    ReadRequest,
    ReadResponse,
    Record,
)
from holdfast.model import (
    NO_EPOCH,
    BatchHeader,
    ErrorCode,
    LeaderEpoch,
    Offset,
    ProducerId,
)

if TYPE_CHECKING:
    from holdfast.lab.world.world import World

REQUEST_TIMEOUT_MS = 30_000
_START = Offset(0)


@dataclass(slots=True)
class Attempt:
    """A batch that is not answered yet."""

    header: BatchHeader
    records: list[Acknowledgement]
    attempts: int = 0
    lost: bool = False
    target: str = ""


@dataclass(slots=True)
class SimProducer:
    """One producer."""

    world: World
    name: str
    acks: int = ACKS_ALL
    idempotent: bool = False
    retries: int = 0
    ignores_answers: bool = False
    """Fire and forget: the producer ignores errors."""
    request_timeout_ms: int = REQUEST_TIMEOUT_MS
    retries_immediately: bool = True
    """False: a retry waits until `retry` is called, as a back-off does."""
    leader: str = ""
    producer_id: int = -1
    sequence: int = 0
    numbers: int = 0
    under_way: dict[int, Attempt] = field(default_factory=dict)
    refused: list[Attempt] = field(default_factory=list)
    """Batches that the producer gave up; the application may send them again."""

    def send(self, labels: list[str], *, to: str = "", together: bool = False) -> None:
        """Send records: one batch each, or all in one."""
        groups = [labels] if together else [[label] for label in labels]
        for group in groups:
            records = [self.world.history.add(label, self.name, self.acks) for label in group]
            self._start(Attempt(self._header(len(group)), records), to)

    def _start(self, attempt: Attempt, to: str = "") -> None:
        number = self.numbers
        self.numbers += 1
        self.under_way[number] = attempt
        self._transmit(number, attempt, to)

    def _header(self, count: int) -> BatchHeader:
        if not self.idempotent:
            return BatchHeader(count)
        header = BatchHeader(
            count,
            producer_id=ProducerId(self.producer_id),
            producer_epoch=0,
            base_sequence=self.sequence,
        )
        self.sequence += count
        return header

    def _transmit(self, number: int, attempt: Attempt, to: str = "") -> None:
        if not self.leader:
            self.leader = self.world.leader_name()
        attempt.target = to or self.leader
        attempt.lost = False
        if not attempt.target:
            if self.retries_immediately:
                living = (name for name, one in self.world.brokers.items() if one.alive)
                attempt.target = next(living, "")  # The broker that returned the metadata.
                self._give_up(number, attempt, ErrorCode.LEADER_NOT_AVAILABLE)
            attempt.lost = True
            return
        records = tuple(Record(one.label, one.key) for one in attempt.records)
        broker = self.world.brokers[attempt.target]
        for one in attempt.records:
            self.world.recorder.emit(
                "sent", broker.id, producer=self.name, record=one.label, acks=self.acks
            )
        request = ProduceRequest(self.name, number, self.acks, attempt.header, records)
        self.world.send(self.name, attempt.target, request)
        if self.acks == ACKS_NONE:
            # There will be no answer: the producer takes it for written immediately.
            del self.under_way[number]
            for one in attempt.records:
                one.status = Status.ACKNOWLEDGED
        else:
            self.world.later(self.request_timeout_ms, lambda: self.connection_lost(number))

    def receive(self, envelope: Envelope) -> None:
        """Handle an answer: an acknowledgement or an error."""
        response = envelope.payload
        assert isinstance(response, ProduceResponse)
        attempt = self.under_way.get(response.number)
        if attempt is None:
            return
        if response.error is ErrorCode.NONE:
            del self.under_way[response.number]
            self._keep(response, attempt)
        elif self._may_retry(response.error, attempt):
            self._note(attempt, response.error, response.broker, response.base_offset)
            if self.retries_immediately:
                attempt.attempts += 1
                self.leader = self.world.leader_name()
                self._transmit(response.number, attempt)
            else:
                attempt.lost = True
        else:
            self._give_up(response.number, attempt, response.error, response.base_offset)

    def _may_retry(self, error: ErrorCode, attempt: Attempt) -> bool:
        # A gap in the sequence closes once the batch before it has been sent again.
        gap = self.idempotent and error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if gap and next(iter(self.under_way.values())) is not attempt:
            attempt.lost = True
            return False
        return error.retriable and attempt.attempts < self.retries

    def _keep(self, response: ProduceResponse, attempt: Attempt) -> None:
        for place, one in enumerate(attempt.records):
            one.status = Status.ACKNOWLEDGED
            one.offset = Offset(response.base_offset + place)
            self.world.recorder.emit(
                "acknowledged",
                response.broker,
                producer=self.name,
                record=one.label,
                offset=one.offset,
                acks=self.acks,
            )
        self._retry_gaps()

    def _retry_gaps(self) -> None:
        for number, attempt in tuple(self.under_way.items()):
            if attempt.lost and self.idempotent and attempt.attempts < self.retries:
                attempt.attempts += 1
                self._transmit(number, attempt)

    def _give_up(
        self, number: int, attempt: Attempt, error: ErrorCode, base_offset: int = -1
    ) -> None:
        broker = self.world.brokers.get(attempt.target)
        self._note(attempt, error, broker.id if broker else None, base_offset)
        if attempt.lost:
            return
        del self.under_way[number]
        self.refused.append(attempt)
        for one in attempt.records:
            one.status = Status.REFUSED
            one.error = error.name

    def _note(
        self, attempt: Attempt, error: ErrorCode, broker: int | None, base_offset: int
    ) -> None:
        for place, one in enumerate(attempt.records):
            offset = base_offset + place if base_offset >= 0 else None
            self.world.recorder.emit(
                "refused",
                broker,
                producer=self.name,
                record=one.label,
                error=error.name,
                offset=offset,
            )

    def broker_lost(self, broker: str) -> None:
        """A broker died: it will not answer any outstanding request."""
        for number, attempt in tuple(self.under_way.items()):
            if attempt.target == broker:
                self.connection_lost(number)

    def connection_lost(self, number: int) -> None:
        """There will be no answer. The producer cannot know whether the batch was appended."""
        attempt = self.under_way.get(number)
        if attempt is None or attempt.lost:
            return
        attempt.lost = True
        broker = self.world.brokers.get(attempt.target)
        for one in attempt.records:
            one.status = Status.UNANSWERED
            where = broker.id if broker else None
            self.world.recorder.emit("unanswered", where, producer=self.name, record=one.label)

    def retry(self) -> None:
        """Send again what was not answered, as far as retries allow."""
        self.leader = self.world.leader_name()
        for number, attempt in tuple(self.under_way.items()):
            if attempt.lost and attempt.attempts < self.retries:
                attempt.attempts += 1
                self._transmit(number, attempt)

    def resend(self) -> None:
        """Send the refused batches again, unless this producer ignores errors."""
        if self.ignores_answers:
            return
        self.leader = self.world.leader_name()
        refused, self.refused = self.refused, []
        for attempt in refused:
            for one in attempt.records:
                one.status = Status.SENT
            self._start(Attempt(attempt.header, attempt.records))


@dataclass(slots=True)
class SimConsumer:
    """One consumer (a group of one)."""

    world: World
    name: str
    auto_commit: bool = False
    idempotent_sink: bool = False
    position: Offset = _START
    position_epoch: LeaderEpoch = NO_EPOCH
    first: Offset = _START
    """The first offset it read; from there on it must get every record."""
    buffer: list[Work] = field(default_factory=list)
    alive: bool = True
    found_nothing: bool = False
    """Whether the last poll was answered with no records and no error."""

    def poll(self, from_broker: str = "") -> None:
        """Fetch from the leader (or another replica) at the position."""
        target = from_broker or self.world.leader_name()
        self.found_nothing = False
        if not target:
            error = ErrorCode.LEADER_NOT_AVAILABLE
            self._refused(None, error.name)
            return
        checks = self.world.rules.guards.consumer_epoch_check
        current = NO_EPOCH
        if checks and target == self.world.leader_name():
            current = self.world.partition_state().leader_epoch
        last = self.position_epoch if checks else NO_EPOCH
        self.world.send(self.name, target, ReadRequest(self.name, self.position, current, last))

    def receive(self, envelope: Envelope) -> None:
        """Handle an answer: records, nothing, or an error."""
        response = envelope.payload
        assert isinstance(response, ReadResponse)
        if not self.alive or response.fetch_offset != self.position:
            return
        answer = response.answer
        if answer.diverging is not None:
            self._refused(response.broker, "LOG_TRUNCATION")
            self.seek(max(answer.log_start_offset, answer.diverging.end_offset))
            return
        if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._refused(response.broker, answer.error.name)
            if any(one.consumer == self.name for one in self.world.history.consumed):
                asked = self.world.name_of(response.broker)
                self.world.invariants.sent_back(self.name, asked, self.position)
            self.seek(answer.log_start_offset)
            return
        if answer.error:
            self._refused(response.broker, answer.error.name)
            return
        self._note_hidden(response)
        self._note_skipped(response)
        self.found_nothing = not response.batches
        for batch in response.batches:
            for record in batch.records:
                self._take(response.broker, record)
            self.position_epoch = batch.header.leader_epoch
        if self.auto_commit and response.batches:
            self.commit()

    def _note_hidden(self, response: ReadResponse) -> None:
        """Record what a follower did not return, if it was acknowledged or read before."""
        world = self.world
        leader = world.true_leader()
        if leader is None or response.broker == leader.id:
            return
        shown_to = max(response.fetch_offset, response.answer.end_offset)
        read = {one.key: None for one in world.history.consumed if one.consumer == self.name}
        for key in leader.disk.keys_between(shown_to, leader.replica.log.high_watermark):
            acknowledged = world.history.acknowledgements[key].status is Status.ACKNOWLEDGED
            if acknowledged or key in read:
                world.history.hidden[key] = None

    def _note_skipped(self, response: ReadResponse) -> None:
        """Record what is below the position in the log and was never read."""
        broker = self.world.brokers[self.world.name_of(response.broker)]
        below = broker.disk.keys_between(self.first, response.fetch_offset)
        if below and response.batches:
            consumed = self.world.history.consumed
            read = {one.key: None for one in consumed if one.consumer == self.name}
            self.world.history.skipped.update({key: None for key in below if key not in read})

    def seek(self, offset: Offset) -> None:
        """Continue at another offset."""
        self.position = self.first = offset
        self.position_epoch = NO_EPOCH

    def _take(self, broker: int, record: Record) -> None:
        work = Work(self.name, self.position, record.label, record.key)
        self.buffer.append(work)
        self.world.history.consumed.append(work)
        self.world.recorder.emit(
            "consumed", broker, consumer=self.name, offset=self.position, record=record.label
        )
        self.position = Offset(self.position + 1)

    def _refused(self, broker: int | None, error: str) -> None:
        self.world.recorder.emit(
            "read-refused", broker, consumer=self.name, offset=self.position, error=error
        )

    def work(self, count: int) -> None:
        """Process the next records that were read."""
        for work in self.buffer[:count]:
            seen = any(
                one.offset == work.offset and one.consumer == self.name
                for one in self.world.history.processed
            )
            if not (self.idempotent_sink and seen):
                self.world.history.processed.append(work)
            self.world.recorder.emit(
                "processed", consumer=self.name, offset=work.offset, record=work.label
            )
        del self.buffer[:count]

    def commit(self) -> None:
        """Commit the position: everything below counts as processed."""
        done = self.position if self.auto_commit else Offset(self.position - len(self.buffer))
        self.world.history.committed[self.name] = done
        self.world.recorder.emit("committed", consumer=self.name, offset=done)

    def crash(self) -> None:
        """Crash: the records that were read but not processed are forgotten."""
        self.alive = False
        self.buffer.clear()
        self.world.recorder.emit("consumer-crashed", consumer=self.name)

    def restart(self) -> None:
        """Start at the committed position."""
        self.alive = True
        self.seek(Offset(self.world.history.committed.get(self.name, 0)))
