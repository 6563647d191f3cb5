"""The checks of a broker before it accepts a batch, in the order of Kafka's broker.

Three levels, each including the one before:

1. `check_batch`: size, CRC, consistent header. For every batch.
2. `check_produced`: what a producer may send: one batch, all its offsets in use, no control
   records, no reserved attribute, consistent producer fields, a timestamp not too far ahead.
3. `check_records`: decodes every record. It costs 12 to 20 times the rest, so it is done only if
   `needs_records` says that a setting of the topic, or an impossible header, requires it.

A broker calls `produced_batch.prepare_produced`, which does the second, the third if needed, and
then the changes that the topic's settings require.

A follower and a recovering log do the first only: the leader has done the others, and compaction
leaves gaps that a producer must not send.

These checks use no clock and no log: the time is part of the rules, and the core checks the
sequence numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.model import NO_PRODUCER, NO_TIMESTAMP, ErrorCode
from holdfast.protocol.records.batch_header import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    HEADER_BYTES,
    LENGTH_END,
    UNUSED_ATTRIBUTES,
    Batch,
    Bytes,
    RecordBatchHeader,
    check_span,
)
from holdfast.protocol.records.compression import Compression
from holdfast.protocol.records.errors import MalformedBatchError, RecordError
from holdfast.protocol.records.record import Record, read_records

FOREVER = 2**63 - 1
EXPANSION_LIMIT = 64
"""How many times max.message.bytes a batch may expand to.

max.message.bytes limits a batch as it is stored, compressed. Text rarely compresses to less than a
twentieth, zeros to a thousandth, and a malicious batch to a ten thousandth or less."""

MOST_RECORD_ERRORS = 1_000
"""The most records that an error names: a compressed batch may hold millions."""
NO_KEY = "has no key, and the topic is compacted"

_KNOWN_CODECS = frozenset(Compression)


class _RefusedRecord(NamedTuple):
    batch_index: int
    reason: str
    code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a topic and a request allow. Names and defaults are Kafka's."""

    max_message_bytes: int = 1_048_588
    is_append_time: bool = False
    """message.timestamp.type=LogAppendTime: the producer's timestamps do not matter."""
    timestamp_before_max_ms: int = FOREVER
    timestamp_after_max_ms: int = 3_600_000
    needs_keys: bool = False
    """cleanup.policy includes compact: a record without a key could never be cleaned."""
    compression: int | None = None
    """compression.type: the codec of all batches in the log; None for "producer"."""
    allows_zstd: bool = True
    """False for Produce below version 7, whose readers may not know zstd (KIP-110)."""

    @property
    def decompressed_limit(self) -> int:
        """Bytes a batch may expand to."""
        return self.max_message_bytes * EXPANSION_LIMIT


class RecordFacts(NamedTuple):
    """The result of decoding the records."""

    max_timestamp: int
    """The true maximum. As in Kafka, `stamp_max_timestamp` corrects a wrong header."""
    is_header_true: bool


DEFAULT_RULES = Rules()


def check_batch(batch: Batch, max_message_bytes: int = FOREVER) -> None:
    """Check for damage and for what no writer may do. The size comes first."""
    header = batch.header
    if header[1] + LENGTH_END > max_message_bytes:
        raise MalformedBatchError(
            batch.position,
            f"a batch of {header.size} bytes, {max_message_bytes} are allowed",
            ErrorCode.MESSAGE_TOO_LARGE,
        )
    if not batch.crc_matches():
        batch.check_crc()  # which says what it found
    check_span(header, batch.position)
    if header[5] & COMPRESSION_MASK not in _KNOWN_CODECS:
        raise MalformedBatchError(
            batch.position,
            f"no codec has the number {header.compression}",
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        )


def check_produced(
    data: Bytes, now_ms: int, rules: Rules = DEFAULT_RULES
) -> tuple[Batch, RecordFacts | None]:
    """The one batch that a producer sent for one partition, or an error.

    The records are decoded only if `needs_records` says so; then their facts are returned too.
    """
    batch = Batch(data)
    header = batch.header
    if header[1] + LENGTH_END != len(data):
        raise _refused(header.size, "a producer may send one batch per partition, here is more")
    check_batch(batch, rules.max_message_bytes)
    if not _is_plain(header) or not rules.allows_zstd:
        _check_codec(header, rules)
        _check_offsets(header)
        _check_producer(header)
    _check_header_time(batch, now_ms, rules)
    if not needs_records(rules, header):
        return batch, None
    return batch, check_records(batch, now_ms, rules)


def needs_records(rules: Rules, header: RecordBatchHeader | None = None) -> bool:
    """Whether a rule cannot be checked from the header, or this header is impossible.

    A header has the latest timestamp of its batch but not the earliest, and nothing about the keys.
    The base timestamp is a record's, so the latest cannot be before it.
    """
    if rules.needs_keys:
        return True
    if rules.is_append_time:
        return False
    is_untrue = header is not None and header.max_timestamp < header.base_timestamp
    return is_untrue or rules.timestamp_before_max_ms < FOREVER


