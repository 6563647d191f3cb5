"""Compares checksums of many strings together with one at a time."""

from __future__ import annotations

import google_crc32c
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocol.records.arrow.crc_columns import SHORT, sums


@given(st.lists(st.binary(max_size=2 * SHORT), max_size=60), st.binary(max_size=5))
def test_sums_are_those_of_each_string(strings: list[bytes], gap: bytes) -> None:
    ends = np.cumsum([len(gap) + len(one) for one in strings], dtype=np.int64)
    starts = ends - np.array([len(one) for one in strings], np.int64)
    data = np.frombuffer(b"".join(gap + one for one in strings), np.uint8)
    expected = [google_crc32c.value(one) for one in strings]
    assert sums(data, starts, ends).tolist() == expected


def test_more_strings_than_one_block_holds() -> None:
    data = np.arange(9_999, dtype=np.uint32).view(np.uint8)
    starts = np.arange(0, len(data), 4, dtype=np.int64)
    expected = [google_crc32c.value(data[at : at + 4].tobytes()) for at in starts.tolist()]
    assert sums(data, starts, starts + 4).tolist() == expected
