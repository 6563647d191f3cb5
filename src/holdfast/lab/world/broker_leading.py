"""The leader side of a simulated broker: serves producers, followers and consumers."""

from __future__ import annotations

from holdfast.core import Fetch, FetchAnswer
from holdfast.lab.world.broker_parts import BrokerParts
from holdfast.lab.world.disk import DiskError
from holdfast.lab.world.messages import (
    Batch,
    BoundsRequest,
    BoundsResponse,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ReadRequest,
    ReadResponse,
)
from holdfast.model import NO_BROKER, NO_OFFSET, BrokerId, ErrorCode, Offset

PRODUCE_TIMEOUT_MS = 30_000


class LeadingSide(BrokerParts):
    """Serves producers, followers and consumers."""

    def _on_produce(self, request: ProduceRequest) -> None:
        deadline = self.world.now_ms + PRODUCE_TIMEOUT_MS
        waiter = ("produce", request.producer, request.number)
        answer = self.replica.append_as_leader(request.header, request.acks, waiter, deadline)
        if answer.error:
            if request.acks:
                self.answer_producer(waiter, answer.error, NO_OFFSET)
            return
        if answer.duplicate:
            for record in request.records:
                self._trace(
                    "duplicate",
                    producer=request.producer,
                    record=record.label,
                    offset=answer.base_offset,
                )
            self.run(answer.effects)
            return
        header = request.header._replace(
            base_offset=answer.base_offset, leader_epoch=answer.leader_epoch
        )
        if self._write(Batch(header, request.records), as_leader=True):
            self.run(self.replica.appended(self.world.now_ms))
        elif not self.replica.has_failed and request.acks:
            self.answer_producer(waiter, ErrorCode.KAFKA_STORAGE_ERROR, NO_OFFSET)

    def _on_fetch(self, request: FetchRequest) -> None:
        asked = request.asked
        request_id = (request.broker_epoch, request.number)
        if self.newest_fetch.get(request.follower) == request_id:
            return  # A duplicate: a connection delivers a request once.
        self.newest_fetch[request.follower] = request_id
        answer = self.replica.fetched(_position(request), self.world.now_ms)
        self._trace(
            "fetched",
            follower=request.follower,
            fetch_offset=asked.fetch_offset,
            last_fetched_epoch=asked.last_fetched_epoch,
            leader_epoch=asked.current_leader_epoch,
            noted=not answer.error and answer.diverging is None,
        )
        # A newer request replaces a parked one.
        self.forget_fetch(request.follower)
        self.run(answer.effects)
        empty = answer.diverging is None and answer.fetch_offset == answer.end_offset
        if not answer.error and empty and self._park(request):
            return
        self._answer_fetch(request, answer)

    def _park(self, request: FetchRequest) -> bool:
        wait_ms = self.world.settings.replica_fetch_wait_max_ms
        deadline = self.world.now_ms + wait_ms
        waiter = ("fetch", request.follower)
        if not self.replica.park_fetch(waiter, deadline, at_end=True):
            return False
        self.parked[request.follower] = request
        self.world.later(wait_ms, self.tick)
        self._trace(
            "fetch-parked", follower=request.follower, fetch_offset=request.asked.fetch_offset
        )
        return True

    def forget_fetch(self, follower: BrokerId) -> None:
        """Discard the parked fetch of a follower whose connection broke."""
        self.parked.pop(follower, None)
        self.replica.unpark_fetch(("fetch", follower))

    def _answer_fetch(self, request: FetchRequest, answer: FetchAnswer) -> None:
        batches: tuple[Batch, ...] = ()
        end = answer.end_offset
        if not answer.error and answer.diverging is None:
            if request.max_records:
                end = Offset(min(end, answer.fetch_offset + request.max_records))
            answer, batches = self._read(answer, end)
        if answer.error:
            self._trace("fetch-refused", follower=request.follower, error=answer.error.name)
        elif answer.diverging is not None:
            self._trace(
                "diverged",
                follower=request.follower,
                epoch=answer.diverging.epoch,
                end_offset=answer.diverging.end_offset,
            )
        else:
            self._trace(
                "fetch-answered",
                follower=request.follower,
                base_offset=answer.fetch_offset,
                end_offset=end,
                high_watermark=answer.high_watermark,
            )
        response = FetchResponse(self.id, request.asked, request.number, answer, batches)
        self._send(self.world.name_of(request.follower), response)

    def _read(self, answer: FetchAnswer, end: Offset) -> tuple[FetchAnswer, tuple[Batch, ...]]:
        """The records of an answer; a log that cannot be read goes offline."""
        try:
            return answer, self.disk.read(answer.fetch_offset, end)
        except DiskError as error:
            self._fail(error)
            return answer._replace(error=ErrorCode.KAFKA_STORAGE_ERROR), ()

    def _wake(self, waiter: object) -> None:
        assert isinstance(waiter, tuple)
        request = self.parked.pop(waiter[1], None)
        if request is None:
            return
        answer = self.replica.read(_position(request))
        self._answer_fetch(request, answer)

    def _on_bounds_request(self, request: BoundsRequest) -> None:
        log = self.replica.log
        if self.replica.presumes_leadership:
            response = BoundsResponse(
                self.id, request.asked, log.log_start_offset, log.log_end_offset
            )
            self._send(self.world.name_of(request.follower), response)

    def _on_read(self, request: ReadRequest) -> None:
        fetch = Fetch(
            NO_BROKER,
            request.fetch_offset,
            request.last_fetched_epoch,
            request.current_leader_epoch,
        )
        answer = self.replica.read(fetch)
        batches: tuple[Batch, ...] = ()
        if not answer.error and answer.diverging is None:
            answer, batches = self._read(answer, answer.end_offset)
        self._send(
            request.consumer,
            ReadResponse(self.id, request.consumer, request.fetch_offset, answer, batches),
        )

    def tick(self) -> None:
        """Let the core handle its timeouts."""
        if self.alive and not self.paused:
            self.run(self.replica.tick(self.world.now_ms))


def _position(request: FetchRequest) -> Fetch:
    asked = request.asked
    return Fetch(
        request.follower,
        asked.fetch_offset,
        asked.last_fetched_epoch,
        asked.current_leader_epoch,
        request.broker_epoch,
    )
