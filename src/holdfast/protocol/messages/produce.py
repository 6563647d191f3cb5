"""Produce: record batches in, offsets out.

The batches are not decoded here: `records` is a view of the received bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import ZERO_UUID, Int16, Int32, Int64, Records, String, Uuid
from holdfast.protocol.message import Request, Response
from holdfast.protocol.messages.leader_hints import LeaderIdAndEpoch, NodeEndpoint


class ProduceRequest(Request, api_key=0, versions="3-13", flexible=9):
    """Append a batch to each of some partitions. With acks=0 there is no answer at all.

    Version 9 is flexible, 13 names topics by id. Kafka still advertises versions 0 to 2, which it
    cannot read, because old librdkafka takes their absence for a broker without compression.
    """

    transactional_id: String | None = None
    acks: Int16
    """-1 waits for the whole ISR, 1 for the leader alone, 0 sends no response."""
    timeout_ms: Int32
    topic_data: Sequence[TopicProduceData]


class TopicProduceData(Struct):
    name: String = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partition_data: Sequence[PartitionProduceData]


class PartitionProduceData(Struct):
    index: Int32
    records: Records | None


class ProduceResponse(Response, api_key=0, versions="3-13", flexible=9):
    """The offset of each batch, or the error.

    Version 10 names the current leader to a client that asked the wrong broker (KIP-951).
    """

    responses: Sequence[TopicProduceResponse]
    throttle_time_ms: Int32 = 0
    node_endpoints: Sequence[NodeEndpoint] = field("10+", tag=0, default=())


class TopicProduceResponse(Struct):
    name: String = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partition_responses: Sequence[PartitionProduceResponse]


class PartitionProduceResponse(Struct):
    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = -1
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    record_errors: Sequence[BatchIndexAndErrorMessage] = field("8+", default=(), ignorable=True)
    error_message: String | None = field("8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = field("10+", tag=0, default=None)


class BatchIndexAndErrorMessage(Struct):
    batch_index: Int32
    batch_index_error_message: String | None = None
