"""Administration of transactions: find hanging ones (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import Int16, Int32, Int64, String
from holdfast.protocol.message import Request, Response


class DescribeProducersRequest(Request, api_key=61, versions="0", flexible=0):
    """Ask a leader for the active producers of its logs."""

    topics: Sequence[DescribeProducersTopicRequest]


class DescribeProducersTopicRequest(Struct):
    name: String
    partition_indexes: Sequence[Int32]


class DescribeProducersResponse(Response, api_key=61, versions="0", flexible=0):
    """Each producer's last epoch, sequence and open transaction."""

    throttle_time_ms: Int32 = 0
    topics: Sequence[DescribeProducersTopicResponse]


class DescribeProducersTopicResponse(Struct):
    name: String
    partitions: Sequence[DescribeProducersPartitionResponse]


class DescribeProducersPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None
    active_producers: Sequence[ProducerState]


class ProducerState(Struct):
    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


class DescribeTransactionsRequest(Request, api_key=65, versions="0", flexible=0):
    """Ask a coordinator about transactions by their transactional ids."""

    transactional_ids: Sequence[String]


class DescribeTransactionsResponse(Response, api_key=65, versions="0", flexible=0):
    """The state and partitions of each transaction."""

    throttle_time_ms: Int32 = 0
    transaction_states: Sequence[DescribedTransaction]


class DescribedTransaction(Struct):
    error_code: Int16
    transactional_id: String
    transaction_state: String
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: Sequence[DescribeTransactionsTopicData]


class DescribeTransactionsTopicData(Struct):
    topic: String
    partitions: Sequence[Int32]


class ListTransactionsRequest(Request, api_key=66, versions="0-2", flexible=0):
    """List the transactions that a broker coordinates, filtered."""

    state_filters: Sequence[String]
    producer_id_filters: Sequence[Int64]
    duration_filter: Int64 = field("1+", default=-1)
    transactional_id_pattern: String | None = field("2+", default=None)


class ListTransactionsResponse(Response, api_key=66, versions="0-2", flexible=0):
    """The transactions, and the unknown states in the filter."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    unknown_state_filters: Sequence[String]
    transaction_states: Sequence[ListedTransaction]


class ListedTransaction(Struct):
    transactional_id: String
    producer_id: Int64
    transaction_state: String
