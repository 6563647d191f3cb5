"""Deliberately broken logs: the crash tests must detect each of them, or they prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.model import Offset
from holdfast.storage import Log
from holdfast.storage.checkpoints.leader_epoch_checkpoint import EpochFile, EpochWrite
from holdfast.storage.checkpoints.offset_checkpoints import DirectoryCheckpoints
from holdfast.storage.log import Log as LogClass
from holdfast.storage.real_disk import RealFile
from holdfast.storage.segment.batch_scan import BadBatchError
from holdfast.storage.segment.segment import Segment
from tests.support.crash_states import Bound
from tests.unit.storage.crashes import SETTINGS, CrashCheckedLog
from tests.unit.storage.test_crashes import follow, grow, leave, seal, take_back, truncate

pytestmark = pytest.mark.slow
Break = Callable[[pytest.MonkeyPatch], None]


def names_are_not_flushed(patch: pytest.MonkeyPatch) -> None:
    def flush_files(log: Log) -> None:
        for segment in log.segments:
            segment.flush()

    patch.setattr(LogClass, "_flush_files", flush_files)


def bytes_are_not_flushed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Segment, "flush", lambda segment: None)


def only_the_active_segment_is_flushed(patch: pytest.MonkeyPatch) -> None:
    def flush_files(log: Log) -> None:
        log.active.flush()
        log.disk.flush_directory(log.directory)

    patch.setattr(LogClass, "_flush_files", flush_files)


def a_truncation_leaves_the_recovery_point(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogClass, "_lower_recovery_point", lambda log: None)


def a_truncation_keeps_the_records(patch: pytest.MonkeyPatch) -> None:
    def truncate_to(segment: Segment, offset: int) -> Offset:
        segment.rebuild_tail(offset)
        return Offset(offset)

    patch.setattr(Segment, "truncate_to", truncate_to)


def snapshots_do_not_wait_for_the_flush(patch: pytest.MonkeyPatch) -> None:
    create = LogClass._create

    def write_first(log: Log, base: Offset) -> Segment:
        log.snapshots.write(base)
        return create(log, base)

    patch.setattr(LogClass, "_create", write_first)


def a_segment_begins_with_its_first_batch(patch: pytest.MonkeyPatch) -> None:
    roll = LogClass._roll

    def roll_at(log: Log, first: int, last: int, now_ms: int) -> Segment:
        log.log_end_offset = Offset(first)
        return roll(log, first, last, now_ms)

    patch.setattr(LogClass, "_roll", roll_at)


def a_truncation_does_not_take_a_flush_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogClass, "_leave", lambda log: None)


def the_recovery_point_does_not_wait_for_the_epochs(patch: pytest.MonkeyPatch) -> None:
    """The file is written once."""
    patch.setattr(EpochFile, "is_behind", property(lambda file: not file._written.entries))


def a_flush_that_a_truncation_took_back_counts_for_the_epochs(patch: pytest.MonkeyPatch) -> None:
    begin = EpochFile.begin

    def begin_in_line(file: EpochFile) -> EpochWrite | None:
        written, write = file._written, begin(file)
        file._written = written
        return write

    patch.setattr(EpochFile, "begin", begin_in_line)


def segments_go_before_the_start_is_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DirectoryCheckpoints, "put_in_place", lambda checkpoints, write: None)


@pytest.mark.parametrize(
    ("broken", "scenario"),
    [
        (snapshots_do_not_wait_for_the_flush, follow),
        (a_segment_begins_with_its_first_batch, follow),
        (a_truncation_does_not_take_a_flush_back, seal),
        (the_recovery_point_does_not_wait_for_the_epochs, seal),
        (a_flush_that_a_truncation_took_back_counts_for_the_epochs, take_back),
        (segments_go_before_the_start_is_written, leave),
        (names_are_not_flushed, grow),
        (bytes_are_not_flushed, grow),
        (only_the_active_segment_is_flushed, grow),
        (a_truncation_keeps_the_records, truncate),
        (a_truncation_leaves_the_recovery_point, truncate),
    ],
    ids=lambda one: one.__name__,
)
def test_the_crash_tests_detect_it(
    monkeypatch: pytest.MonkeyPatch, broken: Break, scenario: Callable[[CrashCheckedLog], None]
) -> None:
    broken(monkeypatch)
    policy = "compact" if scenario is follow else "delete"
    checked = CrashCheckedLog(
        Bound(states=8, tear_points=1), settings=replace(SETTINGS, cleanup_policy=(policy,))
    )
    with pytest.raises((AssertionError, BadBatchError)):  # what was lost, or cannot be read
        scenario(checked)


def test_the_simulated_file_has_the_interface_of_the_real_one() -> None:
    """Every public name of the real file is one of the simulated file, and the other way round."""
    from holdfast.simulation.disk.byte_disk import ByteFile

    real_only = {"dirty", "make_room", "owner"}  # descriptors come and go
    names = {name for name in dir(RealFile) if not name.startswith("_")} - real_only
    assert names == {name for name in dir(ByteFile) if not name.startswith("_")}
