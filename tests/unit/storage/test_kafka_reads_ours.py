"""Kafka's own DumpLogSegments reads every kind of file that Holdfast writes, and finds it valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.model import Offset
from holdfast.protocol.records import BatchOptions, Compression
from holdfast.storage import Log, LogSettings, RealDisk
from tests.unit.storage import kafka
from tests.unit.storage.support import NOW, batch, marker, open_, produced

pytestmark = pytest.mark.slow
SETTINGS = LogSettings(segment_bytes=6_000, index_interval_bytes=500)
CODECS = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]


def write(log: Log) -> None:
    """Every codec, several epochs and producers, both kinds of transactions, a truncation."""
    for number in range(60):
        values = [f"value {number} {place}".encode() * 5 for place in range(4)]
        options = BatchOptions(compression=CODECS[number % len(CODECS)])
        end = log.log_end_offset
        time = NOW + number * 7
        log.append([batch(end, values, epoch=number // 20, timestamp=time, options=options)], NOW)
        log.append(
            [produced(end + 4, 70 + number % 3, number // 3, [b"seq"], epoch=number // 20)], NOW
        )
    epoch = 3
    for number in range(6):
        end = log.log_end_offset
        log.append([produced(end, 90, number, is_transactional=True, epoch=epoch)], NOW)
        log.append([marker(end + 1, 90, is_commit=number % 2 == 0, epoch=epoch)], NOW)
    log.truncate_to(Offset(log.log_end_offset - 1), NOW)
    log.append([marker(log.log_end_offset, 90, is_commit=False, epoch=4)], NOW)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Holdfast log, closed cleanly."""
    log = open_(RealDisk(tmp_path), SETTINGS)
    write(log)
    log.close(NOW)
    return tmp_path / log.directory


def files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.glob(f"*{suffix}"))


def test_kafka_finds_our_batches_valid(folder: Path) -> None:
    output = kafka.dump(files(folder, ".log"), "--deep-iteration", "--print-data-log")
    assert "isvalid: false" not in output
    assert output.count("isvalid: true") == 60 * 2 + 12
    assert "payload: value 17 2" in output
    assert "endTxnMarker: ABORT" in output
    assert re.findall(r"Found \d+ invalid", output) == []


def test_kafka_finds_our_indexes_valid(folder: Path) -> None:
    indexes = [*files(folder, ".index"), *files(folder, ".timeindex")]
    assert len(indexes) > 4
    output = kafka.dump(indexes, "--verify-index-only")
    assert "ismatch" not in output.lower()
    assert "not found" not in output.lower()
    assert "out of order" not in output.lower()
    sane = kafka.dump(indexes, "--index-sanity-check")
    assert sane.count("passed sanity check") == len(indexes)


def test_kafka_reads_our_snapshots_and_transactions(folder: Path) -> None:
    output = kafka.dump([*files(folder, ".snapshot"), *files(folder, ".txnindex")])
    last = output.split("Dumping")[len(files(folder, ".snapshot"))]
    for producer in (70, 71, 72, 90):
        assert f"producerId: {producer} " in last
    assert "coordinatorEpoch: 7" in last
    aborted = re.findall(r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+)", output)
    assert len(aborted) == 3
    assert {producer for producer, _, _ in aborted} == {"90"}
