"""Encodes and decodes the records of `__consumer_offsets`.

A key starts with the kind of its record, a value with its version, both int16. Values are written
in the newest version without tagged fields, as in Kafka, so that older readers can read them.
Decoding never fails: a damaged record, or one of an unknown kind or version, is returned as a
`Skipped` with the reason. One bad record must not keep a coordinator from loading.
"""

from __future__ import annotations

from struct import Struct as Packer
from typing import Final, NamedTuple

from holdfast.model import (
    NO_TIMESTAMP,
    CommittedOffset,
    GroupMetadata,
    GroupRecord,
    LeaderEpoch,
    MemberMetadata,
    Offset,
    OffsetRecord,
    TopicPartition,
)
from holdfast.protocol.codec.types import Payload
from holdfast.protocol.coordinator_records.definitions import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    StoredMember,
)
from holdfast.protocol.errors import MalformedMessage, UnsupportedVersionError

_INT16: Final = Packer(">h")
_OFFSET_KINDS: Final = (0, 1)
_OFFSET_KIND: Final = 1
_GROUP_KIND: Final = 2
_VALUE_VERSION: Final = 3
_EXPIRING_VERSION: Final = 1
"""The only version with an expiry timestamp. It has no leader epoch."""


class Skipped(NamedTuple):
    """A record that cannot be used, and why."""

    reason: str


def encode_record(record: GroupRecord | OffsetRecord) -> tuple[bytes, bytes | None]:
    """A record's key and value; the value of a tombstone is None."""
    if isinstance(record, GroupRecord):
        key = _INT16.pack(_GROUP_KIND) + GroupMetadataKey(group=record.group_id).encode(0)
        return key, None if record.metadata is None else _group_value(record.metadata)
    topic, partition = record.partition
    commit_key = OffsetCommitKey(group=record.group_id, topic=topic, partition=partition)
    key = _INT16.pack(_OFFSET_KIND) + commit_key.encode(0)
    return key, None if record.committed is None else _offset_value(record.committed)


def _offset_value(committed: CommittedOffset) -> bytes:
    expires = committed.expire_timestamp_ms != NO_TIMESTAMP
    version = _EXPIRING_VERSION if expires else _VALUE_VERSION
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
    )
    return _INT16.pack(version) + value.encode(version)


def _group_value(metadata: GroupMetadata) -> bytes:
    members = [
        StoredMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.subscription,
            assignment=member.assignment,
        )
        for member in metadata.members
    ]
    value = GroupMetadataValue(
        protocol_type=metadata.protocol_type,
        generation=metadata.generation,
        protocol=metadata.protocol_name,
        leader=metadata.leader,
        current_state_timestamp=metadata.state_timestamp_ms,
        members=members,
    )
    return _INT16.pack(_VALUE_VERSION) + value.encode(_VALUE_VERSION)


def decode_record(
    key: Payload | None, value: Payload | None
) -> GroupRecord | OffsetRecord | Skipped:
    """Decode a record. Nothing in the result is a view of the buffers."""
    if key is None or len(key) < _INT16.size:
        return Skipped("a key without a kind")
    if value is not None and len(value) < _INT16.size:
        return Skipped("a value without a version")
    kind: int = _INT16.unpack_from(key)[0]
    try:
        if kind in _OFFSET_KINDS:
            return _offset_record(key, value)
        if kind == _GROUP_KIND:
            return _group_record(key, value)
    except (MalformedMessage, UnsupportedVersionError) as error:
        return Skipped(str(error))
    return Skipped(f"records of kind {kind} are unknown")


def _offset_record(key: Payload, value: Payload | None) -> OffsetRecord:
    read = OffsetCommitKey.decode(memoryview(key)[_INT16.size :], 0)
    partition = TopicPartition(read.topic, read.partition)
    if value is None:
        return OffsetRecord(read.group, partition, None)
    version = _INT16.unpack_from(value)[0]
    content = OffsetCommitValue.decode(memoryview(value)[_INT16.size :], version)
    committed = CommittedOffset(
        Offset(content.offset),
        LeaderEpoch(content.leader_epoch),
        content.metadata,
        content.commit_timestamp,
        content.expire_timestamp,
    )
    return OffsetRecord(read.group, partition, committed)


def _group_record(key: Payload, value: Payload | None) -> GroupRecord:
    group_id = GroupMetadataKey.decode(memoryview(key)[_INT16.size :], 0).group
    if value is None:
        return GroupRecord(group_id, None)
    version = _INT16.unpack_from(value)[0]
    content = GroupMetadataValue.decode(memoryview(value)[_INT16.size :], version)
    members = tuple(
        MemberMetadata(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout,
            member.session_timeout,
            bytes(member.subscription),
            bytes(member.assignment),
        )
        for member in content.members
    )
    metadata = GroupMetadata(
        content.protocol_type,
        content.generation,
        content.protocol,
        content.leader,
        content.current_state_timestamp,
        members,
    )
    return GroupRecord(group_id, metadata)
