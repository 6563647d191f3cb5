"""A fetch that is being answered: it waits until there is enough to send, or its time is over.

The broker reads for a request when it arrives. If there is nothing to send, it parks the request
with its session. A partition that grows wakes the session, and all sessions that were woken in one
tick are answered at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from holdfast.broker.fetch.serving import FetchParts, FetchServing
from holdfast.broker.network.calls import Call
from holdfast.broker.replication.partition import Partition
from holdfast.core import NO_SESSION, Asked, Fetch, FetchAnswer, FetchSession, Place, Reader
from holdfast.model import NO_BROKER, BrokerEpoch, BrokerId, LeaderEpoch, Offset
from holdfast.storage import LogOfflineError, OffsetOutOfRangeError, locate

BY_ID_FROM: Final = 13

Judged = dict[Reader[Partition], FetchAnswer]
_NOTHING: Final[Mapping[Reader[Partition], FetchAnswer]] = {}


class ParkedFetch(FetchServing):
    """A fetch that is being answered."""

    __slots__ = ("_is_waking", "_timer")

    def __init__(self, parts: FetchParts, call: Call, session: FetchSession[Partition]) -> None:
        super().__init__(parts, call, session)
        self._timer: asyncio.TimerHandle | None = None
        self._is_waking = False

    def begin(self, broker_epoch: BrokerEpoch) -> None:
        """Read the partitions that the request names, and answer or wait."""
        session = self._session
        overtaken = session.parked
        if overtaken is not None:
            # A newer request replaces a parked one: it names more partitions, and the client
            # must not wait for the old one first.
            overtaken.finish()
        reported = session.requested(
            self._named(NO_BROKER if session.follower is None else session.follower, broker_epoch),
            self._forgotten(),
            broker_epoch,
            self._parts.clock.now_ms(),
            overtakes=overtaken is not None,
        )
        judged: Judged = {}
        if session.follower is not None:
            for reader in reported:
                partition = self._partition_of(reader)
                if partition is not None:
                    judged[reader] = self._report(reader, partition)
        if session.is_new:
            self.finish(judged)
        else:
            self._answer_or_park(judged)

    def _named(self, follower: BrokerId, broker_epoch: BrokerEpoch) -> Iterator[Asked]:
        by_id = self._call.version >= BY_ID_FROM
        for topic in self._request.topics:
            key = topic.topic_id if by_id else topic.topic
            for asked in topic.partitions:
                fetch = Fetch(
                    follower,
                    Offset(asked.fetch_offset),
                    LeaderEpoch(asked.last_fetched_epoch),
                    LeaderEpoch(asked.current_leader_epoch),
                    broker_epoch,
                )
                limit = asked.partition_max_bytes
                yield (key, asked.partition), fetch, asked.log_start_offset, limit

    def _forgotten(self) -> Iterator[Place]:
        by_id = self._call.version >= BY_ID_FROM
        for topic in self._request.forgotten_topics_data:
            for index in topic.partitions:
                yield topic.topic_id if by_id else topic.topic, index

    def _report(self, reader: Reader[Partition], partition: Partition) -> FetchAnswer:
        """Report a follower's position to the core."""
        answer = self._session.fetched(reader, partition)
        if self._parts.trace is not None:
            self._parts.trace.fetched(partition, reader.fetch, answer)
        partition.run(answer.effects)
        return answer

    # Waiting.

    def _answer_or_park(self, judged: Judged) -> None:
        """Answer if there is enough to send; otherwise wait. `judged`: the results so far."""
        request, session = self._request, self._session
        available = 0
        for reader in session.pending:
            read = judged.get(reader)
            if read is None:
                read = judged[reader] = self._judge(reader)
            if read.error or read.diverging is not None:
                self.finish(judged)
                return
            available += self._available(reader, read.end_offset)
        if available >= request.min_bytes or request.max_wait_ms <= 0:
            self.finish(judged)
            return
        session.park(self)
        if self._timer is None:
            loop = self._parts.loop
            self._timer = loop.call_later(request.max_wait_ms / 1000, self.finish)
            self._call.dropped = self._drop

    def _available(self, reader: Reader[Partition], end_offset: int) -> int:
        """Bytes that could be sent; counted only as exactly as `min_bytes` needs."""
        start, partition = reader.fetch.fetch_offset, reader.partition
        missing = end_offset - start
        if missing <= 0 or partition is None:
            return 0
        wait_s = self._quota_wait_s(partition)
        if wait_s > 0:
            self._parts.loop.call_later(wait_s, self.wake)
            return 0
        if self._request.min_bytes <= 1:
            return missing
        try:
            found = locate(partition.log, start, reader.max_bytes, end_offset)
        except (LogOfflineError, OffsetOutOfRangeError):
            return self._request.min_bytes  # Answer now, with the error.
        return found.size if found is not None else 0

    def wake(self) -> None:
        """A partition has grown: check again when this tick is over."""
        if not self._is_waking:
            self._is_waking = True
            self._parts.loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._is_waking = False
        if not self._call.is_answered:
            self._session.parked = None
            self._answer_or_park({})

    # The end.

    def finish(self, judged: Mapping[Reader[Partition], FetchAnswer] = _NOTHING) -> None:
        """Answer with what is available; `judged` has the results of this tick."""
        if self._call.is_answered:
            return
        self._stop_waiting()
        self._answer(judged)
        self._close_if_single()

    def _drop(self) -> None:
        """The connection is lost: a client may have asked to wait for weeks."""
        self._stop_waiting()
        self._close_if_single()

    def _close_if_single(self) -> None:
        if self._session.id == NO_SESSION:
            self._session.close()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._session.parked is self:
            self._session.parked = None
