"""The follower side of a simulated broker: fetch, copy, truncate."""

from __future__ import annotations

from holdfast.lab.world.broker_parts import RETRY_MS, BrokerParts
from holdfast.lab.world.messages import (
    Batch,
    BoundsRequest,
    BoundsResponse,
    FetchRequest,
    FetchResponse,
)
from holdfast.model import ErrorCode

SOCKET_TIMEOUT_MS = 30_000
"""replica.socket.timeout.ms: a connection without an answer for so long counts as broken."""


class FollowingSide(BrokerParts):
    """Copies the leader's log."""

    def maybe_fetch(self) -> None:
        """Send the next fetch, unless one is outstanding."""
        if not self.alive or self.paused or self.outstanding or self.replica.has_failed:
            return
        asked = self.replica.next_fetch()
        if asked is None:
            return
        self.fetches += 1
        request = FetchRequest(
            self.id, asked, self.incarnation.broker_epoch, self.fetches, self.fetch_max_records
        )
        self.outstanding = request
        self._trace(
            "fetch-sent",
            leader=asked.leader,
            fetch_offset=asked.fetch_offset,
            last_fetched_epoch=asked.last_fetched_epoch,
            leader_epoch=asked.current_leader_epoch,
        )
        self._send(self.world.name_of(asked.leader), request)
        number = request.number
        self.world.later(SOCKET_TIMEOUT_MS, lambda: self.connection_lost(number))

    def connection_lost(self, number: int) -> None:
        """The outstanding fetch gets no answer: fetch again later."""
        if self.outstanding and self.outstanding.number == number:
            self.outstanding = None
            self.world.later(RETRY_MS, self.maybe_fetch)

    def _on_fetch_response(self, response: FetchResponse) -> None:
        current = self.outstanding is not None and self.outstanding.number == response.number
        if current:
            self.outstanding = None
        if not self.replica.accepts_answer(response.asked):
            self._trace("answer-dropped", leader=response.leader, reason="stale")
            self.maybe_fetch()
            return
        answer = response.answer
        if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._send(self.world.name_of(response.leader), BoundsRequest(self.id, response.asked))
        elif answer.error:
            self.world.later(RETRY_MS, self.maybe_fetch)
        elif answer.diverging is not None:
            self.run(self.replica.diverged(answer.diverging))
            self.maybe_fetch()
        else:
            self._copy(response)
            self.maybe_fetch()

    def _copy(self, response: FetchResponse) -> None:
        written: list[Batch] = []
        # With its guard taken out, a stale answer is appended at the end of the log. A disk that
        # forgets writes ends before the log end offset of the core.
        end = self.replica.log.log_end_offset
        for batch in response.batches:
            placed = Batch(batch.header._replace(base_offset=end), batch.records)
            if not self._write(placed, as_leader=False):
                return
            end = placed.header.end_offset
            written.append(placed)
        headers = [batch.header for batch in written]
        high_watermark = response.answer.high_watermark
        self.run(self.replica.append_as_follower(headers, high_watermark, self.world.now_ms))

    def _on_bounds_response(self, response: BoundsResponse) -> None:
        if self.replica.accepts_answer(response.asked):
            self.run(self.replica.out_of_range(response.start, response.end))
        self.maybe_fetch()
