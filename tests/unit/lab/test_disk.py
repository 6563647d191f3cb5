"""The simulated disk: a write is not a flush, and a failed disk keeps failing."""

from __future__ import annotations

import pytest

from holdfast.core import CleanShutdown
from holdfast.lab.world.disk import DiskError, SimDisk
from holdfast.model import BrokerEpoch, Offset
from tests.unit.lab.worlds import batch


def disk_with(*counts: int, flushed: int = 0) -> SimDisk:
    """A disk with batches of so many records, labelled m0, m1 and so on."""
    disk = SimDisk()
    for count in counts:
        base = disk.end_offset
        disk.append(batch(base, *(f"m{base + at}" for at in range(count))))
    disk.flush(Offset(flushed))
    return disk


def labels(disk: SimDisk) -> list[str]:
    return [record.label for _, _, record in disk.records()]


def test_what_is_written_is_not_flushed() -> None:
    disk = disk_with(2, 1)
    assert (disk.end_offset, disk.flushed_offset) == (3, 0)
    disk.flush(Offset(2))
    assert (disk.end_offset, disk.flushed_offset) == (3, 2)


def test_a_flush_neither_goes_back_nor_beyond_the_end() -> None:
    disk = disk_with(3, flushed=2)
    disk.flush(Offset(1))
    assert disk.flushed_offset == 2
    disk.flush(Offset(99))
    assert disk.flushed_offset == 3


def test_power_loss_keeps_what_was_flushed() -> None:
    disk = disk_with(1, 3, flushed=2)
    gone = disk.lose_power()
    assert labels(disk) == ["m0", "m1"]
    assert [one.label for one in gone] == ["m2", "m3"]
    assert (disk.end_offset, disk.flushed_offset) == (2, 2)
    assert disk.keys == [0, 1]


@pytest.mark.parametrize(("torn", "kept"), [(0, 1), (1, 2), (2, 3), (3, 4), (9, 4)])
def test_power_loss_may_leave_a_torn_tail(torn: int, kept: int) -> None:
    disk = disk_with(2, 2, flushed=1)
    gone = disk.lose_power(torn)
    assert labels(disk) == [f"m{place}" for place in range(kept)]
    assert len(gone) == 4 - kept
    assert disk.flushed_offset == kept, "what recovery found can not be lost a second time"
    assert disk.lose_power() == []


def test_power_loss_brings_back_the_checkpoint_of_the_last_flush() -> None:
    disk = disk_with(3)
    disk.high_watermark_checkpoint = Offset(1)
    disk.flush(Offset(2))
    disk.high_watermark_checkpoint = Offset(3)
    disk.clean_shutdown = CleanShutdown(BrokerEpoch(1), BrokerEpoch(1))
    disk.lose_power()
    assert disk.high_watermark_checkpoint == 1
    assert disk.clean_shutdown is None


def test_a_truncation_may_split_a_batch() -> None:
    disk = disk_with(3, 3, flushed=5)
    gone = disk.truncate_to(Offset(4))
    assert [one.label for one in gone] == ["m4", "m5"]
    assert labels(disk) == ["m0", "m1", "m2", "m3"]
    assert [header.record_count for header in disk.headers()] == [3, 1]
    assert (disk.end_offset, disk.flushed_offset) == (4, 4)
    assert disk.keys == [0, 1, 2, 3]


def test_truncating_beyond_the_end_removes_nothing() -> None:
    disk = disk_with(2, flushed=2)
    assert disk.truncate_to(Offset(7)) == []
    assert (disk.end_offset, disk.flushed_offset) == (2, 2)


def test_a_log_can_be_thrown_away_and_begun_elsewhere() -> None:
    disk = disk_with(2, 2, flushed=4)
    assert len(disk.restart_at(Offset(10))) == 4
    assert (disk.start_offset, disk.end_offset, disk.flushed_offset) == (10, 10, 10)
    disk.append(batch(10, "m10", "m11"))
    assert disk.keys_between(10, 12) == disk.keys_between(0, 99) == [10, 11]
    assert disk.keys_between(0, 10) == []


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (0, 6, [(0, 3), (3, 3)]),
        (1, 6, [(1, 2), (3, 3)]),
        (2, 4, [(2, 1), (3, 1)]),
        (3, 3, []),
        (6, 9, []),
    ],
)
def test_a_read_gives_no_more_than_was_asked_for(
    start: int, end: int, found: list[tuple[int, int]]
) -> None:
    batches = disk_with(3, 3).read(Offset(start), Offset(end))
    assert [(one.header.base_offset, one.header.record_count) for one in batches] == found
    assert [record.label for one in batches for record in one.records] == [
        f"m{place}" for place in range(start, min(end, 6))
    ]


def test_a_batch_that_a_read_splits_keeps_its_numbering() -> None:
    disk = SimDisk()
    one = batch(0, "a", "b", "c")
    disk.append(one._replace(header=one.header._replace(base_sequence=7)))
    (found,) = disk.read(Offset(1), Offset(2))
    assert (found.header.base_offset, found.header.base_sequence) == (1, 8)


@pytest.mark.parametrize("why", ["input/output error", "no space left on device"])
def test_a_failing_disk_refuses_to_write_and_to_flush_until_it_is_repaired(why: str) -> None:
    disk = disk_with(2, flushed=1)
    disk.fails = why
    with pytest.raises(DiskError, match=why):
        disk.append(batch(2, "m2"))
    with pytest.raises(DiskError, match=why):
        disk.flush(Offset(2))
    assert (disk.end_offset, disk.flushed_offset) == (2, 1)
    assert labels(disk) == ["m0", "m1"], "what was written before can still be read"
    disk.fails = ""
    disk.append(batch(2, "m2"))
    assert disk.end_offset == 3


def test_a_disk_that_cannot_be_read_fails_only_where_there_is_something_to_read() -> None:
    disk = disk_with(2)
    disk.unreadable = "input/output error"
    with pytest.raises(DiskError, match="input/output"):
        disk.read(Offset(0), Offset(1))
    assert disk.read(Offset(2), Offset(2)) == ()
