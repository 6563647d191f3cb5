"""A flush that waits for the disk on another thread."""

import errno
import uuid

import pytest

from holdfast.model import Offset, TopicPartition
from holdfast.protocol.records import NewRecord, build_batch, stamp
from holdfast.simulation.disk.byte_disk import ByteDisk
from holdfast.storage import (
    BackgroundFlush,
    Disk,
    Log,
    LogDirectory,
    LogOfflineError,
    LogSettings,
    open_log,
)
from holdfast.storage.background_flush import MOST_SEGMENTS
from holdfast.storage.checkpoints.checkpoint_file import read_epochs
from holdfast.storage.file_names import EPOCH_CHECKPOINT
from holdfast.storage.producers.replay import snapshot_offsets
from tests.unit.storage.support import NOW, batch


@pytest.fixture
def log(disk: Disk) -> Log:
    disk.create_directory("t-0")
    opened = open_log(disk, "t-0", LogSettings()).log
    opened.flush(0)
    return opened


def append(log: Log, count: int = 1) -> None:
    for _ in range(count):
        written = build_batch([NewRecord(b"value")])
        stamp(written, 0, log.log_end_offset, 0)
        log.append([written], 0)


def test_it_covers_what_was_written_when_it_began(log: Log) -> None:
    append(log, 3)
    flush = BackgroundFlush(log)
    append(log, 2)
    flush.run()
    assert log.recovery_point == 0, "nothing is claimed before the flush has ended"
    assert flush.end(None, 5) == 3
    assert (log.recovery_point, log.log_end_offset) == (3, 5)
    assert log.flush(6) == 5, "what came meanwhile is still to be flushed"


def test_a_truncation_below_it_voids_the_flush(log: Log) -> None:
    append(log, 3)
    flush = BackgroundFlush(log)
    flush.run()
    log.truncate_to(Offset(1), 0)
    append(log, 4)
    assert flush.end(None, 5) == 0, "offsets 1 and 2 are new records, which are not flushed"


def test_a_restarted_log_ignores_an_earlier_flush(log: Log) -> None:
    append(log, 3)
    flush = BackgroundFlush(log)
    log.restart_at(Offset(10), 0)
    flush.run()
    assert flush.end(None, 5) == 10


def test_a_roll_in_between_leaves_it_to_the_next_flush(log: Log) -> None:
    append(log, 3)
    flush = BackgroundFlush(log)
    log.roll(0)
    append(log)
    flush.run()
    assert flush.end(None, 5) == 0, "the sealed segment's indexes are not on the disk"
    assert log.recovery_point < log.active.base_offset
    assert flushed(log) == 4


def flushed(log: Log) -> Offset:
    flush = BackgroundFlush(log)
    flush.run()
    return flush.end(None, 5)


def test_a_flush_covers_a_few_sealed_segments(log: Log) -> None:
    for _ in range(10):
        append(log, 2)
        log.roll(0)
    append(log)
    assert flushed(log) == 2 * MOST_SEGMENTS
    assert log.has_unflushed_seals
    append(log)
    assert flushed(log) == 4 * MOST_SEGMENTS
    assert flushed(log) == 22
    assert log.recovery_point >= log.active.base_offset
    assert not any(segment.is_dirty for segment in log.segments)


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_roll_waits_for_no_flush(policy: str) -> None:
    disk = ByteDisk()
    disk.create_directory("t-0")
    log = open_log(disk, "t-0", LogSettings(cleanup_policy=(policy,))).log
    calls: list[int] = []
    log.rolled = lambda: calls.append(len(log.segments))
    append(log, 3)
    kinds: list[str] = []
    disk.on_step = lambda step: kinds.append(step.kind)
    log.roll(0)
    append(log)
    assert "create" in kinds
    assert not [kind for kind in kinds if kind.startswith("flush")]
    assert calls == [2], "the owner of the log is notified of the roll"


def test_a_snapshot_has_a_file_when_everything_below_it_is_flushed(log: Log) -> None:
    append(log, 3)
    log.roll(0)
    append(log)
    assert snapshot_offsets(log.disk, log.directory) == []
    flushed(log)
    assert snapshot_offsets(log.disk, log.directory) == [3]


def test_a_truncation_forgets_snapshots_that_wait(log: Log) -> None:
    append(log, 3)
    log.roll(0)
    append(log)
    log.truncate_to(Offset(2), 0)
    append(log, 4)
    flushed(log)
    assert snapshot_offsets(log.disk, log.directory) == []


def test_a_failed_flush_takes_the_log_offline(log: Log) -> None:
    append(log)
    flush = BackgroundFlush(log)
    with pytest.raises(LogOfflineError):
        flush.end(OSError(errno.EIO, "no"), 5)
    with pytest.raises(LogOfflineError):
        append(log)


def test_a_segment_is_flushed_with_its_indexes_also_if_its_records_were_flushed_before() -> None:
    """flush.messages=1: every roll finds the recovery point at the log's end."""
    disk = ByteDisk()
    disk.create_directory("t-0")
    log = open_log(disk, "t-0", LogSettings()).log
    append(log, 3)
    log.flush(0)
    log.roll(0)
    assert log.has_unflushed_seals
    append(log)
    assert flushed(log) == 4
    assert not any(segment.is_dirty for segment in log.segments)


def test_a_flush_of_a_deleted_log_writes_no_epochs_into_its_successor(disk: Disk) -> None:
    directory = LogDirectory(disk, lambda _: LogSettings())
    partition = TopicPartition("again", 0)
    old = directory.create(partition, None)
    old.append([batch(0, epoch=7)], NOW)
    flush = BackgroundFlush(old)
    directory.delete(partition, uuid.UUID(int=1), NOW)
    new = directory.create(partition, None)
    new.append([batch(0, epoch=1)], NOW)
    later = BackgroundFlush(new)
    flush.run()
    flush.end(None, NOW)
    later.run()
    later.end(None, NOW)
    assert read_epochs(disk, f"{new.directory}/{EPOCH_CHECKPOINT}") == [(1, 0)]
