"""Random frames of a hostile client: almost valid, and far from valid."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from holdfast.protocol import APIS, Request, encode_request
from holdfast.protocol.codec.types import BOOL, FLOAT64, UINT16, UINT32, UUID, Fixed
from holdfast.protocol.records import BatchOptions, Compression, NewRecord, build_batch
from holdfast.protocol.records.crc import crc32c
from tests.unit.protocol.sampler import Sampler

TOPIC: Final = "strangers"
HUGE: Final = (b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\x0f")
NEAR: Final = (-1, 0, 1, 2, 3)


def bombs() -> list[bytes]:
    """Small batches that expand to much."""
    records = [NewRecord(bytes(1 << 20), b"key")] * 60
    return [
        bytes(build_batch(records, BatchOptions(compression=codec)))
        for codec in (Compression.GZIP, Compression.LZ4, Compression.ZSTD)
    ]


def batches(rng: Random) -> list[bytes]:
    """A valid batch, and ones with a wrong CRC, length, count, codec, and random content."""
    good = bytes(build_batch([NewRecord(b"value", b"key", 1), NewRecord(b"other", b"key", 1)]))
    found = [good, good + good, good[:-1], good[:61], good[:20], b"\0" * 61]
    found += [
        good[:position] + huge + good[position + 4 :]
        for position in range(0, 61, 4)
        for huge in HUGE[:3]
    ]
    # Wrong content with a correct checksum.
    for _ in range(60):
        body = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            body[rng.randrange(21, len(body))] = rng.randrange(256)
        found.append(_summed(body))
    return found


def _summed(batch: bytearray) -> bytes:
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    return bytes(batch)


class Stranger(Sampler):
    """Values that pass the first checks: existing names and numbers."""

    def __init__(self, rng: Random) -> None:
        super().__init__(rng, unknown_tags=True, small=True)
        self.texts = (*self.texts, TOPIC, TOPIC, "1")
        self.payloads = (*self.payloads, *batches(rng))

    def fixed(self, wire: Fixed, name: str) -> Any:
        if name.endswith("broker_epoch"):
            # A hostile client does not have this value.
            return self.rng.choice((-1, 0, 2**62, -(2**63)))
        if wire in (BOOL, UUID, FLOAT64) or self.rng.random() < 0.4:
            return super().fixed(wire, name)
        return self.rng.choice(NEAR[1:] if wire in (UINT16, UINT32) else NEAR)


def requests(rng: Random, rounds: int) -> Iterator[bytes]:
    """Whole well-formed frames: every served API in every version."""
    stranger = Stranger(rng)
    for _ in range(rounds):
        for api in APIS.values():
            for version in api.versions:
                request = stranger.message(api.request, version)
                yield framed(request, version, rng)


def framed(request: Request, version: int, rng: Random) -> bytes:
    client = rng.choice((None, "", "stranger", "ß" * 40, "holdfast-broker-" + "9" * 5000))
    parts = encode_request(request, version, correlation_id=rng.getrandbits(31), client_id=client)
    return b"".join(parts)


def mutated(frame: bytes, rng: Random) -> bytes:
    """The same with an error; half of them get a correct length."""
    body = bytearray(frame[4:])
    position = rng.randrange(len(body))
    match rng.randrange(8):
        case 0:
            body[position] ^= 1 << rng.randrange(8)
        case 1:
            del body[position:]
        case 2:
            body += rng.randbytes(rng.randint(1, 300))
        case 3:
            end = position + rng.randint(1, 40)
            body[position:position] = body[position:end]
        case 4:
            body[position : position + 4] = rng.choice(HUGE)
        case 5:
            body[0:2] = rng.randbytes(2)
        case 6:
            body[2:4] = rng.choice((b"\xff\xff", b"\x7f\xff", b"\0\x10"))
        case _:
            body[:position] = rng.randbytes(position)
    if rng.random() < 0.5:
        return len(body).to_bytes(4, "big") + body
    return bytes(frame[:4] + body)


def nonsense(rng: Random) -> bytes:
    """Random bytes."""
    match rng.randrange(4):
        case 0:
            return rng.randbytes(rng.randint(1, 2000))
        case 1:
            return rng.choice(HUGE)[:4] + rng.randbytes(50)
        case 2:
            return b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n"
        case _:
            return bytes(rng.randint(1, 2000))
