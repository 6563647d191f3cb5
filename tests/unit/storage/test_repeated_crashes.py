"""A log that meets a second fault: after a recovery, a restart, a shutdown or a full disk."""

from __future__ import annotations

import errno
import uuid

import pytest

from holdfast.model import Offset, TopicPartition
from holdfast.protocol.records.batch_header import HEADER_BYTES
from holdfast.simulation.disk.byte_disk import ByteDisk, Fault, FileNode, Step
from holdfast.storage import Log, LogDirectory, LogSettings, apply_retention
from holdfast.storage.checkpoints.offset_checkpoints import CheckpointWrite
from holdfast.storage.file_names import COMPACTED as COMPACTED_MARK
from holdfast.storage.file_names import EPOCH_CHECKPOINT
from holdfast.storage.producers.replay import snapshot_offsets
from holdfast.storage.segment.batch_scan import CHUNK_BYTES, verified_runs
from tests.support.crash_states import Bound, crash_states
from tests.unit.storage.crashes import held_by
from tests.unit.storage.support import NOW, batch, clean

T = TopicPartition("t", 0)
SETTINGS = LogSettings(segment_bytes=500)
COMPACTED = LogSettings(segment_bytes=500, cleanup_policy=("compact",))


class KilledError(BaseException):
    """Ends a call in the middle, as kill -9 does."""


def directory_on(disk: ByteDisk, settings: LogSettings = SETTINGS) -> LogDirectory:
    return LogDirectory(disk, lambda _: settings)


def created(disk: ByteDisk, settings: LogSettings = SETTINGS) -> tuple[LogDirectory, Log]:
    directory = directory_on(disk, settings)
    return directory, directory.create(T, uuid.UUID(int=1))


def after_a_kill(directory: LogDirectory, settings: LogSettings = SETTINGS) -> LogDirectory:
    directory.release()
    assert isinstance(directory.disk, ByteDisk)
    return directory_on(directory.disk, settings)


def fill(log: Log, end: int, *, epoch: int = 1) -> None:
    for offset in range(log.log_end_offset, end):
        keys = [b"k%d" % (offset % 3)]
        log.append([batch(offset, [b"v%03d" % offset], epoch=epoch, keys=keys)], NOW)


def complete(directory: LogDirectory, write: CheckpointWrite) -> None:
    write.work.flush()
    directory.checkpoints.put_in_place(write)
    write.work.close()
    write.work.flush_names()
    for _ in directory.dropping(write, NOW):
        pass


def test_a_log_that_is_cleaned_after_a_recovery_survives_the_next_kill() -> None:
    directory, log = created(ByteDisk(), COMPACTED)
    directory.write_checkpoints({})
    fill(log, 20)
    directory = after_a_kill(directory, COMPACTED)
    log = directory.log(T)
    log.flush(NOW)
    assert clean(log, 0, log.log_end_offset, NOW).cleaned_below == 18
    expected = held_by(log)
    again = after_a_kill(directory, COMPACTED).log(T)
    assert held_by(again) == expected


def test_recovery_keeps_the_name_of_each_snapshot_that_it_finds() -> None:
    """The name may be the only proof of a gap: a file that is written again could lose it."""
    disk = ByteDisk()
    directory, log = created(disk)
    fill(log, 20)
    log.flush(NOW)
    found = snapshot_offsets(disk, "t-0")
    directory = after_a_kill(directory)
    log = directory.log(T)
    removed: list[str] = []
    disk.on_step = lambda step: removed.append(step.path) if step.kind == "remove" else None
    log.flush(NOW)
    assert found
    assert snapshot_offsets(disk, "t-0") == found
    assert not [path for path in removed if path.endswith(".snapshot")]


def test_a_power_failure_in_a_clean_shutdown_leaves_a_prefix() -> None:
    disk = ByteDisk()
    directory, log = created(disk, LogSettings(segment_bytes=330))
    fill(log, 12)

    def crash(step: Step) -> None:
        for state in crash_states(disk, step, Bound(states=40, tear_points=1)):
            held = list(held_by(directory_on(state.disk).log(T)))
            assert held == list(range(len(held))), (state.what, step[:2])

    disk.on_step = crash
    assert directory.close(NOW, 1)


