"""Serves fetches: to followers up to the end of the log, to consumers up to the high watermark.

The broker reads for a request when it arrives. If there is nothing to send, it parks the request
with its session. A partition that grows wakes the session, and all sessions that were woken in one
tick are answered at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.broker.fetch.fetch_sessions import NO_SESSION, FetchSession, Reader
from holdfast.broker.fetch.leader_hints import fetch_endpoints
from holdfast.broker.fetch.replica_selector import preferred_replica
from holdfast.broker.fetch.replication_throttle import is_throttled
from holdfast.broker.network.calls import Call
from holdfast.core import Fetch, Leader
from holdfast.model import (
    NO_BROKER,
    BrokerId,
    EpochEnd,
    ErrorCode,
    LeaderEpoch,
    Offset,
)
from holdfast.protocol import Payload
from holdfast.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchEpochEndOffset,
    FetchLeaderIdAndEpoch,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from holdfast.storage import (
    LogOfflineError,
    OffsetOutOfRangeError,
    aborted_transactions,
    locate,
)

if TYPE_CHECKING:
    from holdfast.broker.node import Broker
    from holdfast.broker.replication.partition import Partition

FOREVER_MS: Final = 1 << 62
BY_ID_FROM: Final = 13
NAMES_LEADER_FROM: Final = 16
"""KIP-951: a client that asked the wrong broker gets the leader and its address."""
READ_COMMITTED: Final = 1


class _Verdict(NamedTuple):
    """The result for one partition."""

    error: ErrorCode
    upto: int
    diverging: EpochEnd | None


_NOT_HERE: Final = _Verdict(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, None)
_NOTHING: Final[Mapping[Reader, _Verdict]] = {}


class ParkedFetch:
    """A fetch that is being answered."""

    __slots__ = (
        "_broker",
        "_call",
        "_is_waking",
        "_request",
        "_session",
        "_timer",
        "_verdicts",
    )

    def __init__(self, broker: Broker, call: Call, session: FetchSession) -> None:
        request = call.request
        assert isinstance(request, FetchRequest)
        self._broker = broker
        self._call = call
        self._request = request
        self._session = session
        self._timer: asyncio.TimerHandle | None = None
        self._is_waking = False
        self._verdicts: dict[Reader, _Verdict] = {}

    def now_ms(self) -> int:
        """The clock's."""
        return self._broker.clock.now_ms()

    def begin(self) -> None:
        """Read the partitions that the request names, and answer or wait."""
        session, request, broker = self._session, self._request, self._broker
        overtaken = session.parked
        if overtaken is not None:
            # A newer request replaces a parked one: it names more partitions, and the client
            # must not wait for the old one first.
            overtaken.finish()
        else:
            session.serve_again()
        session.last_request_ms = broker.clock.now_ms()
        is_first = session.id == NO_SESSION or not session.readers
        named = session.apply(request, by_id=self._call.version >= BY_ID_FROM)
        self._note_outsiders(named)
        for reader in named:
            if overtaken is not None or session.follower is not None:
                # The follower discards an older answer for this partition, because it has asked
                # again. Repeat what that answer carried, for example a high watermark.
                reader.is_answered = False
            self._look_up(reader)
            if session.follower is not None and reader.partition is not None:
                self._verdicts[reader] = self._note(reader, reader.partition, session.follower)
        if is_first and session.id != NO_SESSION:
            # The first answer names every partition, so that the client has the session's state.
            self.finish()
            return
        self._answer_or_park()

    def _look_up(self, reader: Reader) -> None:
        partition = self._broker.replicas.find(reader.topic, reader.index)
        if partition is not None:
            self._session.meet(reader, partition)

    def _note_outsiders(self, named: list[Reader]) -> None:
        session = self._session
        if session.outsiders and session.follower is not None:
            for reader in [one for one in session.outsiders if one not in named]:
                if reader.partition is not None:
                    self._note(reader, reader.partition, session.follower)

    def _note(self, reader: Reader, partition: Partition, follower: BrokerId) -> _Verdict:
        """Report a follower's position to the core."""
        fetch = Fetch(
            follower,
            Offset(reader.fetch_offset),
            LeaderEpoch(reader.last_fetched_epoch),
            LeaderEpoch(reader.current_leader_epoch),
            self._session.broker_epoch,
        )
        answer = partition.replica.fetched(fetch, self._session.last_request_ms)
        trace = self._broker.trace
        if trace is not None:
            trace.fetched(partition, fetch, answer)
        partition.run(answer.effects)
        role = partition.replica.role
        if isinstance(role, Leader):
            self._session.isr_changed(reader, role.insync.isr)
        return _Verdict(answer.error, answer.end_offset, answer.diverging)

    def _judge(self, reader: Reader) -> _Verdict:
        """What a reader may read now."""
        partition = reader.partition
        if partition is None:
            return self._unknown(reader)
        replica = partition.replica
        if self._session.follower is None:
            answer = replica.read(
                Offset(reader.fetch_offset),
                LeaderEpoch(reader.current_leader_epoch),
                LeaderEpoch(reader.last_fetched_epoch),
            )
            upto = answer.end_offset
            if self._request.isolation_level == READ_COMMITTED:
                upto = min(upto, partition.last_stable_offset)
            return _Verdict(answer.error, upto, answer.diverging)
        verdict = self._verdicts.get(reader)
        if verdict is not None and (verdict.error or verdict.diverging is not None):
            return verdict
        if not replica.presumes_leadership:
            return _NOT_HERE
        if reader.current_leader_epoch not in (-1, replica.leader_epoch):
            # A position of an earlier leader epoch, from before our latest election.
            return _Verdict(ErrorCode.FENCED_LEADER_EPOCH, 0, None)
        return _Verdict(ErrorCode.NONE, replica.log.log_end_offset, None)

    def _unknown(self, reader: Reader) -> _Verdict:
        error = self._broker.metadata.not_hosted_error(reader.topic, reader.index)
        return _Verdict(error, 0, None)

    # Waiting.

    def _answer_or_park(self) -> None:
        """Answer if there is enough to send; otherwise wait."""
        request, session = self._request, self._session
        available = 0
        judged: dict[Reader, _Verdict] = {}
        for reader in session.pending:
            verdict = judged[reader] = self._judge(reader)
            if verdict.error or verdict.diverging is not None:
                self.finish()
                return
            available += self._available(reader, verdict.upto)
        if available >= request.min_bytes or request.max_wait_ms <= 0:
            self.finish(judged)
            return
        at_end = session.follower is not None
        for reader in session.pending:
            if reader.partition is not None:
                reader.partition.replica.park_fetch(session, FOREVER_MS, at_end=at_end)
        session.parked = self
        if self._timer is None:
            loop = self._broker.loop
            self._timer = loop.call_later(request.max_wait_ms / 1000, self.finish)
            self._call.dropped = self._drop

    def _drop(self) -> None:
        """The connection is lost: a client may have asked to wait for weeks."""
        self._stop_waiting()
        if self._session.id == NO_SESSION:
            self._session.close()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._session.parked is self:
            self._session.parked = None

    def _available(self, reader: Reader, upto: int) -> int:
        """Bytes that could be sent; counted only as exactly as `min_bytes` needs."""
        missing = upto - reader.fetch_offset
        if missing > 0 and self._must_wait(reader):
            return 0
        if missing <= 0 or self._request.min_bytes <= 1:
            return max(missing, 0)
        assert reader.partition is not None
        try:
            found = locate(reader.partition.log, reader.fetch_offset, reader.max_bytes, upto)
        except (LogOfflineError, OffsetOutOfRangeError):
            return self._request.min_bytes  # Answer now, with the error.
        return found.size if found is not None else 0

    def _must_wait(self, reader: Reader) -> bool:
        """Whether a throttled follower has used its quota; then it is checked again later."""
        follower, partition = self._session.follower, reader.partition
        if follower is None or partition is None:
            return False
        if not is_throttled(partition, follower, at_leader=True):
            return False
        wait_s = self._broker.leader_quota.wait_s()
        if wait_s > 0:
            self._broker.loop.call_later(wait_s, self.wake)
        return wait_s > 0

    def wake(self) -> None:
        """A partition has grown: check again when this tick is over."""
        if not self._is_waking:
            self._is_waking = True
            self._broker.loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._is_waking = False
        if not self._call.is_answered:
            self._session.parked = None
            self._answer_or_park()

    # Answering.

    def finish(self, judged: Mapping[Reader, _Verdict] = _NOTHING) -> None:
        """Answer with what is available; `judged` has the results of a check in this tick."""
        if self._call.is_answered:
            return
        session = self._session
        self._stop_waiting()
        wanted = max(0, min(self._request.max_bytes, self._broker.fetch_max_bytes))
        budget = self._call.connection.room_for(wanted)
        topics: dict[str | bytes, list[FetchPartitionData]] = {}
        is_full = session.id == NO_SESSION
        at_end = session.follower is not None
        pending, session.pending = session.pending, {}
        unserved: list[Reader] = []
        sent = 0
        for reader in pending:
            verdict = judged.get(reader) or self._judge(reader)
            data, size, is_all = self._data(reader, verdict, budget - sent, is_first=sent == 0)
            sent += size
            if is_full or size or _has_updates(reader, data):
                reader.is_answered = True
                reader.answered_high_watermark = data.high_watermark
                reader.answered_start = data.log_start_offset
                topics.setdefault(reader.topic, []).append(data)
            if not is_all or data.error_code or data.diverging_epoch is not None:
                unserved.append(reader)
            elif size:
                session.was_served(reader)
            elif not is_full and reader.partition is not None:
                reader.partition.replica.park_fetch(session, FOREVER_MS, at_end=at_end)
        # A partition that was not served comes first next time.
        for reader in unserved:
            session.pending[reader] = None
        self._send(topics)
        if is_full:
            session.close()

    def _send(self, topics: dict[str | bytes, list[FetchPartitionData]]) -> None:
        responses = [
            FetchableTopicResponse(topic=topic, partitions=partitions)
            if isinstance(topic, str)
            else FetchableTopicResponse(topic_id=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ]
        self._call.answer(
            FetchResponse(
                session_id=self._session.id,
                responses=responses,
                node_endpoints=fetch_endpoints(self._broker.metadata, topics.values()),
            )
        )

    def _data(
        self, reader: Reader, verdict: _Verdict, budget: int, *, is_first: bool
    ) -> tuple[FetchPartitionData, int, bool]:
        """One partition's part of the answer, its size, and whether nothing is left to send."""
        partition = reader.partition
        if partition is None or verdict.error:
            return self._refused(reader, verdict.error), 0, True
        records: Payload = b""
        missing = verdict.upto - reader.fetch_offset
        nearest = NO_BROKER
        if self._session.follower is None and self._request.rack_id:
            nearest = preferred_replica(
                self._broker, partition, self._request.rack_id, reader.fetch_offset
            )
            if nearest != NO_BROKER:
                missing = 0
        may_send = missing > 0 and verdict.diverging is None and budget >= (not is_first)
        try:
            if may_send and not self._must_wait(reader):
                limit = min(reader.max_bytes, budget)
                records = partition.read(reader.fetch_offset, limit, verdict.upto)
            aborted = self._aborted(partition, reader.fetch_offset, verdict.upto)
        except LogOfflineError as error:
            partition.failed(error)
            return self._refused(reader, ErrorCode.KAFKA_STORAGE_ERROR), 0, True
        except OffsetOutOfRangeError:
            return self._refused(reader, ErrorCode.OFFSET_OUT_OF_RANGE), 0, True
        follower = self._session.follower
        if records and follower is not None and is_throttled(partition, follower, at_leader=True):
            self._broker.leader_quota.spend(len(records))
        numbers = partition.replica.log
        data = FetchPartitionData(
            partition_index=reader.index,
            error_code=0,
            high_watermark=numbers.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=numbers.log_start_offset,
            aborted_transactions=aborted,
            preferred_read_replica=nearest,
            records=records,
        )
        if verdict.diverging is not None:
            epoch, end_offset = verdict.diverging
            data.diverging_epoch = FetchEpochEndOffset(epoch=epoch, end_offset=end_offset)
        return data, len(records), missing <= 0 or bool(records)

    def _aborted(
        self, partition: Partition, start: int, end: int
    ) -> list[AbortedTransaction] | None:
        if self._request.isolation_level != READ_COMMITTED:
            return None
        return [
            AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
            for one in aborted_transactions(partition.log, start, end)
        ]

    def _refused(self, reader: Reader, error: ErrorCode) -> FetchPartitionData:
        data = FetchPartitionData(
            partition_index=reader.index,
            error_code=error,
            high_watermark=-1,
            aborted_transactions=None,
            records=b"",
        )
        if error in _LEADER_MOVED and self._call.version >= NAMES_LEADER_FROM:
            known = self._broker.metadata.leader_of(reader.topic, reader.index)
            if known is not None:
                leader, epoch = known
                data.current_leader = FetchLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        return data


_LEADER_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def _has_updates(reader: Reader, data: FetchPartitionData) -> bool:
    return (
        not reader.is_answered
        or data.error_code != ErrorCode.NONE
        or data.high_watermark != reader.answered_high_watermark
        or data.log_start_offset != reader.answered_start
        or data.diverging_epoch is not None
    )
