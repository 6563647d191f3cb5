"""Appending, reading, rolling, flushing and truncating a log."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from holdfast.model import EpochEntry, LeaderEpoch, Offset
from holdfast.protocol.records import batches, crc32c, parse_header, stamp, stamped
from holdfast.simulation.disk.byte_disk import ByteDisk, Fault
from holdfast.storage import (
    AppendRefusedError,
    Disk,
    LastKnown,
    LogOfflineError,
    LogSettings,
    OffsetOutOfRangeError,
    RealDisk,
    apply_retention,
    latest_timestamp,
    locate,
    offset_for_timestamp,
    read,
    real_disk,
)
from holdfast.storage.producers.replay import snapshot_offsets
from tests.support.disks import close_files
from tests.unit.storage.support import (
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


def test_appended_records_are_read(disk: Disk) -> None:
    log = open_(disk)
    done = log.append([batch(0, [b"a", b"b"]), batch(2, [b"c"])], NOW)
    assert (done.base_offset, done.end_offset) == (0, 3)
    assert list(records_of(log)) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_several_batches_in_one_buffer_are_one_append(disk: Disk) -> None:
    log = open_(disk)
    log.append([batch(0, [b"a"]) + batch(1, [b"b", b"c"])], NOW)
    assert log.log_end_offset == 3
    assert values_of(log, 1) == [b"b", b"c"]


def test_an_offset_inside_a_batch_is_served_with_the_batch(disk: Disk) -> None:
    log = open_(disk)
    log.append([batch(0, [b"a", b"b", b"c"])], NOW)
    [found] = batches(read(log, 1, 1000))
    assert found.header.base_offset == 0
    assert values_of(log, 1) == [b"b", b"c"]


def test_a_read_gives_whole_batches_and_one_at_least(disk: Disk) -> None:
    log = open_(disk, LogSettings(index_interval_bytes=100))
    fill(log, 50)
    for max_bytes in (1, 100, 169, 170, 400, 1000, 5000, 100_000):
        data = read(log, 7, max_bytes)
        sizes = [found.header.size for found in batches(data)]
        assert sum(sizes) == len(data)
        assert len(data) <= max_bytes or len(sizes) == 1
        assert next(batches(data)).header.base_offset == 7
    assert len(values_of(log, max_bytes=300)) == 50


def test_nothing_at_or_above_the_limit_is_read(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 30)
    for upto in range(31):
        for offset in range(31):
            found = [one.header.base_offset for one in batches(read(log, offset, 1 << 20, upto))]
            assert all(offset <= base < upto for base in found)
            assert bool(found) == (offset < upto)


def test_an_offset_outside_the_log_is_refused_with_the_bounds(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 3)
    assert locate(log, 3, 100) is None
    with pytest.raises(OffsetOutOfRangeError) as caught:
        locate(log, 4, 100)
    assert (caught.value.log_start_offset, caught.value.log_end_offset) == (0, 3)


def test_a_full_segment_is_followed_by_a_new_one(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 20)
    log.flush(NOW)
    names = sorted(entry.name for entry in disk.list(log.directory))
    bases = [segment.base_offset for segment in log.segments]
    assert bases[:3] == [0, 5, 10]
    for base in bases[1:]:
        assert f"{base:020d}.snapshot" in names
    assert all(segment.size <= SMALL.segment_bytes for segment in log.segments)
    assert [offset for offset, _ in records_of(log)] == list(range(20))


def test_the_timestamps_of_records_roll_an_old_segment(disk: Disk) -> None:
    log = open_(disk, LogSettings(segment_ms=1_000))
    log.append([batch(0, timestamp=NOW)], NOW)
    log.append([batch(1, timestamp=NOW + 1_000)], NOW)
    assert len(log.segments) == 1
    log.append([batch(2, timestamp=NOW + 1_001)], NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_batches_that_do_not_follow_are_refused(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 3)
    with pytest.raises(AppendRefusedError, match="below the end"):
        log.append([batch(2)], NOW)
    assert log.log_end_offset == 3


def test_a_batch_larger_than_a_segment_gets_its_own_segment(disk: Disk) -> None:
    """A leader may have accepted it under other settings."""
    log = open_(disk)
    fill(log, 3)
    log.append([batch(3, [bytes(2000)])], NOW)
    fill(log, 1)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 4]
    log.flush(NOW)
    assert [offset for offset, _ in records_of(reopened(log))] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("end", [0, 1, 4, 5, 6, 10, 12, 19, 20, 25])
def test_a_truncated_log_ends_at_the_truncation_point_and_grows_again(disk: Disk, end: int) -> None:
    log = open_(disk)
    fill(log, 20)
    log.flush(NOW)
    expected = min(end, 20)
    assert log.truncate_to(Offset(min(end, 20)), NOW) == expected
    assert [offset for offset, _ in records_of(log)] == list(range(expected))
    assert log.recovery_point <= log.log_end_offset
    fill(log, 7, epoch=1)
    again = reopened(log)
    assert [offset for offset, _ in records_of(again)] == list(range(expected + 7))
    assert values_of(again)[expected:] == values_of(log)[expected:]


def test_a_truncation_inside_a_batch_removes_the_whole_batch(disk: Disk) -> None:
    log = open_(disk)
    log.append([batch(0, [b"a"]), batch(1, [b"b", b"c", b"d"])], NOW)
    assert log.truncate_to(Offset(3), NOW) == 1
    assert values_of(log) == [b"a"]


def test_a_truncation_removes_epochs_snapshots_and_index_entries(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 8, epoch=1)
    fill(log, 8, epoch=2)
    log.truncate_to(Offset(6), NOW)
    assert log.epochs.entries == [EpochEntry(LeaderEpoch(1), Offset(0))]
    assert all(offset <= 6 for offset in snapshot_offsets(log.disk, log.directory))
    assert all(entry.offset < 6 for entry in log.active.index().entries())
    fill(log, 4, epoch=3)
    assert reopened(log).epochs.entries[-1] == (3, 6)


def test_a_log_can_restart_at_any_offset(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 20)
    log.restart_at(Offset(500), NOW)
    assert (log.log_start_offset, log.log_end_offset, values_of(log)) == (500, 500, [])
    fill(log, 3)
    again = reopened(log)
    assert [offset for offset, _ in records_of(again)] == [500, 501, 502]


def test_deleted_records_are_out_of_range(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 20)
    log.advance_start_to(Offset(7))
    with pytest.raises(OffsetOutOfRangeError):
        read(log, 6, 100)
    assert [offset for offset, _ in records_of(log)] == list(range(7, 20))
    assert log.epochs.entries == [(0, 7)]


def test_a_log_truncated_below_its_start_restarts_there(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 4)
    known = LastKnown(log_start_offset=Offset(10))
    again = open_(disk, SMALL, known)
    assert (again.log_start_offset, again.log_end_offset) == (10, 10)
    fill(again, 1)
    assert [offset for offset, _ in records_of(again)] == [10]


def test_records_are_found_by_time(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 40, step_ms=10)
    for number in range(40):
        found = offset_for_timestamp(log, NOW + number * 10 - 5)
        assert found is not None
        assert (found.offset, found.timestamp) == (number, NOW + number * 10)
    assert offset_for_timestamp(log, NOW + 391) is None
    newest = latest_timestamp(log)
    assert newest is not None
    assert newest.offset == 39
    again = reopened(log, is_clean=True)
    found = offset_for_timestamp(again, NOW + 200)
    assert found is not None
    assert found.offset == 20


def test_times_may_fall(disk: Disk) -> None:
    log = open_(disk)
    for offset, time in enumerate([50, 10, 70, 20, 60]):
        log.append([batch(offset, timestamp=NOW + time)], NOW)
    found = offset_for_timestamp(log, NOW + 55)
    assert found is not None
    assert found.offset == 2
    again = reopened(log)
    found = offset_for_timestamp(again, NOW + 15)
    assert found is not None
    assert found.offset == 0


def test_one_append_is_one_write(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_(disk)
    fill(log, 1)
    calls = []
    append = type(log.active.file).append

    def counted(file: object, buffers: list[bytes]) -> int:
        calls.append(len(buffers))
        return append(file, buffers)  # type: ignore[arg-type]

    monkeypatch.setattr(type(log.active.file), "append", counted)
    log.append([batch(1), batch(2), batch(3)], NOW)
    assert calls == [3]


def test_headers_that_are_known_need_not_be_parsed_again(disk: Disk) -> None:
    parsed, plain = open_(disk), opened(disk, directory="other-0").log
    for base in range(30):
        data = batch(0, epoch=-1)
        header = stamped(parse_header(data), base, 3)
        stamp(data, 0, base, 3)
        assert header == parse_header(data)
        assert parsed.append([data], NOW, [header]) == plain.append([data], NOW)
    assert values_of(parsed) == values_of(plain)
    assert parsed.epochs.entries == plain.epochs.entries
    assert [len(one.index()) for one in parsed.segments] == [
        len(one.index()) for one in plain.segments
    ]


def test_headers_of_other_batches_are_a_bug(disk: Disk) -> None:
    log = open_(disk)
    with pytest.raises(AssertionError, match="other batches"):
        log.append([batch(0, [b"long"])], NOW, [parse_header(batch(0))])


def test_a_batch_that_cannot_be_opened_is_found_by_its_header(disk: Disk) -> None:
    log = open_(disk)
    garbage = bytearray(batch(0, [b"some value"]))
    garbage[61:] = b"\xff" * (len(garbage) - 61)
    garbage[17:21] = crc32c(bytes(garbage[21:])).to_bytes(4, "big")
    log.append([garbage, batch(1, timestamp=NOW + 5)], NOW)
    assert offset_for_timestamp(log, NOW) == (0, NOW, 0)
    assert offset_for_timestamp(log, NOW + 1) == (1, NOW + 5, 0)


def test_a_marker_that_cannot_be_read_stops_neither_an_append_nor_a_start(disk: Disk) -> None:
    log = open_(disk)
    odd = bytearray(marker(1, 4, is_commit=True))
    odd[61:] = b"\xff" * (len(odd) - 61)
    odd[17:21] = crc32c(bytes(odd[21:])).to_bytes(4, "big")
    log.append([produced(0, 4, 0, is_transactional=True), odd], NOW)
    assert log.producers.last_stable_offset(2) == 0
    for is_clean in (False, True):
        again = reopened(log, is_clean=is_clean)
        assert again.log_end_offset == 2
        assert again.producers.last_stable_offset(2) == 0


def test_few_descriptors_serve_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (32, 32))
    disk = RealDisk(tmp_path)
    log = open_(disk)
    most = 0
    for _ in range(100):
        fill(log, 1)
        most = max(most, len(disk._open))
    assert len(log.segments) == 20
    assert len(values_of(log)) == 100
    for segment in log.segments:
        segment.file.read(0, 1)
        most = max(most, len(disk._open))
    assert most <= 5, "for any number of segments, flushed or not"
    log.flush(NOW)
    assert len(values_of(reopened(log))) == 100
    close_files(disk)


def test_an_append_to_one_of_many_logs_waits_for_no_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_disk, "OPEN_FILES", 4)
    disk = RealDisk(tmp_path)
    logs = [opened(disk, directory=f"many-{number}").log for number in range(20)]
    for log in logs:
        fill(log, 1)  # The epoch is written down by now.
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing_flush)
        for log in 2 * logs:
            fill(log, 1)
    assert [log.flush(NOW) for log in logs] == 20 * [3]
    close_files(disk)


def test_a_failed_flush_to_make_room_takes_the_log_of_the_file_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8, 8))
    disk = RealDisk(tmp_path)
    other = opened(disk, directory="other-0").log
    fill(other, 1)
    log = open_(disk)
    fill(log, 2)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing_flush)
        assert values_of(other)
    assert other.flush(NOW) == 1
    with pytest.raises(LogOfflineError):
        log.flush(NOW)  # The system reports a failed write-back only once.
    close_files(disk)


def failing_flush(_: int) -> None:
    raise OSError(errno.EIO, "no")


def test_ended_transactions_are_not_remembered_for_ever(disk: Disk) -> None:
    log = open_(disk)
    for number in range(20):
        log.append([produced(2 * number, 4, number, is_transactional=True)], NOW)
        log.append([marker(2 * number + 1, 4, is_commit=True)], NOW)
    apply_retention(log, 40, NOW)
    assert not log.producers._transactions._unreplicated


def test_records_without_a_time_do_not_make_a_log_look_old(disk: Disk) -> None:
    log = open_(disk)
    for offset in range(5):
        log.append([batch(offset, [b"a"], timestamp=-1)], NOW)
    assert len(log.segments) == 1


def test_a_disk_that_cannot_be_read_takes_the_log_offline() -> None:
    """Chaos found it: a waiting fetch that met the error was never answered."""
    disk = ByteDisk()
    log = open_(disk)
    fill(log, 5)
    disk.faults.append(Fault("read", ".log"))
    with pytest.raises(LogOfflineError):
        read(log, 0, 1_000)
    assert log.offline is not None
    disk.faults.clear()
    with pytest.raises(LogOfflineError):
        read(log, 0, 1_000)