def test_a_power_failure_at_a_gap_wider_than_an_index_leaves_no_other_gap() -> None:
    disk = ByteDisk()
    _, log = created(disk, LogSettings(segment_bytes=330))
    fill(log, 12)
    far = 1 << 32

    def crash(step: Step) -> None:
        for state in crash_states(disk, step, Bound(states=40, tear_points=1)):
            held = [at for at in held_by(directory_on(state.disk).log(T)) if at < far]
            assert held == list(range(len(held))), (state.what, step[:2])

    disk.on_step = crash
    log.append([batch(far, epoch=1)], NOW)


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_log_whose_start_moved_opens_on_a_full_disk(is_clean: bool) -> None:
    disk = ByteDisk()
    settings = LogSettings(segment_bytes=700, retention_bytes=2000)
    directory, log = created(disk, settings)
    fill(log, 100)
    log.flush(NOW)
    apply_retention(log, 100, NOW)
    complete(directory, directory.checkpoint({T: Offset(100)}))
    log.flush(NOW)
    directory.write_checkpoints({T: Offset(100)})
    bounds = (log.log_start_offset, 100)
    assert bounds > (0, 100)
    if is_clean:
        assert directory.close(NOW, 1)
    else:
        directory.release()
    disk.room = 0
    again = directory_on(disk, settings).log(T)
    assert (again.log_start_offset, again.log_end_offset) == bounds
    assert again.epochs.entries == [(1, bounds[0])]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_an_epoch_checkpoint_that_a_full_disk_refuses_waits_for_the_next_flush(code: int) -> None:
    disk = ByteDisk()
    directory, log = created(disk)
    fill(log, 20)
    directory.release()
    disk.faults.append(Fault("append", EPOCH_CHECKPOINT, code))
    directory = directory_on(disk)
    log = directory.log(T)
    assert log.epochs.entries == [(1, 0)]
    assert log.epoch_file.is_behind
    disk.faults.clear()
    log.flush(NOW)
    assert disk.exists(f"t-0/{EPOCH_CHECKPOINT}")
    assert after_a_kill(directory).log(T).epochs.entries == [(1, 0)]


def test_another_error_of_the_disk_still_keeps_a_log_from_opening() -> None:
    disk = ByteDisk()
    directory, log = created(disk)
    fill(log, 20)
    directory.release()
    disk.faults.append(Fault("append", EPOCH_CHECKPOINT, errno.EIO))
    directory = directory_on(disk)
    with pytest.raises(OSError, match=EPOCH_CHECKPOINT):
        directory.log(T)


def test_a_log_that_is_empty_after_a_crash_has_no_epochs_of_lost_records() -> None:
    disk = ByteDisk()
    directory, log = created(disk)
    fill(log, 3, epoch=7)
    log.flush(NOW)
    directory.release()
    disk.remove(f"t-0/{0:020d}.log")
    directory = directory_on(disk)
    assert directory.log(T).epochs.entries == []
    assert not disk.exists(f"t-0/{EPOCH_CHECKPOINT}")


def test_a_kill_in_a_restart_leaves_no_snapshot_of_other_records() -> None:
    disk = ByteDisk()
    directory, log = created(disk)
    fill(log, 30)
    log.flush(NOW)
    log.flush(NOW)
    directory.write_checkpoints({})

    def kill(step: Step) -> None:
        if step.kind == "remove" and step.path.endswith(".snapshot"):
            raise KilledError

    disk.on_step = kill
    with pytest.raises(KilledError):
        log.restart_at(Offset(0), NOW)
    disk.on_step = None
    log = after_a_kill(directory).log(T)
    assert log.log_end_offset == 0
    assert snapshot_offsets(disk, "t-0") == []


def test_a_power_failure_in_a_restart_leaves_no_snapshot_of_other_records() -> None:
    disk = ByteDisk()
    _, log = created(disk)
    fill(log, 30)
    log.flush(NOW)
    log.flush(NOW)

    def crash(step: Step) -> None:
        for state in crash_states(disk, step, Bound(states=24, tear_points=1)):
            again = directory_on(state.disk).log(T)
            above = [at for at in snapshot_offsets(state.disk, "t-0") if at > again.log_end_offset]
            assert not above, (state.what, step[:2])
            if not again.log_end_offset:
                assert not snapshot_offsets(state.disk, "t-0"), (state.what, step[:2])

    disk.on_step = crash
    log.restart_at(Offset(0), NOW)


