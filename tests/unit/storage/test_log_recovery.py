"""Opening a log after a clean shutdown, after kill -9, and after damage to any of its files."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from holdfast.model import Offset, ProducerId
from holdfast.simulation.disk.byte_disk import ByteDisk, DirectoryNode, Fault, FileNode
from holdfast.storage import (
    Disk,
    LastKnown,
    Log,
    LogOfflineError,
    aborted_transactions,
    latest_timestamp,
    offset_for_timestamp,
    read,
)
from holdfast.storage.disk import read_whole, write_whole
from holdfast.storage.file_names import EPOCH_CHECKPOINT, LOG
from holdfast.storage.producers.replay import snapshot_offsets
from tests.unit.storage.support import (
    CLEAN,
    DIRECTORY,
    NOW,
    SMALL,
    batch,
    fill,
    marker,
    open_,
    opened,
    produced,
    records_of,
    reopened,
    values_of,
)


def damage(disk: Disk, name: str, change: Callable[[bytearray], None]) -> None:
    path = f"{DIRECTORY}/{name}"
    content = bytearray(read_whole(disk, path) or b"")
    change(content)
    write_whole(disk, path, bytes(content))


def flip(position: int) -> Callable[[bytearray], None]:
    def change(content: bytearray) -> None:
        content[position] ^= 0x40

    return change


def shorten(size: int) -> Callable[[bytearray], None]:
    def change(content: bytearray) -> None:
        del content[len(content) - size :]

    return change


def offsets(log: Log) -> list[int]:
    return [offset for offset, _ in records_of(log)]


def test_a_clean_log_is_taken_over_without_reading_it(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 20, epoch=3)
    log.close(NOW)
    done = opened(disk, SMALL, CLEAN)
    assert done.report.verified_bytes == 0
    assert done.report.notes == []
    assert (done.log.log_end_offset, done.log.recovery_point) == (20, 20)
    assert done.log.epochs.entries == [(3, 0)]
    fill(done.log, 20, epoch=3)
    assert offsets(done.log) == list(range(40))


def test_after_a_kill_everything_written_is_there(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 20)
    again = reopened(log)
    assert values_of(again) == values_of(log)
    assert again.recovery_point == 0


def test_only_the_part_above_the_recovery_point_is_verified(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 12)
    log.flush(NOW)
    fill(log, 5)
    known = LastKnown(recovery_point=log.recovery_point)
    done = opened(disk, SMALL, known)
    base = log.segments[log.place_of(12)].base_offset
    verified = sum(s.size for s in done.log.segments if s.base_offset >= base)
    assert done.report.verified_bytes == verified
    assert done.log.recovery_point == 12


@pytest.mark.parametrize("position", [0, 8, 16, 17, 30, 100, 160])
def test_the_log_is_truncated_at_the_first_bad_batch(disk: Disk, position: int) -> None:
    log = open_(disk)
    fill(log, 20)
    size = log.segments[0].size // 5
    damage(disk, f"{5:020d}.log", flip(2 * size + position))
    done = opened(disk, SMALL)
    assert offsets(done.log) == list(range(7))
    assert done.report.truncated_bytes > 0
    assert any("byte" in note for note in done.report.notes)
    fill(done.log, 9, epoch=1)
    assert offsets(reopened(done.log)) == list(range(16))


def test_a_torn_end_is_truncated(disk: Disk) -> None:
    for size in (1, 50, 100, 168):
        log = open_(disk)
        fill(log, 3)
        name = f"{log.active.base_offset:020d}.log"
        end = log.log_end_offset
        log.active.close()
        damage(disk, name, shorten(size))
        assert open_(disk).log_end_offset == end - 1


def test_segments_after_one_that_lost_its_end_are_dropped(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 20)
    size = log.segments[0].size // 5
    damage(disk, f"{5:020d}.log", shorten(size))
    done = opened(disk, SMALL)
    assert offsets(done.log) == list(range(9))
    assert any("does not follow" in note for note in done.report.notes)


def test_segments_after_a_missing_one_are_dropped(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 20)
    disk.remove(f"{DIRECTORY}/{5:020d}.log")
    assert offsets(open_(disk)) == list(range(5))


def test_a_leader_epoch_that_falls_is_rejected(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 3, epoch=5)
    log.append([batch(3, [b"old"], epoch=4)], NOW)
    assert offsets(open_(disk)) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize(
    "change",
    [shorten(3), flip(0), flip(5), flip(9), lambda content: content.clear(), shorten(8)],
)
def test_a_damaged_index_is_rebuilt(
    disk: Disk, kind: str, change: Callable[[bytearray], None]
) -> None:
    log = open_(disk)
    fill(log, 20, step_ms=10)
    log.close(NOW)
    damage(disk, f"{5:020d}.{kind}", change)
    again = open_(disk, SMALL, CLEAN)
    for offset in range(20):
        [found, *_] = list(records_of(again, offset))
        assert found[0] == offset
        timed = offset_for_timestamp(again, NOW + offset * 10)
        assert timed is not None
        assert timed.offset <= offset


def test_a_stale_index_is_detected(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 20)
    log.close(NOW)
    other = read_whole(disk, f"{DIRECTORY}/{0:020d}.index")
    assert other
    content = b"".join(
        other[place : place + 4] + bytes([0, 0, 0, 5 + place]) for place in range(0, len(other), 8)
    )
    write_whole(disk, f"{DIRECTORY}/{5:020d}.index", content)
    again = open_(disk, SMALL, CLEAN)
    assert [next(records_of(again, offset))[0] for offset in range(20)] == list(range(20))


def test_missing_indexes_are_rebuilt(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 20)
    log.close(NOW)
    for entry in disk.list(DIRECTORY):
        if entry.name.endswith(("index", ".snapshot")) or entry.name == EPOCH_CHECKPOINT:
            disk.remove(f"{DIRECTORY}/{entry.name}")
    again = open_(disk, SMALL, CLEAN)
    assert offsets(again) == list(range(20))
    assert again.epochs.entries == [(0, 0)]


@pytest.mark.parametrize(
    "content",
    [b"", b"0\n", b"0\n2\n0 0\n", b"1\n0\n", b"0\n1\n-1 0\n", b"0\n1\nx y\n", b"\xff\xff"],
)
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_damaged_epoch_checkpoint_is_rebuilt(disk: Disk, content: bytes, is_clean: bool) -> None:
    log = open_(disk)
    fill(log, 7, epoch=0)
    fill(log, 7, epoch=2)
    if is_clean:
        log.close(NOW)
    write_whole(disk, f"{DIRECTORY}/{EPOCH_CHECKPOINT}", content)
    done = opened(disk, SMALL, LastKnown(is_clean=is_clean, recovery_point=Offset(10)))
    assert done.log.epochs.entries == [(0, 0), (2, 7)]
    assert any(EPOCH_CHECKPOINT in note for note in done.report.notes)


def test_producer_state_survives_each_way_of_opening(disk: Disk) -> None:
    log = open_(disk)
    for number in range(12):
        log.append([produced(number, 40 + number % 3, number // 3)], NOW)
    expected = dict(log.producers.states)
    assert open_(disk).producers.states == expected
    assert open_(disk, SMALL, LastKnown(recovery_point=Offset(11))).producers.states == expected
    for offset in snapshot_offsets(log.disk, log.directory):
        damage(disk, f"{offset:020d}.snapshot", flip(4))
    assert open_(disk, SMALL, LastKnown(recovery_point=Offset(11))).producers.states == expected
    again = open_(disk)
    again.close(NOW)
    assert open_(disk, SMALL, CLEAN).producers.states == expected


def test_producer_state_follows_a_truncation(disk: Disk) -> None:
    log = open_(disk)
    for number in range(12):
        log.append([produced(number, 40 + number % 3, number // 3)], NOW)
    log.truncate_to(Offset(7), NOW)
    assert {one.producer_id: one.last_sequence for one in log.producers.states.values()} == {
        40: 2,
        41: 1,
        42: 1,
    }


def test_transactions_hold_back_readers_until_they_end(disk: Disk) -> None:
    log = open_(disk)
    log.append([produced(0, 1, 0, is_transactional=True)], NOW)
    log.append([batch(1)], NOW)
    log.append([produced(2, 2, 0, is_transactional=True)], NOW)
    assert log.producers.last_stable_offset(3) == 0
    log.append([marker(3, 1, is_commit=False)], NOW)
    assert log.producers.last_stable_offset(3) == 0
    assert log.producers.last_stable_offset(4) == 2
    log.append([marker(4, 2, is_commit=True)], NOW)
    assert log.producers.last_stable_offset(5) == 5
    assert aborted_transactions(log, 0, 5) == [(1, 0, 3, 2)]
    assert aborted_transactions(log, 4, 5) == []
    for again in (reopened(log), reopened(log, is_clean=True)):
        assert aborted_transactions(again, 0, 5) == [(1, 0, 3, 2)]
        assert again.producers.last_stable_offset(5) == 5
        assert again.producers.states[ProducerId(1)].coordinator_epoch == 7


def test_a_damaged_transaction_index_is_rebuilt(disk: Disk) -> None:
    log = open_(disk)
    log.append([produced(0, 1, 0, is_transactional=True)], NOW)
    log.append([marker(1, 1, is_commit=False)], NOW)
    fill(log, 20)
    log.close(NOW)
    damage(disk, f"{0:020d}.txnindex", shorten(3))
    assert aborted_transactions(open_(disk, SMALL, CLEAN), 0, 5) == [(1, 0, 1, 2)]


def test_leftovers_are_removed(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 12)
    log.truncate_to(Offset(3), NOW)
    assert log.deletions.pending
    write_whole(disk, f"{DIRECTORY}/{0:020d}.log.cleaned", b"half")
    write_whole(disk, f"{DIRECTORY}/{900:020d}.index", b"12345678")
    done = opened(disk)
    assert offsets(done.log) == [0, 1, 2]
    names = [entry.name for entry in disk.list(DIRECTORY)]
    assert not [name for name in names if name.endswith((".deleted", ".cleaned"))]
    assert f"{900:020d}.index" not in names


@pytest.mark.parametrize("kind", ["append", "flush", "create", "flush_directory", "rename"])
def test_a_failing_disk_takes_the_log_offline_for_good(kind: str) -> None:
    disk = ByteDisk()
    log = open_(disk)
    fill(log, 4)
    disk.faults.append(Fault(kind, DIRECTORY))

    def use() -> None:
        for _ in range(3):
            fill(log, 5)
            log.flush(NOW)
            log.truncate_to(Offset(2), NOW)

    with pytest.raises(LogOfflineError):
        use()
    disk.faults.clear()
    with pytest.raises(LogOfflineError):
        fill(log, 1)
    with pytest.raises(LogOfflineError):
        log.flush(NOW)
    with pytest.raises(LogOfflineError):
        read(log, 0, 100)
    again = open_(disk)
    assert offsets(again)[:2] == [0, 1]


def test_a_disk_that_cannot_be_read_takes_the_log_offline() -> None:
    disk = ByteDisk()
    log = open_(disk)
    fill(log, 4)
    looks: list[Callable[[], object]] = [
        lambda: read(log, 0, 100),
        lambda: offset_for_timestamp(log, NOW),
        lambda: latest_timestamp(log),
    ]
    for look in looks:
        log = open_(disk)
        disk.faults.append(Fault("read", DIRECTORY))
        with pytest.raises(LogOfflineError):
            look()
        assert log.offline is not None
        disk.faults.clear()


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_transaction_index_that_cannot_be_read_takes_the_log_offline(is_damaged: bool) -> None:
    disk = ByteDisk()
    log = open_(disk)
    log.append([produced(0, 1, 0, is_transactional=True)], NOW)
    log.append([marker(1, 1, is_commit=False)], NOW)
    fill(log, 20)
    log.close(NOW)
    if is_damaged:  # so it is the log that is read
        damage(disk, f"{0:020d}.txnindex", shorten(3))
    log = open_(disk, SMALL, CLEAN)
    disk.faults.append(Fault("read", ".log" if is_damaged else ".txnindex"))
    with pytest.raises(LogOfflineError):
        aborted_transactions(log, 0, 5)
    assert log.offline is not None


def test_a_full_disk_takes_the_log_offline_and_leaves_a_prefix() -> None:
    disk = ByteDisk()
    log = open_(disk)
    fill(log, 4)
    disk.room = 70
    with pytest.raises(LogOfflineError) as caught:
        fill(log, 1)
    assert caught.value.cause.errno == errno.ENOSPC
    disk.room = None
    assert offsets(open_(disk)) == [0, 1, 2, 3]


def test_other_logs_stay_in_use() -> None:
    disk = ByteDisk()
    first = opened(disk, SMALL, directory="a-0").log
    second = opened(disk, SMALL, directory="b-0").log
    disk.faults.append(Fault("append", "a-0/"))
    with pytest.raises(LogOfflineError):
        fill(first, 1)
    fill(second, 1)
    assert offsets(second) == [0]


@pytest.mark.parametrize("is_closed", [False, True])
def test_bytes_that_a_killed_process_left_in_the_page_cache_are_flushed(is_closed: bool) -> None:
    # Another process wrote these bytes and never flushed them. A flush that skipped them would
    # raise the recovery point, or mark the shutdown clean, without a guarantee.
    disk = ByteDisk()
    log = open_(disk)
    log.flush(NOW)
    fill(log, 12)  # several segments
    again = reopened(log)
    if is_closed:
        again.close(NOW)
    else:
        again.flush(NOW)
    assert again.recovery_point == 12
    folder = disk.root.flushed[DIRECTORY]
    assert isinstance(folder, DirectoryNode)
    for segment in again.segments:
        node = folder.flushed[segment.path(LOG).rpartition("/")[2]]
        assert isinstance(node, FileNode)
        assert node.flushed == bytes(node.visible)
