"""The records of __consumer_offsets: Kafka's bytes, and no exception for any bytes."""

from __future__ import annotations

import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import (
    CommittedOffset,
    GroupMetadata,
    GroupRecord,
    LeaderEpoch,
    MemberMetadata,
    Offset,
    OffsetRecord,
    TopicPartition,
)
from holdfast.protocol import Message
from holdfast.protocol.codec.careful_decoder import read_carefully
from holdfast.protocol.coordinator_records import (
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    Skipped,
    decode_record,
    encode_record,
    java_hash,
    partition_for,
    subscribed_topics,
)
from holdfast.protocol.records import BatchOptions, NewRecord, build_batch
from holdfast.storage import LogSettings, RealDisk
from tests.support import kafka_jars
from tests.unit.protocol.sampler import Sampler, title
from tests.unit.protocol.schemas import CURRENT, read_schema, schema
from tests.unit.protocol.test_schemas import compare_message
from tests.unit.storage import kafka
from tests.unit.storage.support import NOW, open_

STORED: tuple[type[Message], ...] = (
    OffsetCommitKey,
    OffsetCommitValue,
    GroupMetadataKey,
    GroupMetadataValue,
)
P0 = TopicPartition("topic", 3)
PLAIN = CommittedOffset(Offset(5), LeaderEpoch(2), "note", 77)
MEMBER = MemberMetadata("m-1", "i", "client", "/127.0.0.1", 60_000, 10_000, b"sub", b"mine")
GROUP = GroupMetadata("consumer", 3, "range", "m-1", 99, (MEMBER,))

texts = st.text(max_size=20).filter(lambda text: text.isprintable())
longs = st.integers(-1, 2**63 - 1)
ints = st.integers(-1, 2**31 - 1)
offsets = st.builds(
    CommittedOffset, longs.map(Offset), ints.map(LeaderEpoch), texts, longs, st.just(-1)
)
members = st.builds(
    MemberMetadata,
    texts,
    st.none() | texts,
    texts,
    texts,
    ints,
    ints,
    st.binary(max_size=20),
    st.binary(max_size=20),
)
groups = st.builds(
    GroupMetadata,
    texts,
    ints,
    st.none() | texts,
    st.none() | texts,
    longs,
    st.lists(members, max_size=3).map(tuple),
)
partitions = st.builds(TopicPartition, texts, st.integers(0, 2**31 - 1))
records = st.builds(GroupRecord, texts, st.none() | groups) | st.builds(
    OffsetRecord, texts, partitions, st.none() | offsets
)


# Bytes.


@given(record=records)
def test_a_record_survives_the_log(record: GroupRecord | OffsetRecord) -> None:
    assert decode_record(*encode_record(record)) == record


def test_an_offset_has_kafkas_bytes() -> None:
    key, value = encode_record(OffsetRecord("g", P0, PLAIN))
    assert key == b"\0\x01\0\x01g\0\x05topic\0\0\0\x03"
    assert value == b"\0\x03\0\0\0\0\0\0\0\x05\0\0\0\x02\0\x04note" + bytes(7) + b"M"


def test_an_offset_with_an_expiry_timestamp_has_the_version_for_it() -> None:
    expiring = CommittedOffset(Offset(5), metadata="", commit_timestamp_ms=1, expire_timestamp_ms=2)
    record = OffsetRecord("g", P0, expiring)
    key, value = encode_record(record)
    assert value is not None
    assert value[:2] == b"\0\x01"
    assert decode_record(key, value) == record


def test_a_tombstone_has_no_value() -> None:
    assert encode_record(GroupRecord("g", None)) == (b"\0\x02\0\x01g", None)
    assert encode_record(OffsetRecord("g", P0, None))[1] is None


@pytest.mark.parametrize("version", OffsetCommitValue.VERSIONS)
def test_offsets_of_all_versions_are_read(version: int) -> None:
    value = OffsetCommitValue(offset=5, leader_epoch=2, metadata="note", commit_timestamp=77)
    for kind in (b"\0\0", b"\0\x01"):
        key = kind + OffsetCommitKey(group="g", topic="topic", partition=3).encode(0)
        read = decode_record(key, bytes((0, version)) + value.encode(version))
        expected = PLAIN if version >= 3 else PLAIN._replace(leader_epoch=LeaderEpoch(-1))
        assert read == OffsetRecord("g", P0, expected)


@pytest.mark.parametrize("version", GroupMetadataValue.VERSIONS)
def test_groups_of_all_versions_are_read(version: int) -> None:
    key, value = encode_record(GroupRecord("g", GROUP))
    assert value is not None
    content = GroupMetadataValue.decode(value[2:], 3)
    read = decode_record(key, bytes((0, version)) + content.encode(version))
    assert isinstance(read, GroupRecord)
    assert read.metadata is not None
    [member] = read.metadata.members
    assert member.assignment == b"mine"
    assert member.group_instance_id == ("i" if version >= 3 else None)
    assert member.rebalance_timeout_ms == (60_000 if version >= 1 else -1)
    assert read.metadata.state_timestamp_ms == (99 if version >= 2 else -1)


def test_what_was_read_does_not_hold_the_buffer() -> None:
    key, value = encode_record(GroupRecord("g", GROUP))
    assert value is not None
    read = decode_record(memoryview(key), memoryview(value))
    assert isinstance(read, GroupRecord)
    assert read.metadata is not None
    assert type(read.metadata.members[0].assignment) is bytes


