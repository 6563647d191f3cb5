from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import ErrorCode
from holdfast.protocol.records import MalformedBatchError
from holdfast.protocol.records.varints import decode_varint, decode_varlong, encode_varint
from tests.unit.protocol.records.oracles import kafka_python_varint
from tests.unit.protocol.records.samples import some

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@some
@given(INT64)
def test_a_varlong_comes_back_and_kafka_python_writes_the_same(number: int) -> None:
    encoded = encode_varint(number)
    assert decode_varlong(memoryview(encoded), 0, len(encoded), "") == (number, len(encoded))
    assert decode_varlong(memoryview(encoded + b"\x80"), 0, len(encoded) + 1, "")[0] == number
    assert encoded == kafka_python_varint(number)


@some
@given(INT32, st.binary(max_size=3))
def test_a_varint_comes_back_whatever_follows(number: int, tail: bytes) -> None:
    encoded = encode_varint(number)
    data = memoryview(encoded + tail)
    assert decode_varint(data, 0, len(data), "") == (number, len(encoded))


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"", 0),
        (b"\x80", 1),
        (b"\x80\x01", 1),
        (b"\xff\xff\xff\xff\x10", 5),
        (b"\x80\x80\x80\x80\x80\x00", 6),
    ],
)
def test_a_varint_that_is_truncated_too_long_or_too_wide_is_refused(data: bytes, end: int) -> None:
    with pytest.raises(MalformedBatchError, match="key length: not a varint of 32 bits") as caught:
        decode_varint(memoryview(data), 0, end, "key length")
    assert caught.value.error_code is ErrorCode.INVALID_RECORD
    assert caught.value.position == 0


@pytest.mark.parametrize("data", [b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x00"])
def test_a_varlong_has_no_more_than_64_bits(data: bytes) -> None:
    with pytest.raises(MalformedBatchError, match="64 bits"):
        decode_varlong(memoryview(data), 0, len(data), "timestamp delta")
