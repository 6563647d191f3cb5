"""The vectorised reader returns the same as the plain one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import EndMarker
from holdfast.protocol.records import (
    BatchBuilder,
    BatchOptions,
    MalformedBatchError,
    NewRecord,
    batches,
    build_batch,
    build_end_marker,
    read_records,
    stamp,
)
from holdfast.protocol.records.arrow import batch_walk, columns, reader
from holdfast.protocol.records.arrow.rows import SCHEMA
from tests.unit.protocol.records.samples import CODECS, SOME, batch_bytes, few, plain


@pytest.fixture(params=["together", "alone"])
def fewness(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small samples take the loop; with these limits at 0 and 1 they go through numpy."""
    if request.param == "together":
        monkeypatch.setattr(batch_walk, "FEW", 1)
        monkeypatch.setattr(columns, "FEW", 0)


def rows_by_hand(data: bytes) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for batch in batches(data):
        header = batch.header
        for record in read_records(batch):
            one = plain(record)
            rows.append(
                {
                    "offset": one.offset,
                    "timestamp": one.timestamp,
                    "is_append_time": header.is_append_time,
                    "key": one.key,
                    "value": one.value,
                    "headers": [{"key": key, "value": value} for key, value in one.headers],
                    "leader_epoch": header.leader_epoch,
                    "producer_id": header.producer_id,
                    "producer_epoch": header.producer_epoch,
                    "sequence": record.sequence,
                    "is_transactional": header.is_transactional,
                    "is_control": header.is_control,
                    "position": batch.position,
                }
            )
    return rows


def check(data: bytes) -> Any:
    table = reader.read_table(data)
    table.validate(full=True)
    assert table.schema == SCHEMA
    assert table.to_pylist() == rows_by_hand(data)
    return table


@pytest.mark.usefixtures("fewness")
def test_generated_batches_of_all_kinds() -> None:
    @few
    @given(st.lists(batch_bytes, max_size=6))
    def say_the_same(batch_list: list[bytes]) -> None:
        check(b"".join(batch_list))

    say_the_same()


@few
@given(st.lists(batch_bytes, min_size=2, max_size=6), st.integers(1, 2_000))
def test_runs_may_end_anywhere(batch_list: list[bytes], run_bytes: int) -> None:
    before = reader.RUN_BYTES
    reader.RUN_BYTES = run_bytes
    try:
        check(b"".join(batch_list))
    finally:
        reader.RUN_BYTES = before


def chain(make: Callable[[int], bytearray], count: int) -> bytes:
    """Batches one after the other, at the offsets a log would give them."""
    out, offset = bytearray(), 0
    for nth in range(count):
        batch = make(nth)
        stamp(batch, 0, offset, nth // 10)
        offset += next(batches(batch)).header.last_offset_delta + 1
        out += batch
    return bytes(out)


@pytest.mark.parametrize("codec", CODECS)
def test_many_batches_of_different_lengths(codec: int) -> None:
    def make(nth: int) -> bytearray:
        records = [
            NewRecord(b"v" * (nth * each % 300), None if each % 7 == 0 else b"k%d" % each, nth)
            for each in range(1 + nth % 90)
        ]
        return build_batch(records, BatchOptions(compression=codec))

    table = check(chain(make, 150))
    assert table["offset"].to_pylist() == list(range(table.num_rows))


@pytest.mark.usefixtures("fewness")
def test_lengths_of_one_to_four_bytes_side_by_side() -> None:
    sizes = (0, 50, 60, 64, 5_000, 8_190, 8_200, 1_100_000)

    def make(nth: int) -> bytearray:
        return build_batch([NewRecord(bytes(sizes[(nth + each) % 8])) for each in range(3)])

    check(chain(make, 60))


@few
@given(st.lists(st.tuples(st.integers(0, 9_000), st.integers(1, 150)), min_size=1, max_size=8))
def test_stretches_of_one_size_in_a_long_batch(stretches: list[tuple[int, int]]) -> None:
    records = [NewRecord(bytes(size)) for size, times in stretches for _ in range(times)]
    check(bytes(build_batch(records)))


def test_headers_in_every_number() -> None:
    def make(nth: int) -> bytearray:
        pairs = [(f"name-{each}", None if each % 3 else b"x" * each) for each in range(nth % 40)]
        return build_batch([NewRecord(b"v", headers=pairs), NewRecord(None), NewRecord(b"", b"")])

    check(chain(make, 100))


def test_one_record_with_very_many_headers() -> None:
    check(bytes(build_batch([NewRecord(b"v", headers=[("", None)] * 50_000)])))


def test_control_batches_gaps_empty_batches_and_append_times() -> None:
    def make(nth: int) -> bytearray:
        match nth % 4:
            case 0:
                return build_end_marker(EndMarker(nth % 8 == 0, 3, 1, 9), 1_000 + nth)
            case 1:
                builder = BatchBuilder(
                    BatchOptions(producer_id=4, producer_epoch=0, base_sequence=2**31 - 2)
                )
                builder.append(b"left", b"k", 5, offset_delta=3)
                return builder.build(last_offset_delta=6)
            case 2:
                return BatchBuilder().build(last_offset_delta=4)
            case _:
                return build_batch(SOME, BatchOptions(append_time_ms=77, is_transactional=True))

    table = check(chain(make, 80))
    assert sum(table["is_control"].to_pylist()) == 20


def test_a_header_name_that_is_not_utf8_is_shown_as_the_plain_reader_does() -> None:
    check(bytes(build_batch([NewRecord(b"v", headers=[(b"\xff", b"1"), ("ok", b"2")])])))


def test_nothing_gives_an_empty_table() -> None:
    assert check(b"").num_rows == 0


def test_a_truncated_last_batch_is_left_out_if_allowed() -> None:
    data = bytes(build_batch(SOME))
    for kept in (1, 11, 12, 40, 61, len(data) - 1):
        table = reader.read_table(data + data[:kept], partial_end=True)
        assert table.num_rows == len(SOME)
        with pytest.raises(MalformedBatchError, match="truncated"):
            reader.read_table(data + data[:kept])
        assert reader.read_table(data[:kept], partial_end=True).num_rows == 0


def test_the_crc_is_checked_by_default() -> None:
    data = bytearray(build_batch(SOME[:1]))
    data[-20] ^= 1
    with pytest.raises(MalformedBatchError, match="the CRC says"):
        reader.read_table(data)
    assert reader.read_table(data, check_crc=False).num_rows == 1


def test_buffers_of_any_kind_are_read() -> None:
    data = bytes(build_batch(SOME))
    for kind in (bytes, bytearray, memoryview, lambda raw: memoryview(b"12" + raw)[2:]):
        assert reader.read_table(kind(data)).num_rows == len(SOME)


@pytest.mark.usefixtures("fewness")
def test_a_lie_in_one_of_many_batches_is_found_and_placed() -> None:
    good = bytes(build_batch(SOME))
    bad = bytearray(good)
    bad[61] += 2  # The first record claims one byte more.
    data = good * 70 + bytes(bad) + good * 70
    with pytest.raises(MalformedBatchError) as caught:
        reader.read_table(data, check_crc=False)
    assert 70 * len(good) < caught.value.position < 71 * len(good)
