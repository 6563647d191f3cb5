"""The rules of Kafka's broker, one by one."""

from __future__ import annotations

import dataclasses
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import EndMarker, ErrorCode
from holdfast.protocol.records import (
    Batch,
    BatchBuilder,
    BatchOptions,
    Compression,
    MalformedBatchError,
    NewRecord,
    RecordBatchHeader,
    Rules,
    build_batch,
    build_end_marker,
    check_batch,
    check_produced,
    check_records,
    needs_records,
    stamp,
    validation,
)
from holdfast.protocol.records.crc import crc32c
from holdfast.protocol.records.validation import MOST_RECORD_ERRORS
from tests.unit.protocol.records.samples import CODECS, SOME, few, record_lists

NOW = 2_000_000
IDEMPOTENT = BatchOptions(producer_id=1, producer_epoch=0, base_sequence=0)


def refusal(data: bytes | bytearray, rules: Rules = Rules()) -> MalformedBatchError:  # noqa: B008
    with pytest.raises(MalformedBatchError) as caught:
        check_produced(data, NOW, rules)
    return caught.value


def forged(position: int, format_: str, number: int, options: BatchOptions = IDEMPOTENT) -> bytes:
    """A batch with one field of the header changed and the CRC made to match."""
    data = build_batch(SOME, options)
    struct.pack_into(format_, data, position, number)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


@pytest.mark.parametrize("codec", CODECS)
def test_an_honest_batch_passes_at_every_depth(codec: Compression) -> None:
    data = build_batch(SOME, dataclasses.replace(IDEMPOTENT, compression=codec))
    batch, _ = check_produced(data, NOW)
    facts = check_records(batch, NOW)
    assert facts == (2_000_000, True)
    assert check_records(batch, NOW, Rules(is_append_time=True)) == facts


@few
@given(record_lists)
def test_the_facts_are_those_of_the_records(records: list[NewRecord]) -> None:
    batch = Batch(build_batch(records, BatchOptions(base_offset=5)))
    facts = check_records(batch, 2**42, Rules(timestamp_after_max_ms=2**60))
    times = [record.timestamp for record in records]
    assert facts == (max(times), True)


def test_damage_is_retriable() -> None:
    data = build_batch(SOME)
    for position in (21, 40, 61, len(data) - 1):
        broken = bytearray(data)
        broken[position] ^= 0x10
        error = refusal(broken)
        assert error.error_code is ErrorCode.CORRUPT_MESSAGE
        assert error.error_code.retriable
        assert error.position == 17


def test_a_batch_above_max_message_bytes_is_refused_before_it_is_summed() -> None:
    data = build_batch(SOME)
    data[-1] ^= 1
    error = refusal(data, Rules(max_message_bytes=len(data) - 1))
    assert error.error_code is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(data, Rules(max_message_bytes=len(data))).error_code.retriable


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (forged(23, ">i", 4), "4 records, but 5 offsets"),
        (forged(23, ">i", 2), "4 records cannot be in 3 offsets"),
        (forged(23, ">i", -1), "no offsets from 0"),
        (forged(57, ">i", 0), "a batch without records"),
        (forged(57, ">i", -1), "-1 records"),
        (forged(57, ">i", 5), "5 records"),
        (forged(53, ">i", -1), "no sequence number -1"),
        (forged(51, ">h", -1), "epoch -1"),
        (forged(43, ">q", -2), "producer -2"),
        (forged(21, ">h", 0x20), "control records"),
        (forged(21, ">h", 0x40), "delete horizon"),
        (forged(21, ">h", 0x80), "attributes 0x80"),
        (forged(21, ">h", -0x8000), "attributes 0x8000"),
        (forged(21, ">h", 0x10, BatchOptions()), "a transaction without a producer id"),
    ],
)
def test_a_lie_under_a_good_crc_is_not_retriable(data: bytes, reason: str) -> None:
    error = refusal(data)
    assert reason in error.reason
    assert error.error_code is ErrorCode.INVALID_RECORD
    assert not error.error_code.retriable


def test_a_producer_sends_one_batch_and_may_number_it_as_it_likes() -> None:
    data = build_batch(SOME)
    error = refusal(bytes(data + data))
    assert error.error_code is ErrorCode.INVALID_RECORD
    assert error.position == len(data)
    stamp(data, 0, 7, 0)
    check_produced(data, NOW)


def test_markers_come_from_coordinators_only() -> None:
    marker = build_end_marker(EndMarker(True, 1, 0, 0), NOW)
    check_batch(Batch(marker))
    assert "control" in refusal(marker).reason


def test_the_codec_must_exist_and_zstd_needs_a_new_request() -> None:
    unknown = refusal(forged(21, ">h", 0x05))
    assert unknown.error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    data = build_batch(SOME, BatchOptions(compression=Compression.ZSTD))
    check_produced(data, NOW)
    error = refusal(data, Rules(allows_zstd=False))
    assert error.error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_follower_takes_what_compaction_left() -> None:
    builder = BatchBuilder(BatchOptions(base_offset=100, leader_epoch=2))
    builder.append(b"v", b"k", 1, offset_delta=3)
    check_batch(Batch(builder.build(last_offset_delta=8)))
    check_batch(Batch(BatchBuilder(BatchOptions(base_offset=9)).build(last_offset_delta=0)))


