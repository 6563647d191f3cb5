"""The same bytes and records as kafka-python and aiokafka, for every codec."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import EndMarker
from holdfast.protocol.records import (
    Batch,
    BatchOptions,
    Compression,
    NewRecord,
    build_batch,
    build_end_marker,
    check_batch,
    read_records,
)
from tests.unit.protocol.records import oracles
from tests.unit.protocol.records.samples import (
    CODECS,
    SOME,
    batch_options,
    few,
    idempotent,
    plain,
    plain_new,
    record_lists,
)

each_oracle = pytest.mark.parametrize("oracle", oracles.ORACLES)
each_codec = pytest.mark.parametrize("codec", CODECS)
produced = st.builds(
    lambda codec, producer: BatchOptions(compression=codec, **producer),
    st.sampled_from(CODECS),
    st.just({}) | idempotent,
)
timed_lists = record_lists.map(
    # Without a timestamp the oracles take their own clock's.
    lambda records: [one._replace(timestamp=max(0, one.timestamp)) for one in records]
)


@each_oracle
@each_codec
def test_uncompressed_bytes_are_equal_and_compressed_ones_say_the_same(
    oracle: str, codec: Compression
) -> None:
    options = BatchOptions(compression=codec, producer_id=7, producer_epoch=1, base_sequence=40)
    ours = build_batch(SOME, options)
    theirs = oracles.build(oracle, SOME, options)
    if codec is Compression.NONE:
        # Who built it first sends it: the leader epoch is the one field a producer makes up.
        assert ours[16:] == theirs[16:]
        assert ours[:12] == theirs[:12]
    assert oracles.read(oracle, bytes(ours)) == plain_new(SOME)
    batch = Batch(theirs)
    check_batch(batch)
    assert [plain(record) for record in read_records(batch)] == plain_new(SOME)


@each_oracle
@few
@given(records=timed_lists, options=produced)
def test_we_read_what_they_build(
    oracle: str, records: list[NewRecord], options: BatchOptions
) -> None:
    batch = Batch(oracles.build(oracle, records, options))
    check_batch(batch)
    assert [plain(record) for record in read_records(batch)] == plain_new(records)
    ours = Batch(build_batch(records, options)).header
    # They leave data as it is where compressing it makes it no smaller, so the codec may differ.
    same = {"length": 0, "crc": 0, "leader_epoch": 0, "attributes": 0}
    assert batch.header._replace(**same) == ours._replace(**same)
    assert batch.header.is_transactional == ours.is_transactional


@each_oracle
@few
@given(records=record_lists, options=batch_options)
def test_they_read_what_we_build(
    oracle: str, records: list[NewRecord], options: BatchOptions
) -> None:
    if options.is_control:
        return  # They take the key of a control record for a marker's.
    ours = bytes(build_batch(records, options))
    expected = [plain(record) for record in read_records(Batch(ours))]
    assert oracles.read(oracle, ours) == expected


@pytest.mark.parametrize("is_commit", [True, False])
def test_kafka_python_reads_our_markers(is_commit: bool) -> None:
    marker = build_end_marker(EndMarker(is_commit, 5, 0, 3), 1_000, 90)
    assert oracles.kafka_python_marker(bytes(marker)) == (90, is_commit, not is_commit)
