from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocol.records import crc
from holdfast.protocol.records.crc import PIECE_BYTES, crc32c, crc32c_in_place, extend_slowly
from tests.unit.protocol.records.oracles import kafka_python_sum
from tests.unit.protocol.records.samples import some


def test_the_check_value_of_the_polynomial() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert extend_slowly(0, b"123456789") == 0xE3069283


@some
@given(st.binary(max_size=300))
def test_the_package_the_table_and_kafka_python_agree(data: bytes) -> None:
    assert crc32c(data) == extend_slowly(0, data) == kafka_python_sum(data)


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES * 2 + 1])
def test_views_and_bytearrays_are_summed_in_pieces_to_the_same(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    assert crc32c(data) == crc32c(memoryview(data)) == crc32c(bytearray(data))
    assert crc32c(data) == crc32c_in_place(np.frombuffer(data, np.uint8))


def test_without_the_package_the_table_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(200))
    expected = crc32c(data)
    monkeypatch.setattr(crc, "_extend", extend_slowly)
    assert crc32c(bytearray(data)) == expected
    assert crc32c_in_place(np.frombuffer(data, np.uint8)) == expected