def test_timestamps_too_far_ahead_are_seen_in_the_header() -> None:
    data = build_batch([NewRecord(b"v", timestamp=NOW + 3_600_001)])
    assert refusal(data).error_code is ErrorCode.INVALID_TIMESTAMP
    check_produced(data, NOW + 1)
    check_produced(data, NOW, Rules(is_append_time=True))


def test_timestamps_too_far_behind_need_the_records() -> None:
    data = build_batch([NewRecord(b"v", timestamp=1_000), NewRecord(b"v", timestamp=NOW)])
    check_produced(data, NOW)
    rules = Rules(timestamp_before_max_ms=5_000)
    assert needs_records(rules)
    assert refusal(data, rules).error_code is ErrorCode.INVALID_TIMESTAMP
    check_produced(build_batch([NewRecord(b"v")]), NOW, rules)  # No timestamp is no offence.
    assert not needs_records(Rules())
    assert not needs_records(Rules(timestamp_before_max_ms=5_000, is_append_time=True))


def test_a_record_ahead_is_seen_behind_a_lying_header() -> None:
    data = build_batch([NewRecord(b"v", timestamp=NOW + 10_000_000)])
    struct.pack_into(">q", data, 35, NOW)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    assert refusal(data).error_code is ErrorCode.INVALID_TIMESTAMP
    batch = Batch(data)
    with pytest.raises(MalformedBatchError) as caught:
        check_records(batch, NOW)
    assert caught.value.error_code is ErrorCode.INVALID_TIMESTAMP
    facts = check_records(batch, NOW, Rules(timestamp_after_max_ms=2**60))
    assert facts == (NOW + 10_000_000, False)


def test_a_producer_may_not_set_the_append_time() -> None:
    data = build_batch(SOME, BatchOptions(append_time_ms=NOW))
    assert refusal(data).error_code is ErrorCode.INVALID_TIMESTAMP


def test_a_compacted_topic_wants_keys() -> None:
    rules = Rules(needs_keys=True)
    assert needs_records(rules)
    error = refusal(build_batch(SOME), rules)
    assert error.reason == "1 record is refused; record 3 has no key, and the topic is compacted"
    assert error.record_errors == ((3, "the record has no key, and the topic is compacted"),)
    assert error.error_code is ErrorCode.INVALID_RECORD
    check_produced(build_batch(SOME[:3]), NOW, rules)


def test_every_refused_record_is_named_up_to_a_bound() -> None:
    keyed, unkeyed = NewRecord(b"v", b"k"), NewRecord(b"v")
    error = refusal(build_batch([unkeyed, keyed, unkeyed]), Rules(needs_keys=True))
    assert [index for index, _ in error.record_errors] == [0, 2]
    error = refusal(build_batch([unkeyed] * (2 * MOST_RECORD_ERRORS)), Rules(needs_keys=True))
    assert len(error.record_errors) == MOST_RECORD_ERRORS


def test_records_too_far_ahead_are_named() -> None:
    ahead = NewRecord(b"v", b"k", NOW + 10_000_000)
    error = refusal(build_batch([NewRecord(b"v", b"k", NOW), ahead]))
    assert error.error_code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1]


def test_offsets_inside_run_without_a_gap() -> None:
    builder = BatchBuilder()
    builder.append(b"v", offset_delta=1)
    with pytest.raises(MalformedBatchError, match="offset 1 where 0 belongs"):
        check_records(Batch(builder.build()), NOW)
    builder = BatchBuilder()
    builder.append(b"v")
    with pytest.raises(MalformedBatchError, match="end before 1, the batch at 3"):
        check_records(Batch(builder.build(last_offset_delta=2)), NOW)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_bomb_is_bounded_by_max_message_bytes(
    codec: Compression, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "EXPANSION_LIMIT", 4)  # Snappy shrinks to a twentieth at best.
    rules = Rules(max_message_bytes=200_000, needs_keys=True)
    data = build_batch([NewRecord(bytes(2_000_000), b"k")], BatchOptions(compression=codec))
    error = refusal(data, rules)
    assert "expands to more than 800000 bytes" in error.reason
    assert error.error_code is ErrorCode.MESSAGE_TOO_LARGE
    assert error.position == 61


@given(
    attributes=st.integers(-(2**15), 2**15 - 1) | st.integers(0, 7),
    last_delta=st.integers(-1, 3),
    count=st.integers(-1, 3),
    producer=st.tuples(*[st.integers(-2, 1)] * 3),
)
def test_a_plain_header_has_nothing_that_the_other_tests_refuse(
    attributes: int, last_delta: int, count: int, producer: tuple[int, int, int]
) -> None:
    times = (0, 0)
    fields = (0, 49, 0, 2, 0, attributes, last_delta, *times, *producer, count)
    header = RecordBatchHeader(*fields)
    if validation._is_plain(header):
        validation._check_offsets(header)
        validation._check_producer(header)
        assert not header.is_append_time
