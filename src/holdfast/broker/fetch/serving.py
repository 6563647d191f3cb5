"""What goes into the answer to a fetch: records, offsets and errors of each partition.

The core decides what a reader may read (`Replica.read`) and which partitions an answer names
(`FetchSession.answered`); this module reads the records, within the request's limits and the
replication quota.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.broker.clock import Clock
from holdfast.broker.fetch.leader_hints import leader_endpoints
from holdfast.broker.fetch.replica_selector import preferred_replica
from holdfast.broker.fetch.replication_throttle import Quota, is_throttled
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.calls import Call
from holdfast.broker.replication.partition import Partition
from holdfast.core import FetchAnswer, FetchSession, FetchSessions, Reader
from holdfast.model import NO_BROKER, NO_OFFSET, ErrorCode
from holdfast.protocol import Payload
from holdfast.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchEpochEndOffset,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from holdfast.protocol.messages.leader_hints import LeaderIdAndEpoch
from holdfast.storage import LogOfflineError, OffsetOutOfRangeError, aborted_transactions

if TYPE_CHECKING:
    from holdfast.broker.trace_events import BrokerTrace

NAMES_LEADER_FROM: Final = 16
"""KIP-951: a client that asked the wrong broker gets the leader and its address."""
READ_COMMITTED: Final = 1
_LEADER_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchParts:
    """The parts of a broker that serve fetches."""

    sessions: FetchSessions[Partition]
    find: Callable[[str | bytes, int], Partition | None]
    """A partition on this broker, by its topic's name or id."""
    metadata: Metadata
    configs: Configs
    leader_quota: Quota
    loop: asyncio.AbstractEventLoop
    clock: Clock
    trace: BrokerTrace | None


