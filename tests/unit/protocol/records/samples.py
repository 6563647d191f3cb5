"""Generated records and batches, and a plain form to compare different readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st

from holdfast.protocol.records import BatchOptions, Compression, NewRecord, Record, build_batch

CODECS = tuple(Compression)

few = settings(deadline=None, max_examples=25)
some = settings(deadline=None, max_examples=80)
"""How often a property is tried. A busy machine is no failure, so there is no deadline."""

payloads = st.none() | st.binary(max_size=40) | st.integers(60, 300).map(lambda n: b"\x07" * n)
headers = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), max_size=6), st.none() | st.binary(max_size=6)),
    max_size=4,
).map(tuple)
timestamps = st.integers(0, 2**41) | st.just(-1)
new_records: st.SearchStrategy[NewRecord] = st.builds(
    NewRecord, payloads, payloads, timestamps, headers
)
record_lists = st.lists(new_records, min_size=1, max_size=12)

idempotent = st.fixed_dictionaries(
    {
        "producer_id": st.integers(0, 2**63 - 1),
        "producer_epoch": st.integers(0, 2**15 - 1),
        "base_sequence": st.integers(0, 2**31 - 1),
        "is_transactional": st.booleans(),
    }
)
batch_options: st.SearchStrategy[BatchOptions] = st.builds(
    lambda plain, producer: BatchOptions(**plain, **producer),
    st.fixed_dictionaries(
        {
            "base_offset": st.integers(0, 2**62),
            "leader_epoch": st.integers(-1, 2**31 - 1),
            "compression": st.sampled_from(CODECS),
            "append_time_ms": st.none() | st.integers(0, 2**41),
            "is_control": st.booleans(),
        }
    ),
    st.just({}) | idempotent,
)
batch_bytes = st.builds(
    lambda records, options: bytes(build_batch(records, options)), record_lists, batch_options
)


class Plain(NamedTuple):
    """A record in a form that every reader can produce."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def owned(data: bytes | memoryview | None) -> bytes | None:
    return None if data is None else bytes(data)


def plain(record: Record) -> Plain:
    pairs = tuple((header.key, owned(header.value)) for header in record.headers)
    return Plain(record.offset, record.timestamp, owned(record.key), owned(record.value), pairs)


def plain_new(records: Iterable[NewRecord], base_offset: int = 0) -> list[Plain]:
    return [
        Plain(
            base_offset + nth,
            record.timestamp,
            owned(record.key),
            owned(record.value),
            tuple((str(key), owned(value)) for key, value in record.headers),
        )
        for nth, record in enumerate(records)
    ]


SOME: Sequence[NewRecord] = (
    NewRecord(b"value", b"key", 1_000, (("trace", b"1"), ("trace", None), ("", b""))),
    NewRecord(None, b"tombstone", 1_002),
    NewRecord(b"", b"", 999),
    NewRecord(b"no key" * 50, None, 2_000_000),
)


LIES = [
    ("0e 00 00 00 01 02 78", "a record of 7 bytes"),
    ("0c 00 00 00 01 01 00 00", "1 bytes after the last record"),
    ("0e 00 00 00 01 01 00 00", "1 bytes left over in a record"),
    ("0e 00 00 00 03 02 78 00", "key of -2 bytes"),
    ("0e 00 00 00 01 08 78 00", "value of 4 bytes"),
    ("0e 00 00 02 01 02 78 00", "offset delta 1 of 0 at most"),
    ("0e 00 00 01 01 02 78 00", "offset delta -1"),
    ("10 00 00 00 01 02 78 01 00", "-1 headers"),
    ("10 00 00 00 01 02 78 04 00", "2 headers"),
    ("12 00 00 00 01 02 78 02 01 01", "a header without a key"),
    ("00 00 00 00 00 00 00", "a record of 0 bytes"),
    ("0a 00 00 00 01 01 00 00 00 00 00 00", "a record of 5 bytes"),
    ("01 00 00 00 00 00 00", "a record of -1 bytes"),
    ("1e 00 ff ff ff ff ff ff ff ff ff 01 00 01 01 00", "beyond 64 bits"),
    (
        "20 00 80 80 80 80 80 80 80 80 80 80 00 01 01 00 00",
        "timestamp delta: not a varint",
    ),
    (
        "20 00 ff ff ff ff ff ff ff ff ff 02 00 01 01 00 00",
        "timestamp delta: not a varint",
    ),
    ("16 00 00 ff ff ff ff 10 01 01 00 00", "offset delta: not a varint of 32 bits"),
    ("10 00 00 00 01 02 78 00 00", "bytes left over"),
    ("12 00 00 00 01 02 78 02 00 07", "header value of -4 bytes"),
    ("12 00 00 00 01 02 78 02 08 00", "header key of 4 bytes"),
    ("14 00 00 00 01 02 78 02 00 00 00", "bytes left over"),
]
"""Records of a batch of one that contradict themselves, and what the reader says of it."""


def with_body(body: str) -> bytes:
    """A batch of one record whose records are these bytes. Its CRC is wrong."""
    data = build_batch([NewRecord(b"x")])[:61] + bytes.fromhex(body)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    return bytes(data)