# Damage.


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"\0\x03", "kind"),
        (b"\0", b"\0\x03", "kind"),
        (b"\0\x02\0\x01g", b"\0", "version"),
        (b"\0\x03\0\x01g", b"\0\0", "kind 3"),
        (b"\xff\xff\0\x01g", None, "kind -1"),
        (b"\0\x02\0\x01g", b"\0\x05", "no version 5"),
        (b"\0\x02\0\x01g", b"\xff\xff", "no version -1"),
        (b"\0\x02\0\x09g", None, "GroupMetadataKey"),
        (b"\0\x01\0\x01g\0\x01t\0\0\0\0x", None, "after the end"),
    ],
)
def test_what_cannot_be_read_is_skipped_with_the_reason(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    skipped = decode_record(key, value)
    assert isinstance(skipped, Skipped)
    assert reason in skipped.reason


@given(record=records, rng=st.randoms(use_true_random=False))
def test_no_damage_is_fatal(record: GroupRecord | OffsetRecord, rng: Random) -> None:
    key, value = (bytearray(part or b"\0\x03") for part in encode_record(record))
    part = rng.choice((key, value))
    for _ in range(rng.randint(1, 3)):
        part[rng.randrange(len(part))] = rng.randrange(256)
    del part[rng.randint(0, len(part)) :]
    assert isinstance(decode_record(key, value), GroupRecord | OffsetRecord | Skipped)


# What consumers send each other.


def subscription(version: int, topics: list[str]) -> bytes:
    message = ConsumerProtocolSubscription(topics=topics, user_data=b"u", rack_id="r")
    return bytes((0, version)) + message.encode(min(version, 3))


@pytest.mark.parametrize("version", range(6))
def test_subscriptions_are_read_newer_ones_as_far_as_we_know(version: int) -> None:
    payload = subscription(version, ["a", "b"]) + (b"new" if version > 3 else b"")
    assert subscribed_topics(payload) == ("a", "b")


@pytest.mark.parametrize("payload", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\x09"])
def test_what_is_no_subscription_has_no_topics(payload: bytes) -> None:
    assert subscribed_topics(payload) is None


# Places.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("console-consumer-12345", 158_455_506),
        ("polygenelubricants", -(2**31)),
        ("日本", 835_047),
        ("😀", 1_772_899),
    ],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_a_group_has_its_place() -> None:
    assert partition_for("hello", 50) == 22
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("", 50) == 0


# Kafka's own word.


@pytest.mark.parametrize("cls", [*STORED, ConsumerProtocolSubscription], ids=title)
@given(rng=st.randoms(use_true_random=False))
def test_a_definition_survives_the_log(cls: type[Message], rng: Random) -> None:
    for version in cls.VERSIONS:
        message = Sampler(rng).message(cls, version)
        content = message.encode(version)
        assert cls.decode(content, version) == message
        assert read_carefully(cls.layout(version), memoryview(content), 0) == (
            message,
            len(content),
        )


@pytest.mark.slow
@pytest.mark.parametrize("cls", STORED, ids=title)
def test_a_stored_definition_is_kafkas(cls: type[Message]) -> None:
    jar = kafka.libraries() / f"kafka-group-coordinator-{kafka_jars.VERSION}.jar"
    with zipfile.ZipFile(jar) as archive:
        definition: Any = read_schema(archive, cls.__name__)
    kind = 1 if cls in (OffsetCommitKey, OffsetCommitValue) else 2
    assert definition["apiKey"] == kind
    compare(cls, definition)


@pytest.mark.slow
def test_a_subscription_is_kafkas() -> None:
    compare(ConsumerProtocolSubscription, schema(CURRENT, "ConsumerProtocolSubscription"))


def compare(cls: type[Message], definition: Any) -> None:
    assert cls.VERSIONS[0] == int(definition["validVersions"].split("-")[0])
    assert cls.VERSIONS[-1] == int(definition["validVersions"].split("-")[-1])
    compare_message(cls, definition, cls.VERSIONS)


@pytest.mark.slow
def test_kafkas_dump_tool_decodes_our_records(tmp_path: Path) -> None:
    subscribed = subscription(1, ["topic"])
    assigned = b"\0\1\0\0\0\1\0\5topic\0\0\0\1\0\0\0\3\xff\xff\xff\xff"
    member = MEMBER._replace(subscription=subscribed, assignment=assigned)
    written: list[GroupRecord | OffsetRecord] = [
        OffsetRecord("g", P0, PLAIN),
        OffsetRecord("g", P0, None),
        GroupRecord("g", GROUP._replace(members=(member,))),
        GroupRecord("g", GROUP._replace(members=(), leader=None, protocol_name=None)),
        GroupRecord("g", None),
    ]
    log = open_(RealDisk(tmp_path), LogSettings())
    new = [NewRecord(value, key, NOW) for key, value in map(encode_record, written)]
    log.append([build_batch(new, BatchOptions(leader_epoch=0))], NOW)
    log.close(NOW)
    files = sorted((tmp_path / log.directory).glob("*.log"))
    output = kafka.dump(files, "--offsets-decoder")
    assert '"group":"g","topic":"topic","partition":3' in output
    assert '"offset":5,"leaderEpoch":2,"metadata":"note","commitTimestamp":77' in output
    assert '"protocolType":"consumer","generation":3,"protocol":"range","leader":"m-1"' in output
    assert '"memberId":"m-1","groupInstanceId":"i"' in output
    assert output.count("payload: <DELETE>") == 2
    assert "rror" not in output
