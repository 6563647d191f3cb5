"""Builds record batches, for producers, coordinators and the log cleaner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.model import NO_EPOCH, NO_PRODUCER, NO_SEQUENCE, NO_TIMESTAMP
from holdfast.protocol.records.batch_header import (
    APPEND_TIME,
    ATTRIBUTES_POSITION,
    CONTROL,
    CRC_POSITION,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    TRANSACTIONAL,
)
from holdfast.protocol.records.compression import Compression, compress
from holdfast.protocol.records.crc import crc32c
from holdfast.protocol.records.varints import encode_varint

_NULL = encode_varint(-1)
_ZERO = encode_varint(0)

HeaderPair = tuple[str | bytes, bytes | memoryview | None]


class NewRecord(NamedTuple):
    """A record before it has an offset."""

    value: bytes | memoryview | None
    key: bytes | memoryview | None = None
    timestamp: int = NO_TIMESTAMP
    headers: Sequence[HeaderPair] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """The fields of a batch header that do not follow from the records."""

    base_offset: int = 0
    """A producer always sends 0; the leader stamps the real one."""
    leader_epoch: int = NO_EPOCH
    compression: int = Compression.NONE
    append_time_ms: int | None = None
    """If set, every record has this broker time (LogAppendTime)."""
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    delete_horizon_ms: int | None = None
    """KIP-534: takes the place of the base timestamp; the records' deltas count from it."""

    @property
    def attributes(self) -> int:
        """The codec's number and the flags."""
        return (
            self.compression
            | (APPEND_TIME if self.append_time_ms is not None else 0)
            | (TRANSACTIONAL if self.is_transactional else 0)
            | (CONTROL if self.is_control else 0)
            | (DELETE_HORIZON if self.delete_horizon_ms is not None else 0)
        )


PLAIN = BatchOptions()


class BatchBuilder:
    """Takes records one by one; `build` may be called at any time."""

    __slots__ = (
        "_base_timestamp",
        "_last_offset_delta",
        "_max_timestamp",
        "_options",
        "_pieces",
        "count",
        "size",
    )

    count: int
    size: int
    """Bytes of the batch so far, before compression, header included."""

    def __init__(self, options: BatchOptions = PLAIN) -> None:
        self._options = options
        self._base_timestamp = options.delete_horizon_ms
        self._max_timestamp = NO_TIMESTAMP
        self._last_offset_delta = -1
        self._pieces: list[bytes | memoryview] = []
        self.count = 0
        self.size = HEADER_BYTES

    def append(
        self,
        value: bytes | memoryview | None,
        key: bytes | memoryview | None = None,
        timestamp: int = NO_TIMESTAMP,
        headers: Sequence[HeaderPair] = (),
        *,
        offset_delta: int | None = None,
    ) -> None:
        """Add a record after the last one, or further on where compaction has left a gap."""
        delta = self._last_offset_delta + 1 if offset_delta is None else offset_delta
        assert delta > self._last_offset_delta, "offsets rise within a batch"
        base_timestamp = self._base_timestamp
        if base_timestamp is None:
            base_timestamp = self._base_timestamp = timestamp
        if self.count == 0 or timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        body = b"".join(
            (
                b"\0",
                encode_varint(timestamp - base_timestamp),
                encode_varint(delta),
                _NULL if key is None else encode_varint(len(key)),
                b"" if key is None else key,
                _NULL if value is None else encode_varint(len(value)),
                b"" if value is None else value,
                _headers(headers) if headers else _ZERO,
            )
        )
        length = encode_varint(len(body))
        self._pieces.append(length)
        self._pieces.append(body)
        self.size += len(length) + len(body)
        self.count += 1
        self._last_offset_delta = delta

    def build(self, last_offset_delta: int | None = None) -> bytearray:
        """The batch; `last_offset_delta` keeps the span of a batch that compaction has thinned.

        A bytearray, so that offsets can be stamped without another copy.
        """
        options = self._options
        if last_offset_delta is None:
            last_offset_delta = self._last_offset_delta
        assert last_offset_delta >= max(0, self._last_offset_delta), "a batch spans an offset"
        body = compress(options.compression, b"".join(self._pieces))
        base = self._base_timestamp
        append_time = options.append_time_ms
        batch = bytearray(HEADER_BYTES)
        HEADER.pack_into(
            batch,
            0,
            options.base_offset,
            HEADER_BYTES - LENGTH_END + len(body),
            options.leader_epoch,
            MAGIC,
            0,
            options.attributes,
            last_offset_delta,
            NO_TIMESTAMP if base is None else base,
            self._max_timestamp if append_time is None else append_time,
            options.producer_id,
            options.producer_epoch,
            options.base_sequence,
            self.count,
        )
        batch += body
        crc = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
        batch[CRC_POSITION:ATTRIBUTES_POSITION] = crc.to_bytes(4, "big")
        return batch


def build_batch(records: Iterable[NewRecord], options: BatchOptions = PLAIN) -> bytearray:
    """All the records in one batch, at consecutive offsets."""
    builder = BatchBuilder(options)
    for record in records:
        builder.append(record.value, record.key, record.timestamp, record.headers)
    return builder.build()


def _headers(headers: Sequence[HeaderPair]) -> bytes:
    pieces: list[bytes | memoryview] = [encode_varint(len(headers))]
    for key, value in headers:
        name = key.encode() if isinstance(key, str) else key
        pieces.append(encode_varint(len(name)))
        pieces.append(name)
        if value is None:
            pieces.append(_NULL)
        else:
            pieces.append(encode_varint(len(value)))
            pieces.append(value)
    return b"".join(pieces)
