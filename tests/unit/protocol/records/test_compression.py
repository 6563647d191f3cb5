from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import cramjam
import lz4.frame
import pytest
import zstandard
from aiokafka import codec as aiokafka_codec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import ErrorCode
from holdfast.protocol.records import Compression, MalformedBatchError, snappy
from holdfast.protocol.records.compression import compress, decompress
from holdfast.protocol.records.errors import ExpansionError
from tests.unit.protocol.records.samples import few

PACKED = [codec for codec in Compression if codec is not Compression.NONE]
MIB = 1 << 20


def refusal(codec: int, data: bytes, limit: int = MIB) -> MalformedBatchError:
    with pytest.raises(MalformedBatchError) as caught:
        decompress(codec, memoryview(data), limit, 61)
    assert caught.value.position == 61
    return caught.value


@pytest.mark.parametrize("codec", Compression)
@few
@given(data=st.binary(max_size=200) | st.integers(0, 100_000).map(lambda n: b"ab" * n))
def test_what_goes_in_comes_out(codec: Compression, data: bytes) -> None:
    packed = compress(codec, data)
    assert decompress(codec, memoryview(packed), len(data)) == data


@pytest.mark.parametrize(("codec", "name"), [(1, "gzip"), (2, "snappy"), (3, "lz4"), (4, "zstd")])
def test_aiokafka_reads_ours_and_we_read_aiokafkas(codec: int, name: str) -> None:
    data = b"the quick brown fox " * 10_000
    encode = getattr(aiokafka_codec, f"{name}_encode")
    decode = getattr(aiokafka_codec, f"{name}_decode")
    assert decode(compress(codec, data)) == data
    assert decompress(codec, memoryview(encode(data)), MIB) == data


def test_bare_snappy_as_librdkafka_writes_it_is_read() -> None:
    data = b"librdkafka " * 9_000
    assert decompress(2, memoryview(bytes(cramjam.snappy.compress_raw(data))), MIB) == data


def test_gzip_may_come_in_several_members() -> None:
    data = gzip.compress(b"one") + gzip.compress(b"") + gzip.compress(b"two")
    assert decompress(1, memoryview(data), 6) == b"onetwo"
    assert refusal(1, data, 5).error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_zstd_frame_need_not_say_its_size() -> None:
    packer = zstandard.ZstdCompressor(write_content_size=False)
    for size in (0, 10, 3 * MIB):
        packed = packer.compress(b"z" * size)
        assert decompress(4, memoryview(packed), 3 * MIB) == b"z" * size


def test_a_truncated_zstd_frame_without_a_size_is_not_a_bomb() -> None:
    packed = zstandard.ZstdCompressor(write_content_size=False).compress(b"z" * 5_000)
    error = refusal(4, packed[:-3])
    assert error.error_code is ErrorCode.INVALID_RECORD
    assert "truncated" in error.reason


def bombs() -> list[tuple[int, bytes]]:
    zeros = bytes(64 * MIB)
    return [
        (1, zlib.compress(zeros, 9, wbits=31)),
        (2, snappy.compress_java(zeros)),
        (2, bytes(cramjam.snappy.compress_raw(zeros))),
        (3, lz4.frame.compress(zeros)),
        (3, lz4.frame.compress(zeros, store_size=False, block_linked=False)),
        (4, zstandard.ZstdCompressor().compress(zeros)),
        (4, zstandard.ZstdCompressor(write_content_size=False).compress(zeros)),
    ]


def test_a_bomb_is_refused_within_a_small_multiple_of_the_limit() -> None:
    for codec, bomb in bombs():
        tracemalloc.start()
        error = refusal(codec, bomb, MIB)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert error.error_code is ErrorCode.MESSAGE_TOO_LARGE
        assert "more than 1048576 bytes" in error.reason
        assert peak < 4 * MIB


PEAK_OF_A_BOMB = """
import sys
from holdfast.protocol.records import MalformedBatchError
from holdfast.protocol.records.compression import decompress

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

bomb, before = sys.stdin.buffer.read(), peak()
try:
    decompress(int(sys.argv[1]), memoryview(bomb), 8 << 20)
except MalformedBatchError as error:
    print(error.error_code.name, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the peak")
def test_a_bomb_takes_no_more_memory_from_the_system_than_a_few_limits() -> None:
    # What the codecs allocate by themselves is not seen by tracemalloc.
    window = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=window).compressobj()
    wide = b"".join(packer.compress(bytes(MIB)) for _ in range(256)) + packer.flush()
    for codec, bomb in [*bombs(), (4, wide)]:
        command = [sys.executable, "-c", PEAK_OF_A_BOMB, str(codec)]
        done = subprocess.run(command, input=bomb, capture_output=True, check=True)
        verdict, peak_kib = done.stdout.decode().split()
        assert verdict == "MESSAGE_TOO_LARGE"
        assert int(peak_kib) < 4 * 8 * 1024


@pytest.mark.parametrize(
    ("codec", "claim"),
    [
        (2, b"\xff\xff\xff\xff\x0f" + b"\0" * 20),  # four gigabytes, says its first number
        (3, bytes.fromhex("04224d18 6c40 ffffffffffffff7f 00".replace(" ", "")) + b"\0" * 20),
        (4, bytes.fromhex("28b52ffd e0 ffffffffffffff7f".replace(" ", "")) + b"\0" * 20),
        (4, bytes.fromhex("28b52ffd 00 f8 0100 00".replace(" ", "")) + b"\0" * 20),  # window
    ],
)
def test_a_claim_alone_allocates_nothing(codec: int, claim: bytes) -> None:
    tracemalloc.start()
    refusal(codec, claim)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MIB


@pytest.mark.parametrize("codec", PACKED)
def test_exactly_the_limit_is_fine_and_one_less_is_not(codec: Compression) -> None:
    packed = memoryview(compress(codec, b"x" * 5_000))
    assert decompress(codec, packed, 5_000) == b"x" * 5_000
    with pytest.raises(MalformedBatchError) as caught:
        decompress(codec, packed, 4_999)
    assert caught.value.error_code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", PACKED)
def test_every_truncation_and_any_tail_is_refused(codec: Compression) -> None:
    data = b"some text, some more text, and some text again"
    packed = compress(codec, data)
    for kept in range(len(packed)):
        if codec is Compression.SNAPPY and kept == len(snappy.JAVA_HEADER):
            # Java's framing counts no blocks: truncated between two, it is a shorter stream.
            assert decompress(codec, memoryview(packed[:kept]), MIB) == b""
        else:
            refusal(codec, packed[:kept])
    assert refusal(codec, packed + b"tail").error_code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_without_a_meaning_are_refused(codec: int) -> None:
    assert refusal(codec, b"").error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    with pytest.raises(ExpansionError):
        compress(codec, b"")
