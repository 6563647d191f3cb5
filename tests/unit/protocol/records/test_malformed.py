"""Every truncation and mutation is either read or refused with our error."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.protocol.records import (
    Batch,
    BatchOptions,
    MalformedBatchError,
    Rules,
    batches,
    build_batch,
    check_produced,
    check_records,
    read_records,
)
from holdfast.protocol.records.arrow import batch_walk, columns
from holdfast.protocol.records.arrow.reader import read_table
from holdfast.protocol.records.crc import crc32c
from tests.unit.protocol.records.samples import (
    CODECS,
    LIES,
    SOME,
    Plain,
    batch_bytes,
    plain,
    some,
    with_body,
)

LIMIT = 1 << 20
Outcome = list[Plain] | str


def outcome(data: bytes, *, check_crc: bool) -> Outcome:
    """The result of the plain reader: the records, or the error."""
    try:
        found: list[Plain] = []
        for batch in batches(data):
            if check_crc:
                batch.check_crc()
            found.extend(plain(record) for record in read_records(batch, LIMIT))
    except MalformedBatchError as error:
        return str(error)
    return found


def exercise(data: bytes) -> None:
    """Everything that reads bytes; all of it must agree."""
    for check_crc in (True, False):
        expected = outcome(data, check_crc=check_crc)
        try:
            table = read_table(data, check_crc=check_crc, limit=LIMIT)
        except MalformedBatchError as error:
            assert str(error) == expected
        else:
            assert not isinstance(expected, str), expected
            assert table["offset"].to_pylist() == [record.offset for record in expected]
    try:
        check_records(check_produced(data, 0, Rules(timestamp_after_max_ms=2**62))[0], 0)
    except MalformedBatchError as error:
        assert error.error_code


@pytest.mark.parametrize("codec", CODECS)
def test_every_truncation(codec: int) -> None:
    data = bytes(build_batch(SOME[:3], BatchOptions(compression=codec)))
    for size in range(len(data)):
        with pytest.raises(MalformedBatchError):
            Batch(data[:size])
        # The same truncation with a matching length: the records end too soon.
        if size >= 61:
            owned_up = bytearray(data[:size])
            struct.pack_into(">i", owned_up, 8, size - 12)
            assert isinstance(outcome(bytes(owned_up), check_crc=False), str)
            exercise(bytes(owned_up))


@pytest.mark.parametrize("codec", CODECS)
def test_every_byte_changed_in_some_ways(codec: int) -> None:
    data = bytes(build_batch(SOME[:2], BatchOptions(compression=codec)))
    for position in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            broken = bytearray(data)
            broken[position] ^= flip
            exercise(bytes(broken))


@pytest.mark.parametrize("few_chains", [0, 1, 48])
@pytest.mark.parametrize("body", [body for body, _ in LIES])
def test_every_reader_sees_the_same_lie(
    body: str, few_chains: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_walk, "FEW", max(few_chains, 1))
    monkeypatch.setattr(columns, "FEW", few_chains)
    good = bytes(build_batch(SOME))
    data = good + with_body(body) + good
    assert isinstance(outcome(data, check_crc=False), str)
    exercise(data)
    exercise(with_body(body))


changes_of_bytes = st.lists(
    st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=6
)


def mutated(batch: bytes, changes: list[tuple[int, int]], *, with_valid_crc: bool) -> bytes:
    data = bytearray(batch)
    for position, byte in changes:
        data[position % len(data)] = byte
    if with_valid_crc:  # So that the checks after the CRC are reached.
        struct.pack_into(">iib", data, 8, len(data) - 12, 0, 2)
        struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


@some
@given(batch=batch_bytes, changes=changes_of_bytes, with_valid_crc=st.booleans())
def test_any_mutation(batch: bytes, changes: list[tuple[int, int]], with_valid_crc: bool) -> None:
    exercise(mutated(batch, changes, with_valid_crc=with_valid_crc))


@pytest.mark.slow
@pytest.mark.parametrize("few_chains", [1, 48])
def test_any_mutation_in_any_of_several_batches(
    few_chains: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_walk, "FEW", few_chains)
    monkeypatch.setattr(columns, "FEW", few_chains // 3)

    @settings(deadline=None, max_examples=250)
    @given(st.lists(st.tuples(batch_bytes, st.just([]) | changes_of_bytes), max_size=4))
    def agree(batch_list: list[tuple[bytes, list[tuple[int, int]]]]) -> None:
        exercise(
            b"".join(mutated(batch, changes, with_valid_crc=True) for batch, changes in batch_list)
        )

    agree()


@some
@given(st.binary(max_size=300))
def test_any_noise(data: bytes) -> None:
    exercise(data)


@some
@given(body=st.binary(max_size=120), count=st.integers(-2, 20), codec=st.integers(0, 7))
def test_any_noise_after_a_valid_header(body: bytes, count: int, codec: int) -> None:
    header = build_batch(SOME[:1])[:61]
    data = header + body
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">hi", data, 21, codec, 19)
    struct.pack_into(">i", data, 57, count)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    exercise(bytes(data))


@pytest.mark.parametrize("count", [2**31 - 1, 2**30, 10**6])
def test_claims_of_many_headers_or_records_allocate_nothing(count: int) -> None:
    record = bytearray(build_batch(SOME[:1]))
    claim = bytearray(record)
    struct.pack_into(">i", claim, 23, count)
    struct.pack_into(">i", claim, 57, count)
    packed = bytearray(build_batch(SOME, BatchOptions(compression=4)))
    struct.pack_into(">i", packed, 23, count)
    struct.pack_into(">i", packed, 57, count)
    # "Two to the thirtieth headers" in the place of one record's last byte.
    many = record[:-1] + b"\xfe\xff\xff\xff\x0f"
    struct.pack_into(">i", many, 8, len(many) - 12)
    for data in (claim, packed, many):
        tracemalloc.start()
        exercise(bytes(data))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < LIMIT
