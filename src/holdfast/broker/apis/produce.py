"""Produce: appends batches; answers when all of them have what `acks` asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.broker.clock import Clock
from holdfast.broker.fetch.leader_hints import leader_endpoints
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.calls import Call
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.replicas import Replicas
from holdfast.broker.trace_events import BrokerTrace
from holdfast.core import ACKS_ALL, ACKS_NONE
from holdfast.model import BatchHeader, ErrorCode
from holdfast.protocol.messages.leader_hints import LeaderIdAndEpoch
from holdfast.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from holdfast.protocol.records import MalformedBatchError, parse_header
from holdfast.protocol.records.errors import RecordError

_MAY_ACK: Final = (-1, 0, 1)
NO_TRANSACTIONS: Final = "this broker has no transaction coordinator"
_BY_ID_FROM: Final = 13
_NAMES_LEADER_FROM: Final = 10
"""KIP-951: a client that asked the wrong broker gets the leader and its address."""


def handle(
    replicas: Replicas, metadata: Metadata, clock: Clock, trace: BrokerTrace | None, call: Call
) -> None:
    """Append to each partition; the last result sends the answer."""
    _Produce(metadata, trace, call).begin(replicas, clock)


class _Produce:
    """One request, and its partitions without a result."""

    __slots__ = ("call", "error", "has_moved", "metadata", "open", "responses", "trace")

    def __init__(self, metadata: Metadata, trace: BrokerTrace | None, call: Call) -> None:
        self.metadata = metadata
        self.trace = trace
        self.call = call
        self.open = 1
        """Partitions without an answer, and one for `begin` itself."""
        self.error = ErrorCode.NONE
        """The error of the last refused partition."""
        self.has_moved = False
        """Another broker leads a partition, and the answer names it."""
        self.responses = [
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[])
            for topic in call.request.topic_data
        ]

    def begin(self, replicas: Replicas, clock: Clock) -> None:
        request: ProduceRequest = self.call.request
        by_id = self.call.version >= _BY_ID_FROM
        wall_ms, deadline_ms = clock.wall_ms(), clock.now_ms() + request.timeout_ms
        find, refused = replicas.find, self.call.connection.refused
        for topic, response in zip(request.topic_data, self.responses, strict=True):
            key = topic.topic_id if by_id else topic.name
            for asked in topic.partition_data:
                answer = PartitionProduceResponse(index=asked.index, error_code=0, base_offset=-1)
                response.partition_responses.append(answer)  # type: ignore[attr-defined]
                self.open += 1
                partition = find(key, asked.index)
                slot = _Slot(self, key, asked, answer, partition)
                if partition is None:
                    slot.finished(self.metadata.not_hosted_error(key, asked.index), -1)
                elif refused and slot.is_out_of_order():
                    slot.finished(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
                else:
                    _append(partition, asked, request.acks, slot, deadline_ms, wall_ms)
        self.one_less()

    def _end_without_answer(self) -> None:
        """acks=0 has no answer that could name an error. A client that loses its connection
        refreshes its metadata.
        """
        call = self.call
        if self.error:
            call.warn("connection closed: acks=0", reason=self.error.name)
            call.answer_by_closing()
        else:
            call.answer_nothing()

    def one_less(self) -> None:
        """One partition is done; after the last one the answer leaves."""
        self.open -= 1
        if self.open or self.call.is_answered:
            return
        if self.call.request.acks == ACKS_NONE:
            self._end_without_answer()
        else:
            topics = [topic.partition_responses for topic in self.responses]
            endpoints = []
            if self.has_moved:
                endpoints = leader_endpoints(self.metadata, topics)
            self.call.answer(ProduceResponse(responses=self.responses, node_endpoints=endpoints))

    def name_leader(self, key: str | bytes, answer: PartitionProduceResponse) -> None:
        """Name the leader to a client that asked the wrong broker."""
        known = self.metadata.leader_of(key, answer.index)
        if known is None or self.call.version < _NAMES_LEADER_FROM:
            return
        leader, epoch = known
        answer.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        self.has_moved = True


class _Slot:
    """One partition of a request that waits for its result."""

    __slots__ = ("_answer", "_asked", "_key", "_partition", "_produce")

    def __init__(
        self,
        produce: _Produce,
        key: str | bytes,
        asked: PartitionProduceData,
        answer: PartitionProduceResponse,
        partition: Partition | None,
    ) -> None:
        self._produce = produce
        self._key = key
        self._asked = asked
        self._answer = answer
        self._partition = partition

    def finished(self, error: ErrorCode, base_offset: int) -> None:
        """The batch is acknowledged or refused."""
        answer = self._answer
        if error is ErrorCode.INVALID_TXN_STATE:
            error = self._transactional_refusal()
        answer.error_code = error
        partition = self._partition
        if not error:
            answer.base_offset = base_offset
            trace = self._produce.trace
            if trace is not None and partition is not None:
                call = self._produce.call
                trace.acknowledged(partition, call.client_id or "", base_offset, call.request.acks)
        if partition is not None:
            answer.log_start_offset = partition.replica.log.log_start_offset
            if not error and partition.rules.is_append_time:
                answer.log_append_time_ms = partition.append_time_ms
        if partition is not None:
            partition.traffic.produces += 1
            partition.traffic.failed_produces += bool(error)
        if error:
            self._produce.error = error
            if header := self._header():
                place = (self._key, self._asked.index)
                self._produce.call.connection.refused.note(place, header, error)
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._produce.name_leader(self._key, answer)
        self._produce.one_less()

    def is_out_of_order(self) -> bool:
        """Whether an earlier batch that was refused on this connection must come first."""
        place, header, partition = (self._key, self._asked.index), self._header(), self._partition
        assert partition is not None
        known, refused = partition.replica.log.producers, self._produce.call.connection.refused
        return header is not None and refused.is_out_of_order(place, header, known)

    def _header(self) -> BatchHeader | None:
        """The batch, as the core sees it; None if it cannot be read."""
        try:
            return parse_header(self._asked.records or b"").to_model()
        except MalformedBatchError:
            return None

    def _transactional_refusal(self) -> ErrorCode:
        """Kafka's error for a transactional batch that belongs to no open transaction."""
        self._answer.error_message = NO_TRANSACTIONS
        if self._produce.call.request.transactional_id is None:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return ErrorCode.INVALID_TXN_STATE

    def refused(self, error: ErrorCode, reason: str, records: Sequence[RecordError] = ()) -> None:
        """The same with a message for the client, and the records in error (KIP-467)."""
        self._answer.error_message = reason
        self._answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in records
        ]
        self.finished(error, -1)


def _append(
    partition: Partition,
    asked: PartitionProduceData,
    acks: int,
    slot: _Slot,
    deadline_ms: int,
    wall_ms: int,
) -> None:
    if acks not in _MAY_ACK:
        slot.refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}; -1, 0 or 1 is allowed")
        return
    records = asked.records
    if not records:
        slot.refused(ErrorCode.INVALID_RECORD, "no records")
        return
    if acks == ACKS_ALL and not partition.presumes_leadership:
        slot.finished(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        return
    try:
        partition.append(memoryview(records), acks, slot, deadline_ms, wall_ms)
    except MalformedBatchError as error:
        slot.refused(error.error_code, str(error), error.record_errors)
