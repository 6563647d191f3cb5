from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import BatchHeader, EndMarker, ErrorCode
from holdfast.protocol.records import (
    Batch,
    BatchBuilder,
    BatchOptions,
    MalformedBatchError,
    NewRecord,
    build_batch,
    build_end_marker,
    check_batch,
    control_type,
    read_end_marker,
    read_records,
)
from holdfast.protocol.records.arrow.reader import read_table
from tests.unit.protocol.records.java_batches import JAVA_BATCHES
from tests.unit.protocol.records.samples import (
    CODECS,
    LIES,
    SOME,
    batch_options,
    few,
    new_records,
    plain,
    plain_new,
    record_lists,
    with_body,
)


@few
@given(records=record_lists, options=batch_options)
def test_what_is_built_is_read(records: list[NewRecord], options: BatchOptions) -> None:
    batch = Batch(build_batch(records, options))
    check_batch(batch)
    expected = plain_new(records, options.base_offset)
    if options.append_time_ms is not None:
        expected = [one._replace(timestamp=options.append_time_ms) for one in expected]
    found = list(read_records(batch))
    assert [plain(record) for record in found] == expected
    assert [record.sequence for record in found] == [
        BatchHeader(nth + 1, base_sequence=options.base_sequence).last_sequence
        for nth in range(len(records))
    ]
    header = batch.header
    assert header.attributes == options.attributes
    assert header.producer_id == options.producer_id
    assert header.producer_epoch == options.producer_epoch
    assert header.record_count == len(records) == header.last_offset_delta + 1


@few
@given(records=st.lists(new_records, max_size=8), gaps=st.lists(st.integers(1, 900), min_size=9))
def test_gaps_of_compaction_are_kept(records: list[NewRecord], gaps: list[int]) -> None:
    builder = BatchBuilder()
    delta, deltas = -1, []
    for record, gap in zip(records, gaps, strict=False):
        delta += gap
        deltas.append(delta)
        builder.append(
            record.value, record.key, record.timestamp, record.headers, offset_delta=delta
        )
    batch = Batch(builder.build(last_offset_delta=delta + 3))
    check_batch(batch)
    assert batch.header.end_offset == delta + 4
    assert [record.offset for record in read_records(batch)] == deltas


def test_a_builder_reports_its_size_before_compression() -> None:
    builder = BatchBuilder()
    for record in SOME:
        builder.append(*record)
    assert builder.size == len(builder.build())
    assert builder.count == len(SOME)


def test_keys_and_values_are_views_into_the_batch() -> None:
    data = build_batch([NewRecord(b"payload", b"key", 1)])
    [record] = read_records(Batch(data))
    assert record.value is not None
    assert record.value.obj is data


def test_reading_is_lazy() -> None:
    data = build_batch(SOME)
    data[-1] = 9  # The last record's count of headers.
    records = read_records(Batch(data))
    assert plain(next(records)) == plain_new(SOME)[0]
    with pytest.raises(MalformedBatchError):
        list(records)


def test_a_header_name_that_is_not_utf8_is_shown_as_java_does() -> None:
    data = build_batch([NewRecord(b"v", headers=[(b"\xff\xfe", b"x")])])
    [record] = read_records(Batch(data))
    assert record.headers[0].key == "\ufffd\ufffd"


@pytest.mark.parametrize(("body", "reason"), LIES)
def test_a_contradictory_record_is_refused_with_its_position(body: str, reason: str) -> None:
    data = with_body(body)
    with pytest.raises(MalformedBatchError) as caught:
        list(read_records(Batch(b"--" + data, 2)))
    assert caught.value.error_code is ErrorCode.INVALID_RECORD
    assert reason in caught.value.reason
    assert 63 <= caught.value.position <= 2 + len(data)


@pytest.mark.parametrize("codec", CODECS)
def test_what_java_wrote_is_read(codec: int) -> None:
    data = bytes.fromhex(JAVA_BATCHES[codec])
    batch = Batch(data)
    check_batch(batch)
    assert batch.header.compression == codec
    found = [plain(record) for record in read_records(batch)]
    assert [one.value for one in found] == [b"some value %d some value" % n for n in range(40)]
    assert [one.key for one in found] == [b"k%d" % n if n % 5 else None for n in range(40)]
    assert [one.timestamp for one in found] == list(range(1_000, 1_040))
    assert read_table(data)["value"].to_pylist() == [one.value for one in found]


def test_a_timestamp_beyond_64_bits_is_refused() -> None:
    builder = BatchBuilder()
    builder.append(b"", timestamp=2**63 - 1)
    builder.append(b"", timestamp=2**63)
    with pytest.raises(MalformedBatchError, match="beyond 64 bits"):
        # The header holds the maximum in 64 bits; only the delta exceeds them.
        list(read_records(Batch(_without_maximum(builder))))


def _without_maximum(builder: BatchBuilder) -> bytearray:
    builder._max_timestamp = 0
    return builder.build()


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_end_marker_comes_back(is_commit: bool) -> None:
    marker = EndMarker(is_commit, 12, 3, 7)
    data = build_end_marker(marker, 1_000, base_offset=55, leader_epoch=4)
    assert len(data) == 78  # As Apache Kafka's.
    batch = Batch(data)
    check_batch(batch)
    assert batch.header.is_control
    assert batch.header.is_transactional
    assert batch.header.base_sequence == -1
    [record] = read_records(batch)
    assert read_end_marker(record, 12, 3) == marker


def test_markers_of_other_kinds_are_skipped_and_broken_ones_refused() -> None:
    def one(key: bytes | None, value: bytes | None) -> EndMarker | None:
        [record] = read_records(Batch(build_batch([NewRecord(value, key)])))
        return read_end_marker(record, 1, 1)

    assert one(b"\0\0\0\x02", None) is None  # A leader change, of KRaft.
    for key, value in [
        (None, b"\0" * 6),
        (b"\0\0\0", b"\0" * 6),
        (b"\xff\xff\0\0", b"\0" * 6),
        (b"\0\0\0\0", None),
        (b"\0\0\0\x01", b"\0" * 5),
        (b"\0\0\0\x01", b"\xff" * 6),
    ]:
        with pytest.raises(MalformedBatchError) as caught:
            one(key, value)
        assert caught.value.error_code is ErrorCode.INVALID_RECORD


def test_the_type_of_a_control_record_is_decoded() -> None:
    [record] = read_records(Batch(build_batch([NewRecord(None, b"\0\0\0\x05")])))
    assert control_type(record) == 5
