"""Retention deletes old segments by age and size, never above the high watermark."""

from __future__ import annotations

from dataclasses import replace

from holdfast.model import Offset
from holdfast.storage import Disk, LastKnown, LogSettings
from holdfast.storage.file_names import LOG
from tests.unit.storage.support import (
    NOW,
    fill,
    open_,
    opened,
    produced,
    records_of,
    remove_due,
    reopened,
    retain,
)

SETTINGS = LogSettings(segment_bytes=1_000, index_interval_bytes=100, retention_ms=1_000)


def test_segments_whose_latest_record_is_too_old_are_deleted(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    fill(log, 20, step_ms=100)
    assert retain(log, 20, NOW + 1_000) == 0
    assert retain(log, 20, NOW + 1_401) == 1
    assert log.log_start_offset == 5
    assert [offset for offset, _ in records_of(log)] == list(range(5, 20))
    assert log.epochs.entries == [(0, 5)]


def test_when_all_is_too_old_an_empty_segment_is_left(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    fill(log, 12)
    assert retain(log, 12, NOW + 10_000) == 3
    assert (log.log_start_offset, log.log_end_offset) == (12, 12)
    fill(log, 1)
    assert [offset for offset, _ in records_of(reopened(log))] == [12]


def test_nothing_above_the_high_watermark_is_deleted(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    fill(log, 12)
    assert retain(log, 9, NOW + 10_000) == 1
    assert log.log_start_offset == 5


def test_the_size_limit_is_kept_from_above(disk: Disk) -> None:
    log = open_(disk, LogSettings(segment_bytes=1_000, retention_ms=-1, retention_bytes=2_000))
    fill(log, 40)
    retain(log, 40, NOW)
    size = sum(segment.size for segment in log.segments)
    assert 2_000 <= size < 3_000


def test_segments_below_the_start_are_deleted_also_from_a_compacted_log(disk: Disk) -> None:
    settings = LogSettings(segment_bytes=1_000, cleanup_policy=("compact",), retention_ms=0)
    log = open_(disk, settings)
    fill(log, 20)
    log.advance_start_to(Offset(11))
    assert retain(log, 20, NOW) == 2
    assert log.segments[0].base_offset == 10


def test_files_go_after_their_delay_and_readers_keep_them_until_then(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    fill(log, 12)
    held = log.segments[0].slice_from(0, log.segments[0].size, 10_000)
    retain(log, 12, NOW + 10_000)
    names = [entry.name for entry in disk.list(log.directory)]
    assert sum(name.endswith(".log.deleted") for name in names) == 3
    held.file.close()
    assert len(held.read()) == held.size
    assert remove_due(log, NOW + 10_000 + 59_999) == 0
    assert remove_due(log, NOW + 10_000 + 60_000) > 0
    names = [entry.name for entry in disk.list(log.directory)]
    assert not [name for name in names if name.endswith(".deleted")]


def test_silent_producers_expire(disk: Disk) -> None:
    log = open_(disk, replace(SETTINGS, retention_ms=-1, producer_id_expiration_ms=1_000))
    log.append([produced(0, 4, 0), produced(1, 5, 0)], NOW)
    log.append([produced(2, 6, 0, is_transactional=True)], NOW)
    retain(log, 3, NOW + 100)
    log.append([produced(3, 5, 1)], NOW)
    retain(log, 4, NOW + 1_100)
    assert list(log.producers.states) == [5, 6]
    retain(log, 4, NOW + 2_100)
    assert list(log.producers.states) == [6], "in the middle of a transaction"


def test_a_producer_of_old_records_does_not_count_as_silent(disk: Disk) -> None:
    log = open_(disk, replace(SETTINGS, retention_ms=-1, producer_id_expiration_ms=1_000))
    log.append([produced(0, 4, 0)], NOW)
    retain(log, 1, NOW + 1_000_000)
    assert list(log.producers.states) == [4]
    retain(log, 1, NOW + 1_001_000)
    assert not log.producers.states


def test_segments_below_the_start_that_a_power_failure_brought_back_are_dropped(disk: Disk) -> None:
    """Their names are not flushed: the log-start checkpoint suffices. Any may come back."""
    log = open_(disk)
    fill(log, 30)
    expected = list(records_of(log, 20))
    [first, *gone] = [one for one in log.segments if one.base_offset < 20]
    for segment in gone:
        segment.mark_deleted()
    log.close_files()
    known = LastKnown(log_start_offset=Offset(20))
    again, report = opened(disk, known=known)
    assert list(records_of(again)) == expected
    assert (again.log_start_offset, again.segments[0].base_offset) == (20, 20)
    assert any(f"{first.path(LOG)}: below the log's start 20" in one for one in report.notes)
