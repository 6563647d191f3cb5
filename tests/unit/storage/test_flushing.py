"""A flush whose long part runs elsewhere."""

import errno

import pytest

from holdfast.model import Offset
from holdfast.protocol.records import NewRecord, build_batch, stamp
from holdfast.storage import (
    BackgroundFlush,
    Disk,
    Log,
    LogOfflineError,
    LogSettings,
    open_log,
)


@pytest.fixture
def log(disk: Disk) -> Log:
    disk.create_directory("t-0")
    opened = open_log(disk, "t-0", LogSettings()).log
    opened.flush(0)
    return opened


def append(log: Log, count: int = 1) -> None:
    for _ in range(count):
        batch = build_batch([NewRecord(b"value")])
        stamp(batch, 0, log.log_end_offset, 0)
        log.append([batch], 0)


def test_it_covers_what_was_written_when_it_began(log: Log) -> None:
    append(log, 3)
    assert BackgroundFlush.suits(log)
    flush = BackgroundFlush(log)
    append(log, 2)
    flush.run()
    assert log.recovery_point == 0, "nothing is claimed before the flush has ended"
    assert flush.end(None, 5) == 3
    assert (log.recovery_point, log.log_end_offset) == (3, 5)
    assert log.flush(6) == 5, "what came meanwhile is still to be flushed"


def test_a_cut_below_it_takes_it_back(log: Log) -> None:
    append(log, 3)
    flush = BackgroundFlush(log)
    flush.run()
    log.truncate_to(Offset(1), 0)
    append(log, 4)
    assert flush.end(None, 5) == 0, "offsets 1 and 2 are others now, and nobody flushed them"


def test_a_log_that_began_anew_owes_it_nothing(log: Log) -> None:
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
    assert not BackgroundFlush.suits(log), "nor is the new file's name"
    assert log.flush(6) == 4


def test_a_failed_flush_takes_the_log_offline(log: Log) -> None:
    append(log)
    flush = BackgroundFlush(log)
    with pytest.raises(LogOfflineError):
        flush.end(OSError(errno.EIO, "no"), 5)
    with pytest.raises(LogOfflineError):
        append(log)
