"""Frames are complete, however the bytes arrive."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.broker.network import frames
from holdfast.broker.network.frames import FIRST_BYTES, SCRATCH_BYTES, TRUST, FrameReader
from holdfast.protocol import MalformedMessage


def feed(reader: FrameReader, data: bytes, sizes: list[int]) -> list[bytes]:
    """Pass the bytes in pieces, as a socket does: never more than the buffer holds."""
    found: list[bytes] = []
    position, turn = 0, 0
    while position < len(data):
        buffer = reader.buffer()
        wanted = sizes[turn % len(sizes)]
        turn += 1
        piece = data[position : position + min(wanted, len(buffer))]
        buffer[: len(piece)] = piece
        found += map(bytes, reader.received(len(piece)))
        position += len(piece)
    return found


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


@given(
    bodies=st.lists(st.binary(max_size=300), max_size=12),
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=8),
)
def test_any_split_of_the_stream_gives_the_same_frames(
    bodies: list[bytes], sizes: list[int]
) -> None:
    assert feed(FrameReader(1000), framed(*bodies), sizes) == bodies


def test_a_large_frame_is_received_where_it_stays() -> None:
    body = bytes(range(256)) * 16 * 1024  # 4 MiB
    reader = FrameReader(len(body))
    assert feed(reader, framed(body, b"next"), [SCRATCH_BYTES]) == [body, b"next"]


def test_a_claimed_length_takes_no_memory_before_its_bytes_arrive() -> None:
    reader = FrameReader(2**31 - 1)
    buffer = reader.buffer()
    buffer[:5] = struct.pack(">i", 2**31 - 1) + b"x"
    assert reader.received(5) == []
    assert len(reader.buffer()) < FIRST_BYTES


def test_an_incomplete_frame_holds_little_more_than_its_received_bytes() -> None:
    reader = FrameReader(2**31 - 1)
    start = struct.pack(">i", 2**31 - 1) + bytes(10_000)
    feed(reader, start, [len(start)])
    assert len(reader.buffer()) <= (TRUST - 1) * 10_000


@pytest.mark.parametrize("length", [-1, 101, 2**31 - 1])
def test_an_invalid_length_is_refused_immediately(length: int) -> None:
    reader = FrameReader(100)
    reader.buffer()[:4] = struct.pack(">i", length)
    with pytest.raises(MalformedMessage, match="0 to 100 is allowed"):
        reader.received(4)


def test_two_streams_share_the_scratch_buffer_without_mixing() -> None:
    one, other = FrameReader(100), FrameReader(100)
    assert feed(one, framed(b"half of one")[:7], [100]) == []
    assert feed(other, framed(b"other"), [100]) == [b"other"]
    assert feed(one, framed(b"half of one")[7:], [100]) == [b"half of one"]
    assert frames.SCRATCH_BYTES == len(other.buffer())