def check_records(batch: Batch, now_ms: int, rules: Rules = DEFAULT_RULES) -> RecordFacts:
    """Decode and check every record of a producer's batch: structure, offsets, keys, times.

    A batch is refused as a whole, and the error names the wrong records (KIP-467). Offsets must run
    from 0 without a gap. The reader checks the header's count, sizes and last offset; a wrong
    maximum timestamp is returned, not refused.
    """
    header = batch.header
    most = NO_TIMESTAMP
    is_create_time = not (rules.is_append_time or header.is_append_time)
    expected = header.base_offset
    refused: list[_RefusedRecord] = []
    for record in read_records(batch, rules.decompressed_limit):
        if record.offset != expected:
            raise _refused(batch.position, f"offset {record.offset} where {expected} belongs")
        if rules.needs_keys and record.key is None:
            index = expected - header.base_offset
            refused.append(_RefusedRecord(index, NO_KEY, ErrorCode.INVALID_RECORD))
        elif is_create_time and not _is_time_allowed(record, now_ms, rules):
            index, reason = expected - header.base_offset, _time_reason(record.timestamp, now_ms)
            refused.append(_RefusedRecord(index, reason, ErrorCode.INVALID_TIMESTAMP))
        if len(refused) >= MOST_RECORD_ERRORS:
            break
        if record.timestamp > most or expected == header.base_offset:
            most = record.timestamp
        expected += 1
    if refused:
        raise _refused_for(batch.position, refused)
    if expected != header.end_offset:
        raise _refused(
            batch.position, f"the records end before {expected}, the batch at {header.end_offset}"
        )
    return RecordFacts(most, most == header.max_timestamp)


def _is_plain(header: RecordBatchHeader) -> bool:
    """Whether this is a usual batch: no attribute but a codec, as many records as offsets, and all
    producer fields or none. Such a batch passes `_check_offsets` and `_check_producer`.
    """
    count, producer_id = header[12], header[9]
    return (
        not header[5] & ~COMPRESSION_MASK
        and 0 < count == header[6] + 1
        and (producer_id == NO_PRODUCER or (producer_id >= 0 <= header[10] and header[11] >= 0))
    )


def _check_codec(header: RecordBatchHeader, rules: Rules) -> None:
    if header.compression == Compression.ZSTD and not rules.allows_zstd:
        raise MalformedBatchError(
            0, "zstd needs Produce version 7 or later", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        )


def _check_offsets(header: RecordBatchHeader) -> None:
    # The base offset does not matter: the leader stamps it, and Kafka does not check it either.
    if header.record_count == 0:
        raise _refused(HEADER_BYTES - 4, "a batch without records")
    if header.record_count != header.last_offset_delta + 1:
        raise _refused(
            HEADER_BYTES - 4,
            f"{header.record_count} records, but {header.last_offset_delta + 1} offsets",
        )


def _check_producer(header: RecordBatchHeader) -> None:
    if header.is_control:
        raise _refused(0, "a producer may not write control records")
    if header.producer_id != NO_PRODUCER:
        if header.producer_id < 0 or header.producer_epoch < 0 or header.base_sequence < 0:
            raise _refused(
                0,
                f"producer {header.producer_id}, epoch {header.producer_epoch}: "
                f"no sequence number {header.base_sequence}",
            )
    elif header.is_transactional:
        raise _refused(0, "a transaction without a producer id")
    if header.delete_horizon_ms is not None:
        raise _refused(0, "only a broker's cleaner sets a delete horizon")
    if header.attributes & UNUSED_ATTRIBUTES:
        raise _refused(ATTRIBUTES_POSITION, f"attributes {header.attributes & 0xFFFF:#x}")


def _check_header_time(batch: Batch, now_ms: int, rules: Rules) -> None:
    header = batch.header
    if header.is_append_time:
        # Kafka's validator refuses this too: only the broker sets this attribute.
        raise MalformedBatchError(
            0, "a producer may not set the broker's append time", ErrorCode.INVALID_TIMESTAMP
        )
    if rules.is_append_time:
        return
    if header.max_timestamp - now_ms > rules.timestamp_after_max_ms:
        check_records(batch, now_ms, rules)  # which names the records
        reason = f"the latest record {_time_reason(header.max_timestamp, now_ms)}"
        raise MalformedBatchError(0, reason, ErrorCode.INVALID_TIMESTAMP)


def _is_time_allowed(record: Record, now_ms: int, rules: Rules) -> bool:
    if record.timestamp == NO_TIMESTAMP:
        return True
    ahead = record.timestamp - now_ms
    return ahead <= rules.timestamp_after_max_ms and -ahead <= rules.timestamp_before_max_ms


def _time_reason(timestamp: int, now_ms: int) -> str:
    return f"has the timestamp {timestamp}, too far from the broker's clock, {now_ms}"


def _refused_for(position: int, refused: list[_RefusedRecord]) -> MalformedBatchError:
    """The error for the whole batch; a wrong timestamp decides its code, as in Kafka."""
    codes = [one.code for one in refused]
    is_time = ErrorCode.INVALID_TIMESTAMP in codes
    code = ErrorCode.INVALID_TIMESTAMP if is_time else ErrorCode.INVALID_RECORD
    index, reason, _ = refused[0]
    count = "1 record is" if len(refused) == 1 else f"{len(refused)} records are"
    errors = tuple(RecordError(one.batch_index, f"the record {one.reason}") for one in refused)
    return MalformedBatchError(position, f"{count} refused; record {index} {reason}", code, errors)


def _refused(position: int, reason: str) -> MalformedBatchError:
    return MalformedBatchError(position, reason, ErrorCode.INVALID_RECORD)
