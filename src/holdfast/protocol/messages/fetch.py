"""Fetch: how consumers read, and how followers replicate.

A follower's request has its broker id, in `replica_id` before version 15 and in `replica_state`
since. The batches of a response are views, so that a fetch copies nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import (
    ZERO_UUID,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Uuid,
)
from holdfast.protocol.message import Request, Response
from holdfast.protocol.messages.leader_hints import LeaderIdAndEpoch, NodeEndpoint


class FetchRequest(Request, api_key=1, versions="4-18", flexible=12):
    """Read from partitions, waiting until `min_bytes` are there or `max_wait_ms` are over.

    Version 7 adds sessions (KIP-227): after the first, only changes are sent. Version 12 lets the
    leader find where logs diverge (KIP-595), 13 names topics by id, 15 carries the broker epoch
    (KIP-903).
    """

    cluster_id: String | None = field("12+", tag=0, default=None, ignorable=True)
    replica_id: Int32 = field("0-14", default=-1)
    """A follower's broker id; -1 for a consumer."""
    replica_state: FetchReplicaState | None = field("15+", tag=1, default=None)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    isolation_level: Int8 = 0
    """0 reads up to the high watermark, 1 up to the last stable offset."""
    session_id: Int32 = field("7+", default=0, ignorable=True)
    session_epoch: Int32 = field("7+", default=-1, ignorable=True)
    """0 opens a session, -1 closes it or does without (KIP-227)."""
    topics: Sequence[FetchTopic]
    forgotten_topics_data: Sequence[FetchForgottenTopic] = field("7+", default=())
    rack_id: String = field("11+", default="", ignorable=True)


class FetchReplicaState(Struct):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchTopic(Struct):
    topic: String = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partitions: Sequence[FetchPartition]


class FetchPartition(Struct):
    partition: Int32
    current_leader_epoch: Int32 = field("9+", default=-1, ignorable=True)
    fetch_offset: Int64
    last_fetched_epoch: Int32 = field("12+", default=-1)
    """The epoch of the record before `fetch_offset`, for the leader to detect a divergence."""
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: Int32
    replica_directory_id: Uuid = field("17+", tag=0, default=ZERO_UUID, ignorable=True)
    high_watermark: Int64 = field("18+", tag=1, default=2**63 - 1, ignorable=True)


class FetchForgottenTopic(Struct):
    topic: String = field("7-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partitions: Sequence[Int32]


class FetchResponse(Response, api_key=1, versions="4-18", flexible=12):
    """Batches and offsets of each log.

    The last batch may be truncated: a reader drops it. From version 12 on, `diverging_epoch` makes
    a follower truncate its log.
    """

    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("7+", default=0, ignorable=True)
    session_id: Int32 = field("7+", default=0)
    responses: Sequence[FetchableTopicResponse]
    node_endpoints: Sequence[NodeEndpoint] = field("16+", tag=0, default=())


class FetchableTopicResponse(Struct):
    topic: String = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partitions: Sequence[FetchPartitionData]


class FetchPartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: FetchEpochEndOffset | None = field("12+", tag=0, default=None)
    current_leader: LeaderIdAndEpoch | None = field("12+", tag=1, default=None)
    snapshot_id: FetchSnapshotId | None = field("12+", tag=2, default=None)
    aborted_transactions: Sequence[AbortedTransaction] | None
    preferred_read_replica: Int32 = field("11+", default=-1)
    """A nearer replica to fetch from instead (KIP-392); -1 for none."""
    records: Records | None


class FetchEpochEndOffset(Struct):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class FetchSnapshotId(Struct):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Struct):
    producer_id: Int64
    first_offset: Int64
