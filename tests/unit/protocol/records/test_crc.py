from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocol.records import crc
from holdfast.protocol.records.crc import PIECE_BYTES, crc32c, crc32c_in_place, crc32c_parts
from tests.unit.protocol.records.oracles import kafka_python_sum
from tests.unit.protocol.records.samples import some


def test_the_check_value_of_the_polynomial() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@some
@given(st.binary(max_size=300))
def test_the_package_and_kafka_python_agree(data: bytes) -> None:
    assert crc32c(data) == kafka_python_sum(data)


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES * 2 + 1])
def test_views_and_bytearrays_are_summed_in_pieces_to_the_same(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    assert crc32c(data) == crc32c(memoryview(data)) == crc32c(bytearray(data))
    assert crc32c(data) == crc32c_in_place(np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("has_segments", [True, False])
@some
@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300))))
def test_parts_are_summed_without_a_copy(
    has_segments: bool, data: bytes, ranges: list[tuple[int, int]]
) -> None:
    spans = [(min(start, len(data)), length) for start, length in ranges]
    spans = [(start, min(length, len(data) - start)) for start, length in spans]
    flat = array("Q", [number for span in spans for number in span])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crc, "_HAS_SEGMENTS", has_segments and crc._HAS_SEGMENTS)
        sums = crc32c_parts(data, flat)
    assert sums == [crc32c(data[start : start + length]) for start, length in spans]
