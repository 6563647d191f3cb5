"""When a log is cleaned, and cleaning while the log is in use."""

from __future__ import annotations

import errno
import random
import tracemalloc
from dataclasses import replace

import pytest

from holdfast.model import Offset
from holdfast.simulation.disk.byte_disk import ByteDisk, Fault
from holdfast.storage import (
    Cleaner,
    Disk,
    Log,
    LogOfflineError,
    LogSettings,
    Progress,
    cleaning_need,
)
from holdfast.storage.cleaner.offset_map import ENTRY_BYTES, KeyMap
from tests.unit.storage.support import (
    NOW,
    batch,
    clean,
    marker,
    open_,
    produced,
    remove_due,
    reopened,
    retain,
)
from tests.unit.storage.test_compaction import SETTINGS, content, newest, put, settle

HOUR = 3_600_000


def filled(disk: Disk, settings: LogSettings = SETTINGS, count: int = 40) -> Log:
    log = open_(disk, settings)
    for number in range(count):
        put(log, (f"k{number % 5}".encode(), f"v{number}".encode()))
    settle(log)
    return log


def steps(cleaner: Cleaner) -> list[Progress]:
    found = [cleaner.step()]
    while found[-1] is not Progress.DONE:
        found.append(cleaner.step())
    return found


# When.


def test_a_log_needs_cleaning_when_enough_of_it_is_dirty(disk: Disk) -> None:
    log = filled(disk)
    end = log.log_end_offset
    need = cleaning_need(log, 0, end, NOW)
    assert need.is_wanted
    assert need.ratio == 1.0
    assert need.overdue_ms == 0
    done = clean(log, need.first_dirty, end, NOW)
    after = cleaning_need(log, done.cleaned_below, end, NOW)
    assert (after.is_wanted, after.ratio) == (False, 0.0)
    log.settings = replace(SETTINGS, min_cleanable_dirty_ratio=1.0)
    assert not cleaning_need(log, 0, end, NOW).is_wanted


def test_a_log_that_is_not_compacted_or_is_offline_needs_no_cleaning(disk: Disk) -> None:
    log = filled(disk)
    log.settings = replace(SETTINGS, cleanup_policy=("delete",))
    assert not cleaning_need(log, 0, log.log_end_offset, NOW).is_wanted
    assert steps(Cleaner(log, 0, log.log_end_offset, NOW)) == [Progress.DONE]
    log.settings = SETTINGS
    log.abandon()
    assert not cleaning_need(log, 0, log.log_end_offset, NOW).is_wanted


def test_a_record_that_waits_too_long_makes_it_urgent(disk: Disk) -> None:
    settings = replace(SETTINGS, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=HOUR)
    log = filled(disk, settings)
    assert not cleaning_need(log, 0, log.log_end_offset, NOW + HOUR).is_wanted
    need = cleaning_need(log, 0, log.log_end_offset, NOW + HOUR + 7)
    assert need.is_wanted
    assert need.overdue_ms == 7
    # Not if none of it may be cleaned.
    assert not cleaning_need(log, 0, 0, NOW + HOUR + 7).is_wanted


def test_the_minimal_lag_wins_over_the_maximal(disk: Disk) -> None:
    settings = replace(SETTINGS, max_compaction_lag_ms=10, min_compaction_lag_ms=1_000)
    log = filled(disk, settings)
    assert cleaning_need(log, 0, log.log_end_offset, NOW + 500).overdue_ms == 0


def test_a_compacted_segment_is_rolled_in_time_for_its_maximal_lag(disk: Disk) -> None:
    log = open_(disk, replace(SETTINGS, segment_bytes=1 << 20, max_compaction_lag_ms=HOUR))
    log.append([batch(0, timestamp=NOW)], NOW)
    log.append([batch(1, timestamp=NOW + HOUR)], NOW)
    assert len(log.segments) == 1
    log.append([batch(2, timestamp=NOW + HOUR + 1)], NOW)
    assert len(log.segments) == 2


@pytest.mark.parametrize("checkpointed", [-1, 10**6])
def test_an_impossible_checkpoint_makes_the_whole_log_dirty(disk: Disk, checkpointed: int) -> None:
    log = filled(disk)
    assert cleaning_need(log, checkpointed, log.log_end_offset, NOW).first_dirty == 0


