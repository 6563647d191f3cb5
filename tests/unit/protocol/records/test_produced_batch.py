"""How a producer's batch is prepared for the log."""

from __future__ import annotations

import dataclasses
import struct

import pytest

from holdfast.model import ErrorCode
from holdfast.protocol.records import (
    Batch,
    BatchOptions,
    Compression,
    MalformedBatchError,
    NewRecord,
    Rules,
    build_batch,
    check_batch,
    parse_header,
    prepare_produced,
    read_records,
    recompressed,
)
from holdfast.protocol.records.crc import crc32c
from tests.unit.protocol.records import oracles
from tests.unit.protocol.records.samples import CODECS, SOME

NOW = 2_000_000
IDEMPOTENT = BatchOptions(producer_id=1, producer_epoch=0, base_sequence=0)


def lying(max_timestamp: int, records: list[NewRecord]) -> bytearray:
    data = build_batch(records)
    struct.pack_into(">q", data, 35, max_timestamp)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return data


def test_by_default_not_a_byte_is_changed_or_copied() -> None:
    data = build_batch(SOME, IDEMPOTENT)
    before = bytes(data)
    ready = prepare_produced(data, NOW)
    assert ready.data is data
    assert data == before
    assert ready.header == parse_header(data)
    view = memoryview(data)
    assert prepare_produced(view, NOW).data is view
    copied = prepare_produced(before, NOW).data
    assert isinstance(copied, bytearray)
    assert copied == before
    assert isinstance(prepare_produced(memoryview(before), NOW).data, bytearray)


@pytest.mark.parametrize("codec", CODECS)
def test_append_time_takes_the_place_of_the_producers(codec: Compression) -> None:
    data = build_batch(SOME, dataclasses.replace(IDEMPOTENT, compression=codec))
    ready = prepare_produced(data, 123, Rules(is_append_time=True, timestamp_before_max_ms=1))
    batch = Batch(ready.data)
    check_batch(batch)
    assert ready.header == batch.header
    assert batch.header.is_append_time
    assert {record.timestamp for record in read_records(batch)} == {123}
    assert [record.value for record in read_records(batch)] == [record.value for record in SOME]


def test_an_impossible_maximum_timestamp_is_corrected() -> None:
    records = [NewRecord(b"a", b"k", 1_000), NewRecord(b"b", b"k", 3_000)]
    for claim in (-1, 0, 999):
        ready = prepare_produced(lying(claim, records), NOW)
        assert ready.header.max_timestamp == 3_000
        check_batch(Batch(ready.data))


def test_a_possible_maximum_timestamp_is_kept_unless_records_are_decoded() -> None:
    records = [NewRecord(b"a", b"k", 1_000), NewRecord(b"b", b"k", 3_000)]
    assert prepare_produced(lying(2_000, records), NOW).header.max_timestamp == 2_000
    ready = prepare_produced(lying(2_000, records), NOW, Rules(needs_keys=True))
    assert ready.header.max_timestamp == 3_000
    check_batch(Batch(ready.data))


def test_records_without_times_are_fine() -> None:
    ready = prepare_produced(build_batch([NewRecord(b"v"), NewRecord(b"w")]), NOW)
    assert ready.header.max_timestamp == -1


@pytest.mark.parametrize("wanted", CODECS)
@pytest.mark.parametrize("codec", CODECS)
def test_a_topic_may_want_a_codec(codec: Compression, wanted: Compression) -> None:
    data = build_batch(SOME, dataclasses.replace(IDEMPOTENT, compression=codec))
    ready = prepare_produced(data, NOW, Rules(compression=wanted))
    batch = Batch(ready.data)
    check_batch(batch)
    assert ready.header == batch.header
    assert batch.header.compression == wanted
    assert (ready.data is data) == (codec == wanted)
    assert list(read_records(batch)) == list(read_records(Batch(data)))
    assert batch.header._replace(crc=0, length=0, attributes=0) == parse_header(data)._replace(
        crc=0, length=0, attributes=0
    )
    assert oracles.read("aiokafka", bytes(ready.data)) == oracles.read("aiokafka", bytes(data))


def test_what_is_too_large_in_the_topics_codec_is_refused() -> None:
    data = build_batch([NewRecord(bytes(10_000))], BatchOptions(compression=Compression.GZIP))
    with pytest.raises(MalformedBatchError, match="in the topic's codec") as caught:
        prepare_produced(data, NOW, Rules(max_message_bytes=1_000, compression=0))
    assert caught.value.error_code is ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(MalformedBatchError) as caught:
        recompressed(data, 0, limit=9_000)
    assert caught.value.error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_refusals_are_those_of_the_checks() -> None:
    data = build_batch(SOME)
    data[-1] ^= 1
    with pytest.raises(MalformedBatchError) as caught:
        prepare_produced(data, NOW)
    assert caught.value.error_code is ErrorCode.CORRUPT_MESSAGE
