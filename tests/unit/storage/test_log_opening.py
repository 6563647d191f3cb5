"""Opening logs on other threads, and what a start after a crash reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.model import ProducerId, TopicPartition
from holdfast.simulation.disk.byte_disk import ByteDisk, ByteFile
from holdfast.storage import BackgroundFlush, Log, LogDirectory, LogSettings, RealDisk
from holdfast.storage.real_disk import RealFile
from tests.support.disks import close_files
from tests.unit.storage.support import NOW, produced, values_of

P = TopicPartition("t", 0)
SMALL = LogSettings(segment_bytes=2_000, index_interval_bytes=100)


def grown(directory: LogDirectory, partition: TopicPartition, count: int) -> Log:
    """A log with flushed sealed segments, as on a broker, and an unflushed end."""
    log = directory.create(partition, None)
    for number in range(count):
        log.append([produced(number, 7, number, [b"value" * 10])], NOW)
        if log.has_unflushed_seals:
            flush = BackgroundFlush(log)
            flush.run()
            flush.end(None, NOW)
    directory.write_checkpoints({})
    return log


@contextmanager
def counted_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    sizes: list[int] = []
    read = ByteFile.read

    def counted(file: ByteFile, position: int, size: int) -> bytes:
        data = read(file, position, size)
        sizes.append(len(data))
        return data

    with monkeypatch.context() as patch:
        patch.setattr(ByteFile, "read", counted)
        yield sizes


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_start_after_a_crash_reads_no_more_of_a_longer_log(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.storage.producers.replay.RETRIED_BYTES", 3_000)
    settings = LogSettings(segment_bytes=2_000, index_interval_bytes=100, cleanup_policy=(policy,))
    spent = []
    for count in (160, 1600):
        disk = ByteDisk()
        log = grown(LogDirectory(disk, lambda _: settings), P, count)
        assert len(log.segments) > count // 20
        assert log.log_end_offset > log.recovery_point
        with counted_reads(monkeypatch) as sizes:
            [opening] = LogDirectory(ByteDisk(disk.root), lambda _: settings).openings()
            opening.run()
            again = opening.end()
        assert again.log_end_offset == count
        spent.append(sum(sizes))
    assert spent[1] < 1.2 * spent[0], "ten times the log"


def test_several_logs_are_opened_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread opens each, with few descriptors; all files are closed in the end."""
    disk = RealDisk(tmp_path)
    directory = LogDirectory(disk, lambda _: SMALL)
    names = [TopicPartition("t", number) for number in range(8)]
    for name in names:
        log = directory.create(name, None)
        for number in range(200):
            log.append([produced(number, 7, number, [b"%d" % number])], NOW)
    close_files(disk)
    directory._lock.release()
    monkeypatch.setattr("holdfast.storage.real_disk.OPEN_FILES", 16)
    again = LogDirectory(fresh := RealDisk(tmp_path), lambda _: SMALL)
    openings = again.openings()
    threads: set[int] = set()
    barrier = threading.Barrier(4)
    read = RealFile.read

    def meeting(file: RealFile, position: int, size: int) -> bytes:
        if threading.get_ident() not in threads:
            threads.add(threading.get_ident())
            barrier.wait(60.0)  # So that four logs are being opened at this moment.
        assert len(fresh._open) <= 16 + 4
        return read(file, position, size)

    with monkeypatch.context() as patch, ThreadPoolExecutor(4) as pool:
        patch.setattr(RealFile, "read", meeting)
        for done in [pool.submit(one.run) for one in openings]:
            done.result()
    assert len(threads) == 4
    assert not fresh._open
    for opening in openings:
        log = opening.end()
        assert values_of(log) == [b"%d" % number for number in range(200)]
        assert log.producers.last_sequence(ProducerId(7)) == 199
        assert log.has_unflushed_seals, "what a killed process had flushed is unknown"
    close_files(fresh)
    again._lock.release()