class FetchServing:
    """Makes the answer to one request."""

    __slots__ = ("_call", "_parts", "_request", "_session")

    def __init__(self, parts: FetchParts, call: Call, session: FetchSession[Partition]) -> None:
        request = call.request
        assert isinstance(request, FetchRequest)
        self._parts = parts
        self._call = call
        self._request = request
        self._session = session

    def _partition_of(self, reader: Reader[Partition]) -> Partition | None:
        """The reader's partition, if this broker hosts it now."""
        partition = reader.partition
        if partition is None:
            partition = self._parts.find(*reader.place)
            if partition is not None:
                self._session.meet(reader, partition)
        return partition

    def _judge(self, reader: Reader[Partition]) -> FetchAnswer:
        """What a reader may read now."""
        partition = self._partition_of(reader)
        if partition is None:
            error = self._parts.metadata.not_hosted_error(*reader.place)
            return FetchAnswer(error, NO_OFFSET, NO_OFFSET, NO_OFFSET, NO_OFFSET, None, ())
        read_committed = self._request.isolation_level == READ_COMMITTED
        return partition.replica.read(reader.fetch, read_committed=read_committed)

    def _quota_wait_s(self, partition: Partition) -> float:
        """How long a throttled follower that has used its quota must wait; 0: it need not."""
        follower = self._session.follower
        if follower is None or not is_throttled(partition, follower, at_leader=True):
            return 0.0
        return self._parts.leader_quota.wait_s()

    def _answer(self, judged: Mapping[Reader[Partition], FetchAnswer]) -> None:
        """Answer with what is available; `judged` has the results of this tick."""
        session = self._session
        wanted = max(0, min(self._request.max_bytes, self._parts.configs.settings.fetch_max_bytes))
        budget = self._call.connection.room_for(wanted)
        topics: dict[str | bytes, list[FetchPartitionData]] = {}
        sent = 0
        for reader in session.take_pending():
            read = judged.get(reader) or self._judge(reader)
            data, size, is_all = self._data(reader, read, budget - sent, is_first=sent == 0)
            sent += size
            is_refused = bool(data.error_code) or data.diverging_epoch is not None
            offsets = (data.high_watermark, data.log_start_offset)
            if session.answered(reader, offsets, size, is_refused=is_refused, is_all=is_all):
                topics.setdefault(reader.place[0], []).append(data)
        self._send(topics)

    def _send(self, topics: dict[str | bytes, list[FetchPartitionData]]) -> None:
        responses = [
            FetchableTopicResponse(topic=topic, partitions=partitions)
            if isinstance(topic, str)
            else FetchableTopicResponse(topic_id=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ]
        endpoints = leader_endpoints(self._parts.metadata, topics.values())
        self._call.answer(
            FetchResponse(
                session_id=self._session.id, responses=responses, node_endpoints=endpoints
            )
        )

    def _data(
        self, reader: Reader[Partition], read: FetchAnswer, budget: int, *, is_first: bool
    ) -> tuple[FetchPartitionData, int, bool]:
        """One partition's part of the answer, its size, and whether nothing is left to send."""
        partition = reader.partition
        if partition is None or read.error:
            return self._refused(reader, read.error), 0, True
        records: Payload = b""
        start, end = reader.fetch.fetch_offset, read.end_offset
        missing = end - start
        nearest = self._preferred_replica(partition, start)
        if nearest != NO_BROKER:
            missing = 0
        may_send = missing > 0 and budget >= (not is_first)
        try:
            if may_send and not self._quota_wait_s(partition):
                records = partition.read(start, min(reader.max_bytes, budget), end)
            aborted = self._aborted(partition, start, end)
        except LogOfflineError as error:
            partition.read_failed(error)
            return self._refused(reader, ErrorCode.KAFKA_STORAGE_ERROR), 0, True
        except OffsetOutOfRangeError:
            return self._refused(reader, ErrorCode.OFFSET_OUT_OF_RANGE), 0, True
        follower, traffic = self._session.follower, partition.traffic
        traffic.fetches += 1
        if follower is None:
            traffic.bytes_out += len(records)
        else:
            traffic.replication_bytes_out += len(records)
        if records and follower is not None and is_throttled(partition, follower, at_leader=True):
            self._parts.leader_quota.spend(len(records))
        numbers = partition.replica.log
        data = FetchPartitionData(
            partition_index=reader.place[1],
            error_code=0,
            high_watermark=numbers.high_watermark,
            last_stable_offset=numbers.last_stable_offset,
            log_start_offset=numbers.log_start_offset,
            aborted_transactions=aborted,
            preferred_read_replica=nearest,
            records=records,
        )
        if read.diverging is not None:
            epoch, end_offset = read.diverging
            data.diverging_epoch = FetchEpochEndOffset(epoch=epoch, end_offset=end_offset)
        return data, len(records), missing <= 0 or bool(records)

    def _preferred_replica(self, partition: Partition, fetch_offset: int) -> int:
        rack = self._request.rack_id
        if not rack or self._session.follower is not None:
            return NO_BROKER
        settings, brokers = self._parts.configs.settings, self._parts.metadata.brokers
        return preferred_replica(settings, brokers, partition.replica, rack, fetch_offset)

    def _aborted(
        self, partition: Partition, start: int, end: int
    ) -> list[AbortedTransaction] | None:
        if self._request.isolation_level != READ_COMMITTED:
            return None
        return [
            AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
            for one in aborted_transactions(partition.log, start, end)
        ]

    def _refused(self, reader: Reader[Partition], error: ErrorCode) -> FetchPartitionData:
        data = FetchPartitionData(
            partition_index=reader.place[1],
            error_code=error,
            high_watermark=-1,
            aborted_transactions=None,
            records=b"",
        )
        if reader.partition is not None:
            reader.partition.traffic.failed_fetches += bool(error)
        if error in _LEADER_MOVED and self._call.version >= NAMES_LEADER_FROM:
            known = self._parts.metadata.leader_of(*reader.place)
            if known is not None:
                leader, epoch = known
                data.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        return data
