from __future__ import annotations

import struct

import pytest

from holdfast.model import BatchHeader, EndMarker, ErrorCode, LeaderEpoch, Offset, ProducerId
from holdfast.protocol.records import (
    Batch,
    BatchBuilder,
    BatchOptions,
    MalformedBatchError,
    batches,
    build_batch,
    build_end_marker,
    parse_header,
    read_records,
    stamp,
    stamp_max_timestamp,
)
from holdfast.protocol.records.batch_header import check_span
from tests.unit.protocol.records.samples import SOME

# The first two batches that a real broker wrote: reference of the log directory's format.
KAFKA_WROTE = bytes.fromhex(
    "000000000000000000000039000000000260 1df26d000000000000000001a1de0a9274000001a1de0a9274"
    "000000000000000000000000000000000001 0e00000001027800".replace(" ", "")
)


def test_a_batch_that_apache_kafka_wrote() -> None:
    batch = Batch(KAFKA_WROTE)
    batch.check_crc()
    header = batch.header
    assert header.size == len(KAFKA_WROTE) == 69
    assert header.crc == 1612575341
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (0, 0, 0)
    assert header.base_timestamp == header.max_timestamp == 1794726597236
    [record] = read_records(batch)
    assert record.key is None
    assert record.value is not None
    assert bytes(record.value) == b"x"


def test_stamping_leaves_the_crc_true() -> None:
    data = bytearray(b"noise") + build_batch(SOME)
    stamp(data, 5, 7_000_000_000, 42)
    batch = Batch(data, 5)
    batch.check_crc()
    assert batch.header.base_offset == 7_000_000_000
    assert batch.header.end_offset == 7_000_000_004
    assert batch.header.leader_epoch == 42
    assert [record.offset - 7_000_000_000 for record in read_records(batch)] == [0, 1, 2, 3]


def test_append_time_is_set_for_all_records_with_a_new_crc() -> None:
    data = build_batch(SOME)
    stamp_max_timestamp(data, 0, 5_555, append_time=True)
    batch = Batch(data)
    batch.check_crc()
    assert batch.header.is_append_time
    assert {record.timestamp for record in read_records(batch)} == {5_555}
    stamp_max_timestamp(data, 0, 2_000_000, append_time=False)
    assert data == build_batch(SOME)


def test_the_core_gets_the_span_that_compaction_keeps() -> None:
    options = BatchOptions(
        base_offset=100, leader_epoch=3, producer_id=9, producer_epoch=2, base_sequence=50
    )
    builder = BatchBuilder(options)
    builder.append(b"kept", b"k", 1, offset_delta=4)
    header = parse_header(builder.build(last_offset_delta=9))
    assert header.record_count == 1
    model = header.to_model()
    expected = BatchHeader(10, LeaderEpoch(3), Offset(100), ProducerId(9), 2, 50, max_timestamp=1)
    assert model == expected
    assert model.end_offset == header.end_offset == 110
    assert model.last_sequence == 59


def test_the_core_sees_what_a_marker_is() -> None:
    model = parse_header(build_end_marker(EndMarker(True, 9, 2, 7), 1_000, 5)).to_model()
    assert (model.is_transactional, model.is_control, model.last_sequence) == (True, True, -1)
    assert (model.base_offset, model.end_offset, model.max_timestamp) == (5, 6, 1_000)


def test_the_flags_and_the_delete_horizon_are_decoded() -> None:
    options = BatchOptions(is_transactional=True, is_control=True, delete_horizon_ms=77)
    builder = BatchBuilder(options)
    builder.append(b"v", b"k", 100)
    batch = Batch(builder.build())
    assert batch.header.is_transactional
    assert batch.header.is_control
    assert batch.header.delete_horizon_ms == 77
    assert [record.timestamp for record in read_records(batch)] == [100]
    assert parse_header(build_batch(SOME)).delete_horizon_ms is None


def test_batches_are_walked_in_order_with_their_positions() -> None:
    first, second = build_batch(SOME), build_batch(SOME[:1])
    data = bytes(first + second)
    assert [batch.position for batch in batches(data)] == [0, len(first)]
    assert [bytes(batch.view) for batch in batches(data)] == [first, second]


@pytest.mark.parametrize("size", [1, 11, 12, 30, 60, 61, 80])
def test_a_truncated_batch_ends_the_walk_or_is_refused(size: int) -> None:
    first = build_batch(SOME)
    data = bytes(first + first[:size])
    assert [batch.position for batch in batches(data, partial_end=True)] == [0]
    with pytest.raises(MalformedBatchError, match="truncated") as caught:
        list(batches(data))
    assert caught.value.position == len(first)
    assert caught.value.error_code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_refused_by_name_even_where_they_are_shorter(magic: int) -> None:
    for size in (17, 34, 100):
        old = struct.pack(">qiIb", 0, size - 12, 0, magic).ljust(size, b"\0")
        with pytest.raises(MalformedBatchError, match=f"message format {magic}") as caught:
            parse_header(old)
        assert caught.value.error_code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        assert caught.value.position == 16


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_an_unknown_magic_is_damage(magic: int) -> None:
    data = build_batch(SOME)
    data[16] = magic & 0xFF
    with pytest.raises(MalformedBatchError, match=f"number {magic}") as caught:
        parse_header(data)
    assert caught.value.error_code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48])
def test_an_impossible_length_is_damage(length: int) -> None:
    data = build_batch(SOME)
    struct.pack_into(">i", data, 8, length)
    with pytest.raises(MalformedBatchError, match="cannot be") as caught:
        parse_header(data)
    assert caught.value.position == 8
    with pytest.raises(MalformedBatchError):
        list(batches(data, partial_end=True))


@pytest.mark.parametrize(
    ("position", "format_", "number"),
    [
        (0, ">q", -1),
        (0, ">q", 2**63 - 2),
        (23, ">i", -1),
        (57, ">i", -1),
        (57, ">i", 5),
    ],
)
def test_impossible_spans_are_refused(position: int, format_: str, number: int) -> None:
    data = build_batch(SOME)
    struct.pack_into(format_, data, position, number)
    with pytest.raises(MalformedBatchError) as caught:
        check_span(parse_header(data))
    assert caught.value.error_code is ErrorCode.INVALID_RECORD


def test_more_records_than_bytes_are_refused_before_anything_is_allocated() -> None:
    data = build_batch(SOME)
    struct.pack_into(">i", data, 23, 2**31 - 1)
    struct.pack_into(">i", data, 57, 2**31 - 1)
    with pytest.raises(MalformedBatchError, match="2147483647 records"):
        list(read_records(Batch(data)))


def test_an_error_names_place_reason_and_code() -> None:
    data = build_batch(SOME)
    data[-1] ^= 1
    with pytest.raises(MalformedBatchError) as caught:
        Batch(data).check_crc()
    assert str(caught.value).startswith("byte 17: the CRC says 0x")
    assert str(caught.value).endswith("(CORRUPT_MESSAGE)")
