"""The records of `__consumer_offsets`, field by field, as Kafka defines them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import ZERO_UUID, Bytes, Int32, Int64, String, Uuid
from holdfast.protocol.message import Message


class OffsetCommitKey(Message, versions="0"):
    """Group, topic and partition. Key kinds 0 (before 0.9) and 1 have this form."""

    group: String
    topic: String
    partition: Int32


class OffsetCommitValue(Message, versions="0-4", flexible=4):
    """The committed offset. Only version 1 has an expiry timestamp."""

    offset: Int64
    leader_epoch: Int32 = field("3+", default=-1, ignorable=True)
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Int64 = field("1", default=-1, ignorable=True)
    topic_id: Uuid = field("4+", tag=0, default=ZERO_UUID, ignorable=True)


class GroupMetadataKey(Message, versions="0"):
    """The group id."""

    group: String


class GroupMetadataValue(Message, versions="0-4", flexible=4):
    """A generation and its members."""

    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Int64 = field("2+", default=-1, ignorable=True)
    members: Sequence[StoredMember]


class StoredMember(Struct):
    member_id: String
    group_instance_id: String | None = field("3+", default=None, ignorable=True)
    client_id: String
    client_host: String
    rebalance_timeout: Int32 = field("1+", default=-1, ignorable=True)
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes
