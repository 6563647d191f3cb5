"""Compaction keeps the last record of every key, and drops tombstones and markers in time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.model import Offset, ProducerId
from holdfast.protocol.records import BatchOptions, Compression, batches, read_records
from holdfast.simulation.disk.byte_disk import ByteDisk, Step
from holdfast.storage import Disk, LastKnown, Log, LogSettings, read
from holdfast.storage.cleaner.cleaner import cleanable_limit, dirty_ratio
from tests.support.crash_states import Bound, crash_states
from tests.unit.storage.support import (
    DIRECTORY,
    NOW,
    batch,
    clean,
    marker,
    open_,
    produced,
    remove_due,
    reopened,
)

SETTINGS = LogSettings(
    segment_bytes=600,
    index_interval_bytes=100,
    cleanup_policy=("compact",),
    delete_retention_ms=1_000,
)
Pair = tuple[bytes, bytes | None]


def put(log: Log, *pairs: Pair, options: BatchOptions | None = None) -> None:
    """One batch."""
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    log.append([batch(log.log_end_offset, values, keys=keys, options=options)], NOW)


def settle(log: Log) -> None:
    """Make everything cleanable."""
    log.roll(NOW)
    put(log, (b"end", b"x"))
    log.flush(NOW)


def content(log: Log) -> list[tuple[int, bytes, bytes | None]]:
    """Offsets, keys, values."""
    found = []
    offset = log.log_start_offset
    while data := read(log, offset, 1 << 20):
        for one in batches(data):
            one.check_crc()
            if not one.header.is_control:
                for record in read_records(one):
                    value = None if record.value is None else bytes(record.value)
                    found.append((record.offset, bytes(record.key or b""), value))
            offset = Offset(one.header.end_offset)
    return found


def newest(log: Log) -> dict[bytes, bytes]:
    """The values that a reader from the start ends up with."""
    held: dict[bytes, bytes] = {}
    for _, key, value in content(log):
        held.pop(key, None)
        if value is not None:
            held[key] = value
    return held


@pytest.mark.parametrize("codec", list(Compression))
def test_the_last_record_of_every_key_stays_at_its_offset(disk: Disk, codec: Compression) -> None:
    log = open_(disk, SETTINGS)
    for number in range(30):
        pairs = [(f"k{(number + place) % 7}".encode(), f"v{number}".encode()) for place in range(2)]
        put(log, *pairs, options=BatchOptions(compression=codec))
    settle(log)
    before = content(log)
    done = clean(log, 0, log.log_end_offset, NOW)
    last = {key: (offset, value) for offset, key, value in before}
    assert content(log) == [
        (offset, key, value) for offset, key, value in before if last[key] == (offset, value)
    ]
    assert done.records_kept < done.records_read
    assert done.cleaned_below == log.active.base_offset
    again = reopened(log)
    assert content(again) == content(log)
    assert again.log_end_offset == log.log_end_offset
    assert dirty_ratio(log, done.cleaned_below, log.log_end_offset) == 0.0


def test_a_second_run_skips_the_clean_part(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    put(log, (b"a", b"1"), (b"b", b"1"))
    settle(log)
    first = clean(log, 0, log.log_end_offset, NOW)
    put(log, (b"a", b"2"))
    settle(log)
    clean(log, first.cleaned_below, log.log_end_offset, NOW)
    assert newest(log) == {b"a": b"2", b"b": b"1", b"end": b"x"}
    # The first "end" stays: the second one is in the active segment, which is not cleaned.
    assert [key for _, key, _ in content(log)] == [b"b", b"end", b"a", b"end"]


def test_nothing_above_the_high_watermark_or_unflushed_is_touched(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    for _ in range(20):
        put(log, (b"k", b"v"))
    log.flush(NOW)
    assert cleanable_limit(log, 7, NOW) == 7
    clean(log, 0, 7, NOW)
    offsets = [offset for offset, _, _ in content(log)]
    assert offsets[-13:] == list(range(7, 20))


def test_young_records_wait_for_their_lag(disk: Disk) -> None:
    settings = LogSettings(
        segment_bytes=600, cleanup_policy=("compact",), min_compaction_lag_ms=1_000
    )
    log = open_(disk, settings)
    for _ in range(20):
        put(log, (b"k", b"v"))
    settle(log)
    assert clean(log, 0, log.log_end_offset, NOW + 999).records_read == 0
    assert clean(log, 0, log.log_end_offset, NOW + 1_001).records_read > 0


def test_a_tombstone_stays_until_its_horizon(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    put(log, (b"a", b"1"))
    put(log, (b"a", None), (b"b", b"1"))
    settle(log)
    done = clean(log, 0, log.log_end_offset, NOW)
    assert [(key, value) for _, key, value in content(log)][:1] == [(b"a", None)]
    clean(log, done.cleaned_below, log.log_end_offset, NOW + 999)
    assert (1, b"a", None) in content(log)
    [first, *_] = batches(read(log, 0, 1 << 20))
    assert first.header.delete_horizon_ms == NOW + 1_000
    assert [record.timestamp for record in read_records(first)] == [NOW, NOW + 1]
    clean(log, done.cleaned_below, log.log_end_offset, NOW + 1_001)
    assert [key for _, key, _ in content(log)] == [b"b", b"end"]


def test_aborted_records_are_dropped_and_markers_follow(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    transactional = BatchOptions(
        producer_id=4, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    put(log, (b"a", b"1"))
    put(log, (b"a", b"aborted"), options=transactional)
    log.append([marker(log.log_end_offset, 4, is_commit=False)], NOW)
    log.append([produced(log.log_end_offset, 4, 1, is_transactional=True)], NOW)
    log.append([marker(log.log_end_offset, 4, is_commit=True)], NOW)
    settle(log)
    done = clean(log, 0, log.log_end_offset, NOW)
    assert (0, b"a", b"1") in content(log)
    assert b"aborted" not in [value for _, _, value in content(log)]
    clean(log, done.cleaned_below, log.log_end_offset, NOW + 2_000)
    controls = [one for one in batches(read(log, 0, 1 << 20)) if one.header.is_control]
    assert controls == []
    assert reopened(log).producers.states[ProducerId(4)].last_sequence == 1


def test_an_open_transaction_stops_the_cleaner(disk: Disk) -> None:
    log = open_(disk, SETTINGS)
    put(log, (b"a", b"1"))
    log.append([produced(1, 4, 0, is_transactional=True)], NOW)
    settle(log)
    assert cleanable_limit(log, log.log_end_offset, NOW) == 1


def _run(log: Log, rounds: Sequence[int]) -> None:
    first_dirty = 0
    for number in rounds:
        for place in range(5):
            value = None if (number + place) % 3 == 0 else f"{number}".encode()
            put(log, (f"k{place}".encode(), value))
        settle(log)
        done = clean(log, first_dirty, log.log_end_offset, NOW + number * 2_000)
        first_dirty = done.cleaned_below
        remove_due(log, NOW + 10_000_000)


@pytest.mark.slow
def test_a_crash_while_cleaning_changes_no_key() -> None:
    disk = ByteDisk()
    log = open_(disk, SETTINGS)
    states = 0

    def crash(step: Step) -> None:
        nonlocal states
        is_cleaning = any(part in step.path for part in (".cleaned", ".swap", ".deleted"))
        if not is_cleaning and step.kind not in ("rename", "flush_directory"):
            return
        if log.recovery_point < log.log_end_offset:
            return
        expected = newest(log) if not log.active.state else {}
        for state in crash_states(disk, step, Bound(states=24, tear_points=1, seed=disk.steps)):
            states += 1
            # The checkpoint of recovery points may be older than the cleaner's work.
            point = log.recovery_point if states % 2 else 0
            known = LastKnown(recovery_point=Offset(point))
            again = open_(state.disk, SETTINGS, known)
            assert newest(again) == expected, (state.what, step[:2])
            assert again.log_end_offset == log.log_end_offset

    disk.on_step = crash
    _run(log, range(5))
    assert states > 100
    assert disk.exists(DIRECTORY)
