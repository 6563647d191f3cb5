"""Files byte by byte, against real ones; settings by Kafka's names."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.producers.producer_snapshot import (
    ProducerEntry,
    decode_snapshot,
    encode_snapshot,
)
from holdfast.storage.segment.offset_and_time_index import OffsetIndex, TimeIndex
from holdfast.storage.segment.transaction_index import decode_transactions

SNAPSHOT = bytes.fromhex(
    "00010a3cf7d200000002000000000000000000000000000300000000000000030000"
    "0000000001a1de0a92f2ffffffffffffffffffffffff000000000000000100000000"
    "0a270000000000000a2b00000013000001a1de0b051900000000ffffffffffffffff"
)
"""Written by Apache Kafka 4.3.1."""


def test_a_snapshot_of_kafkas_is_read_and_written_the_same() -> None:
    entries = decode_snapshot(SNAPSHOT, "s")
    assert entries[1] == ProducerEntry(1, 0, 2599, 2603, 19, 1794726626585, 0, -1)
    assert encode_snapshot(entry.to_state() for entry in entries) == SNAPSHOT


@given(st.integers(0, len(SNAPSHOT) - 1), st.integers(1, 255))
def test_no_changed_byte_of_a_snapshot_passes(position: int, change: int) -> None:
    content = bytearray(SNAPSHOT)
    content[position] ^= change
    with pytest.raises(DamagedFileError):
        decode_snapshot(bytes(content), "s")


@given(st.binary(max_size=200))
def test_any_bytes_are_an_index_or_damaged(content: bytes) -> None:
    for kind in (OffsetIndex, TimeIndex):
        try:
            index = kind.from_bytes(100, content, "i")
        except DamagedFileError:
            continue
        assert index.to_bytes() == content
    with contextlib.suppress(DamagedFileError):
        assert b"".join(one.to_bytes() for one in decode_transactions(content, "t")) == content


def test_an_index_of_kafkas_is_understood() -> None:
    index = OffsetIndex.from_bytes(1024, bytes.fromhex("0000002700004fb10000003b00009f62"), "i")
    assert index.entries() == [(1063, 20401), (1083, 40802)]
    assert index.at_or_before(1082) == (1063, 20401)
    assert index.at_or_before(1062) is None
    times = TimeIndex.from_bytes(1024, bytes.fromhex("000001a1de0aff7e00000013"), "t")
    assert times.entries() == [(1794726625150, 1043)]


@given(st.lists(st.integers(0, 1 << 20), unique=True, max_size=60), st.integers(0, 1 << 20))
def test_lookups_agree_with_a_linear_search(offsets: list[int], wanted: int) -> None:
    index = OffsetIndex(0)
    pairs = [(offset, offset * 3 + 7) for offset in sorted(offsets)]
    for offset, position in pairs:
        index.append(offset, position)
    expected = [pair for pair in pairs if pair[0] <= wanted]
    assert index.at_or_before(wanted) == (expected[-1] if expected else None)
    starts = [pair for pair in pairs if pair[1] <= wanted]
    assert index.last_start(wanted) == (starts[-1] if starts else None)
    index.truncate_to(wanted)
    assert index.entries() == [pair for pair in pairs if pair[0] < wanted]