def moved_start(disk: ByteDisk) -> tuple[LogDirectory, Log]:
    """The log-start checkpoint has a start that the next write omits; that write has begun."""
    directory, log = created(disk)
    fill(log, 100)
    log.flush(NOW)
    log.advance_start_to(log.segments[5].base_offset)
    complete(directory, directory.checkpoint({T: Offset(100)}))
    fill(log, 103)
    log.flush(NOW)
    log.flush(NOW)
    directory.checkpoint({T: Offset(100)})
    assert not directory.checkpoints.log_starts
    return directory, log


def test_a_start_that_is_only_on_the_disk_does_not_come_back_above_flushed_records() -> None:
    directory, log = moved_start(ByteDisk())
    log.restart_at(Offset(10), NOW)
    fill(log, 60, epoch=2)
    log.flush(NOW)
    again = after_a_kill(directory).log(T)
    assert (again.log_start_offset, again.log_end_offset) == (10, 60)


def content_of(disk: ByteDisk, base: int = 0) -> bytearray:
    node = disk._node(f"t-0/{base:020d}.log")
    assert isinstance(node, FileNode)
    return node.visible


def flip_base_offset(disk: ByteDisk, offset: int, bit: int) -> None:
    """Change the base offset of a batch; all batches have the same size."""
    at = offset * len(batch(0, [b"v000"], epoch=1, keys=[b"k0"]))
    content_of(disk)[at : at + 8] = (offset ^ bit).to_bytes(8, "big")


@pytest.mark.parametrize(("flipped", "bit"), [(12, 16), (12, 1), (12, 2), (19, 8), (19, 64)])
def test_a_base_offset_that_rose_is_no_gap(flipped: int, bit: int) -> None:
    disk = ByteDisk()
    settings = LogSettings()
    directory, log = created(disk, settings)
    fill(log, 20)
    flip_base_offset(disk, flipped, bit)
    again = after_a_kill(directory, settings).log(T)
    assert flipped ^ bit > flipped
    assert again.log_end_offset == flipped
    assert list(held_by(again)) == list(range(flipped))


@pytest.mark.parametrize("count", [1, 2])
def test_a_gap_that_was_copied_is_kept_even_at_the_end(count: int) -> None:
    directory, log = created(ByteDisk())
    fill(log, 3)
    for offset in (7, 12)[:count]:
        log.append([batch(offset, epoch=1)], NOW)
    expected = held_by(log)
    assert held_by(after_a_kill(directory).log(T)) == expected


def test_a_gap_that_was_copied_in_the_middle_of_an_append_is_kept() -> None:
    directory, log = created(ByteDisk())
    log.append([batch(offset, epoch=1) for offset in (0, 1, 5)], NOW)
    assert list(held_by(after_a_kill(directory).log(T))) == [0, 1, 5]


@pytest.mark.parametrize("chunk_bytes", [HEADER_BYTES, CHUNK_BYTES])
def test_a_gap_of_a_log_without_a_mark_is_kept_if_the_next_batch_agrees(
    monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    """An earlier release made no mark. The next batch may be in the next chunk."""
    monkeypatch.setattr(verified_runs, "__defaults__", (chunk_bytes,))
    disk = ByteDisk()
    directory, log = created(disk)
    fill(log, 3)
    for offset in (7, 8, 12):
        log.append([batch(offset, epoch=1)], NOW)
    disk.remove(f"t-0/{COMPACTED_MARK}")
    assert list(held_by(after_a_kill(directory).log(T))) == [0, 1, 2, 7, 8, 12]


def test_a_snapshot_proves_no_gap_in_a_log_that_was_never_compacted() -> None:
    """Apache Kafka writes it before the segment below it is flushed."""
    disk = ByteDisk()
    directory, log = created(disk)
    fill(log, 20)
    log.flush(NOW)
    base = log.segments[1].base_offset
    assert base in snapshot_offsets(disk, "t-0")
    content = content_of(disk)
    del content[len(content) // 2 :]
    again = after_a_kill(directory).log(T)
    assert list(held_by(again)) == list(range(base // 2))


def test_a_log_that_was_compacted_keeps_a_gap_between_segments_under_another_policy() -> None:
    """No checkpoint was written since the cleaning."""
    directory, log = created(ByteDisk(), COMPACTED)
    for offset in range(20):
        key = b"first" if offset < 12 else b"k%d" % offset
        log.append([batch(offset, epoch=1, keys=[key])], NOW)
    log.flush(NOW)
    clean(log, 0, log.log_end_offset, NOW)
    expected = held_by(log)
    assert next(iter(expected)) > 0
    assert held_by(after_a_kill(directory).log(T)) == expected