def test_a_marker_that_is_not_committed_keeps_its_transaction_from_the_cleaner(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    put(log, (b"a", b"1"))
    log.append([produced(1, 4, 0, is_transactional=True)], NOW)
    log.append([marker(2, 4, is_commit=False)], NOW)
    settle(log)
    assert cleaning_need(log, 0, 2, NOW).limit == 1
    assert cleaning_need(log, 0, 3, NOW).limit == 3


# In steps.


def test_steps_are_small_and_the_log_stays_in_use(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.storage.cleaner.cleaner.STEP_RECORDS", 3)
    log = filled(disk)
    cleaner = Cleaner(log, 0, log.log_end_offset, NOW)
    expected = newest(log)
    taken = 0
    while (progress := cleaner.step()) is not Progress.DONE:
        taken += 1
        if progress is Progress.FLUSH:
            cleaner.flush()
        key = f"n{taken}".encode()
        put(log, (key, b"new"))
        expected[key] = b"new"
        assert newest(log) == expected
    assert taken > 20
    assert cleaner.step() is Progress.DONE
    assert cleaner.result.cleaned_below > 0
    assert len(content(log)) == len(expected)


def test_keys_that_do_not_fit_into_the_map_are_cleaned_in_later_runs(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    for number in range(120):
        put(log, (f"k{number % 30}".encode(), f"v{number}".encode()))
    settle(log)
    expected = newest(log)
    first_dirty, runs = Offset(0), 0
    while cleaning_need(log, first_dirty, log.log_end_offset, NOW).ratio > 0:
        cleaner = Cleaner(log, first_dirty, log.log_end_offset, NOW, map_bytes=8 * ENTRY_BYTES)
        steps(cleaner)
        assert cleaner.result.cleaned_below > first_dirty
        first_dirty = cleaner.result.cleaned_below
        assert newest(log) == expected
        runs += 1
    assert runs > 5
    assert len(content(log)) == len(expected)


def test_random_logs_keep_their_newest_values_under_any_bound(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    for seed in range(8):
        rng = random.Random(seed)
        first_dirty = Offset(0)
        for _ in range(3):
            for _ in range(40):
                value = None if rng.random() < 0.3 else rng.randbytes(3)
                put(log, (f"{rng.randrange(12)}".encode() * rng.choice([1, 9]), value))
            settle(log)
            expected = newest(log)
            bound = rng.randrange(1, 12) * ENTRY_BYTES
            cleaner = Cleaner(log, first_dirty, log.log_end_offset, NOW, map_bytes=bound)
            steps(cleaner)
            first_dirty = cleaner.result.cleaned_below
            assert newest(log) == expected


def test_nothing_waits_for_the_disk_in_a_step() -> None:
    """Every flush is left to the caller, which runs it on another thread."""
    disk = ByteDisk()
    log = filled(disk)
    in_steps: list[str] = []
    cleaner = Cleaner(log, 0, log.log_end_offset, NOW)
    while True:
        disk.on_step = lambda step: in_steps.append(step.kind)
        if (progress := cleaner.step()) is Progress.DONE:
            break
        disk.on_step = None
        if progress is Progress.FLUSH:
            cleaner.flush()
    assert "rename" in in_steps
    assert not [kind for kind in in_steps if kind.startswith("flush")]
    assert cleaner.result.bytes_after < cleaner.result.bytes_before


def test_a_flush_that_fails_elsewhere_takes_the_log_offline() -> None:
    disk = ByteDisk()
    log = filled(disk)
    cleaner = Cleaner(log, 0, log.log_end_offset, NOW)
    while cleaner.step() is not Progress.FLUSH:
        pass
    disk.faults.append(Fault("flush", ".cleaned"))
    cleaner.flush()
    with pytest.raises(LogOfflineError):
        cleaner.step()


@pytest.mark.parametrize("flushes", range(12))
def test_a_log_may_be_closed_or_truncated_during_a_swap(disk: Disk, flushes: int) -> None:
    log = filled(disk)
    expected = newest(log)
    cleaner = Cleaner(log, 0, log.log_end_offset, NOW)
    seen = 0
    while seen <= flushes and (progress := cleaner.step()) is not Progress.DONE:
        seen += progress is Progress.FLUSH
        assert newest(log) == expected, "readers find everything in the middle of it, too"
    if flushes % 2:
        log.truncate_to(Offset(log.log_end_offset - 1), NOW)
        expected = newest(log)
    steps(cleaner)
    assert newest(reopened(log, is_clean=True)) == expected


@pytest.mark.parametrize("after", range(0, 60, 4))
def test_a_truncation_during_cleaning_ends_the_run(
    disk: Disk, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.storage.cleaner.cleaner.STEP_RECORDS", 1)
    log = filled(disk)
    cleaner = Cleaner(log, 0, log.log_end_offset, NOW)
    for _ in range(after):
        cleaner.step()
    log.truncate_to(Offset(22), NOW)
    for number in range(30):
        put(log, (f"k{number % 5}".encode(), b"after the truncation"))
    expected = newest(log)
    steps(cleaner)
    assert newest(log) == expected
    assert not [name for name in disk.names(log.directory) if name.endswith(".cleaned")]


def test_retention_during_cleaning_ends_the_run(disk: Disk) -> None:
    log = filled(disk, replace(SETTINGS, cleanup_policy=("compact", "delete"), retention_bytes=500))
    cleaner = Cleaner(log, 0, log.log_end_offset, NOW)
    assert cleaner.step() is Progress.FLUSH
    assert retain(log, log.log_end_offset, NOW) > 0
    expected = content(log)
    assert steps(cleaner) == [Progress.DONE]
    assert content(log) == expected
    assert cleaner.result.cleaned_below == 0


def test_a_damaged_batch_ends_the_run_and_is_named(disk: Disk) -> None:
    log = filled(disk)
    path = log.segments[1].file.path
    log.segments[1].file.truncate(150)
    cleaner = Cleaner(log, 0, log.log_end_offset, NOW)
    steps(cleaner)
    assert path in cleaner.result.problem
    assert cleaner.result.cleaned_below == 0


def test_an_error_of_the_disk_takes_the_log_offline() -> None:
    disk = ByteDisk()
    log = filled(disk)
    disk.faults.append(Fault("create", ".cleaned", errno.ENOSPC))
    with pytest.raises(LogOfflineError):
        steps(Cleaner(log, 0, log.log_end_offset, NOW))
    assert log.offline is not None


def test_the_map_keeps_its_bound_for_all_keys() -> None:
    bound = 2 << 20
    for size in (8, 200):
        tracemalloc.start()
        keys = KeyMap(bound)
        number = 0
        while not keys.is_full:
            keys.put(number.to_bytes(size, "big"), number)
            number += 1
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < bound
        assert number > 10_000
        assert keys.last_offset((17).to_bytes(size, "big")) == 17
        assert keys.last_offset(b"else") == -1


# What the next process finds.


def test_a_log_that_is_no_longer_compacted_keeps_its_records_after_a_kill(disk: Disk) -> None:
    """Gaps are not damage, whatever cleanup.policy is now, and even without a checkpoint."""
    log = filled(disk)
    clean(log, 0, log.log_end_offset, NOW)
    expected = content(log)
    log.settings = replace(SETTINGS, cleanup_policy=("delete",))
    assert content(reopened(log, recovery_point=0)) == expected


def test_a_copy_of_a_compacted_log_keeps_its_gaps_after_a_kill(disk: Disk) -> None:
    log = open_(disk, replace(SETTINGS, cleanup_policy=("delete",)))
    for offset in (0, 3, 4, 9):
        log.append([batch(offset)], NOW)
    assert reopened(log).log_end_offset == 10


def test_a_deleted_file_with_the_name_of_an_earlier_one_waits_its_own_delay(disk: Disk) -> None:
    """The first segment keeps its base offset through every run of the cleaner."""
    log = filled(disk)
    delay_ms = log.settings.file_delete_delay_ms
    clean(log, 0, log.log_end_offset, NOW)
    for number in range(20):
        put(log, (f"k{number % 5}".encode(), b"newer"))
    settle(log)
    clean(log, 0, log.log_end_offset, NOW + delay_ms - 1)
    deleted = f"{log.directory}/{0:020d}.log.deleted"
    assert disk.exists(deleted)
    remove_due(log, NOW + delay_ms)
    assert disk.exists(deleted), "a reader may be in the second one"
    remove_due(log, NOW + 2 * delay_ms)
    assert not disk.exists(deleted)
    assert not log.deletions.pending
