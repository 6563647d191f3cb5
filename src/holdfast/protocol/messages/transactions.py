"""Transactions and idempotent producers (KIP-98, KIP-890)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import ZERO_UUID, Bool, Int8, Int16, Int32, Int64, String, Uuid
from holdfast.protocol.message import Request, Response


class InitProducerIdRequest(Request, api_key=22, versions="0-6", flexible=2):
    """Ask for a producer id and epoch; with a transactional id this fences older producers.

    Version 6 is for two-phase commit (KIP-939) and not stable in Kafka 4.4.
    """

    transactional_id: String | None
    transaction_timeout_ms: Int32
    producer_id: Int64 = field("3+", default=-1)
    producer_epoch: Int16 = field("3+", default=-1)
    enable2_pc: Bool = field("6+", default=False)
    keep_prepared_txn: Bool = field("6+", default=False)


class InitProducerIdResponse(Response, api_key=22, versions="0-6", flexible=2):
    """The producer id and epoch to write with."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
    ongoing_txn_producer_id: Int64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: Int16 = field("6+", default=-1)


class AddPartitionsToTxnRequest(Request, api_key=24, versions="0-5", flexible=3):
    """Add partitions to a transaction before writing to them.

    Clients send versions 0 to 3; brokers send 4 and later, for several transactions (KIP-890).
    """

    transactions: Sequence[AddPartitionsToTxnTransaction] = field("4+", default=())
    v3_and_below_transactional_id: String = field("0-3", default="")
    v3_and_below_producer_id: Int64 = field("0-3", default=0)
    v3_and_below_producer_epoch: Int16 = field("0-3", default=0)
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = field("0-3", default=())


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = False
    topics: Sequence[AddPartitionsToTxnTopic]


class AddPartitionsToTxnTopic(Struct):
    name: String
    partitions: Sequence[Int32]


class AddPartitionsToTxnResponse(Response, api_key=24, versions="0-5", flexible=3):
    """Whether each partition was added."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("4+", default=0, ignorable=True)
    results_by_transaction: Sequence[AddPartitionsToTxnResult] = field("4+", default=())
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = field(
        "0-3", default=()
    )


class AddPartitionsToTxnResult(Struct):
    transactional_id: String
    topic_results: Sequence[AddPartitionsToTxnTopicResult]


class AddPartitionsToTxnTopicResult(Struct):
    name: String
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult]


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: Int32
    partition_error_code: Int16


class AddOffsetsToTxnRequest(Request, api_key=25, versions="0-4", flexible=3):
    """Add a group's offsets to a transaction."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


class AddOffsetsToTxnResponse(Response, api_key=25, versions="0-4", flexible=3):
    """Whether the group's offsets were added."""

    throttle_time_ms: Int32 = 0
    error_code: Int16


class EndTxnRequest(Request, api_key=26, versions="0-5", flexible=3):
    """Commit or abort a transaction."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool
    """True commits, False aborts."""


class EndTxnResponse(Response, api_key=26, versions="0-5", flexible=3):
    """Whether the transaction ended. Version 5 has the next producer epoch (KIP-890)."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = field("5+", default=-1, ignorable=True)
    producer_epoch: Int16 = field("5+", default=-1, ignorable=True)


class TxnOffsetCommitRequest(Request, api_key=28, versions="0-6", flexible=3):
    """Commit a group's offsets as part of a transaction."""

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id_or_member_epoch: Int32 = field("3+", default=-1)
    member_id: String = field("3+", default="")
    group_instance_id: String | None = field("3+", default=None)
    topics: Sequence[TxnOffsetCommitRequestTopic]


class TxnOffsetCommitRequestTopic(Struct):
    name: String = field("0-5", default="", ignorable=True)
    topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)
    partitions: Sequence[TxnOffsetCommitRequestPartition]


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    committed_metadata: String | None


class TxnOffsetCommitResponse(Response, api_key=28, versions="0-6", flexible=3):
    """Whether each offset was written."""

    throttle_time_ms: Int32 = 0
    topics: Sequence[TxnOffsetCommitResponseTopic]


class TxnOffsetCommitResponseTopic(Struct):
    name: String = field("0-5", default="", ignorable=True)
    topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)
    partitions: Sequence[TxnOffsetCommitResponsePartition]


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class WriteTxnMarkersRequest(Request, api_key=27, versions="1-2", flexible=1):
    """A transaction coordinator has the leaders write the markers that end a transaction."""

    markers: Sequence[WritableTxnMarker]


class WritableTxnMarker(Struct):
    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool
    topics: Sequence[WritableTxnMarkerTopic]
    coordinator_epoch: Int32
    transaction_version: Int8 = field("2+", default=0, ignorable=True)


class WritableTxnMarkerTopic(Struct):
    name: String
    partition_indexes: Sequence[Int32]


class WriteTxnMarkersResponse(Response, api_key=27, versions="1-2", flexible=1):
    """Whether each log has its marker."""

    markers: Sequence[WritableTxnMarkerResult]


class WritableTxnMarkerResult(Struct):
    producer_id: Int64
    topics: Sequence[WritableTxnMarkerTopicResult]


class WritableTxnMarkerTopicResult(Struct):
    name: String
    partitions: Sequence[WritableTxnMarkerPartitionResult]


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: Int32
    error_code: Int16
