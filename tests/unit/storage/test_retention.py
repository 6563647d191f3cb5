"""Old segments go: by age, by size, below the start; never above the high watermark."""

from __future__ import annotations

from holdfast.model import Offset
from holdfast.storage import Disk, LogSettings, apply_retention
from tests.unit.storage.support import NOW, fill, open_, records_of, reopened

SETTINGS = LogSettings(segment_bytes=1_000, index_interval_bytes=100, retention_ms=1_000)


def test_segments_whose_latest_record_is_too_old_go(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    fill(log, 20, step_ms=100)
    assert apply_retention(log, 20, NOW + 1_000) == 0
    assert apply_retention(log, 20, NOW + 1_401) == 1
    assert log.log_start_offset == 5
    assert [offset for offset, _ in records_of(log)] == list(range(5, 20))
    assert log.epochs.entries == [(0, 5)]


def test_when_all_is_too_old_an_empty_segment_is_left(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    fill(log, 12)
    assert apply_retention(log, 12, NOW + 10_000) == 3
    assert (log.log_start_offset, log.log_end_offset) == (12, 12)
    fill(log, 1)
    assert [offset for offset, _ in records_of(reopened(log))] == [12]


def test_nothing_above_the_high_watermark_goes(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    fill(log, 12)
    assert apply_retention(log, 9, NOW + 10_000) == 1
    assert log.log_start_offset == 5


def test_the_size_limit_is_kept_from_above(disk: Disk) -> None:
    log = open_(disk, LogSettings(segment_bytes=1_000, retention_ms=-1, retention_bytes=2_000))
    fill(log, 40)
    apply_retention(log, 40, NOW)
    size = sum(segment.size for segment in log.segments)
    assert 2_000 <= size < 3_000


def test_segments_below_the_start_go_also_from_a_compacted_log(disk: Disk) -> None:
    settings = LogSettings(segment_bytes=1_000, cleanup_policy=("compact",), retention_ms=0)
    log = open_(disk, settings)
    fill(log, 20)
    log.advance_start_to(Offset(11))
    assert apply_retention(log, 20, NOW) == 2
    assert log.segments[0].base_offset == 10


def test_files_go_after_their_delay_and_readers_keep_them_until_then(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    fill(log, 12)
    held = log.segments[0].slice_from(0, log.segments[0].size, 10_000)
    apply_retention(log, 12, NOW + 10_000)
    names = [entry.name for entry in disk.list(log.directory)]
    assert sum(name.endswith(".log.deleted") for name in names) == 3
    held.file.close()
    assert len(held.read()) == held.size
    assert log.deletions.run(NOW + 10_000 + 59_999) == 0
    assert log.deletions.run(NOW + 10_000 + 60_000) > 0
    names = [entry.name for entry in disk.list(log.directory)]
    assert not [name for name in names if name.endswith(".deleted")]
