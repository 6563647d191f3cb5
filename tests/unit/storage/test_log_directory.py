"""The log directory: one process, clean and unclean starts, creating and deleting partitions."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from holdfast.model import Offset, TopicPartition
from holdfast.simulation.disk.byte_disk import ByteDisk, Fault, Step
from holdfast.storage import (
    DirectoryLockedError,
    Disk,
    LogClosedError,
    LogDirectory,
    LogOfflineError,
    RealDisk,
)
from holdfast.storage.checkpoints.meta_properties import (
    CleanShutdownMarker,
    MetaProperties,
    id_text,
    parse_id,
    read_meta_properties,
    write_meta_properties,
)
from holdfast.storage.disk import read_whole, write_whole
from holdfast.storage.file_names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
)
from tests.unit.storage.support import NOW, SMALL, fill, open_all, records_of

A, B = TopicPartition("a", 0), TopicPartition("a.b-c", 12)
TOPIC = uuid.UUID(int=0x1234567890ABCDEF)


def opened(disk: Disk) -> LogDirectory:
    return LogDirectory(disk, lambda partition: SMALL)


def test_a_clean_shutdown_is_trusted_once(disk: Disk) -> None:
    directory = opened(disk)
    fill(directory.create(A, TOPIC), 12)
    fill(directory.create(B, None), 3)
    assert directory.close(NOW, 5, {A: Offset(11)})
    assert read_whole(disk, CLEAN_SHUTDOWN) == b'{"version":0,"brokerEpoch":5}'
    assert read_whole(disk, RECOVERY_POINTS) == b"0\n2\na 0 12\na.b-c 12 3\n"
    again = opened(disk)
    assert again.last_shutdown == CleanShutdownMarker(5)
    assert disk.exists(CLEAN_SHUTDOWN), "looking takes nothing away"
    assert list(again.partitions) == [A, B]
    assert again.logs == {}
    assert again.log(A).log_end_offset == 12
    assert not disk.exists(CLEAN_SHUTDOWN)
    assert again.high_watermarks == {A: 11}
    assert again.topic_id(A) == TOPIC
    assert again.notes == []


def test_a_log_that_was_not_opened_keeps_its_checkpoints(disk: Disk) -> None:
    directory = opened(disk)
    fill(directory.create(A, None), 12)
    fill(directory.create(B, None), 3)
    directory.log(A).advance_start_to(Offset(7))
    directory.close(NOW, 1)
    again = opened(disk)
    fill(again.log(B), 1)
    again.close(NOW, 2)
    third = opened(disk)
    assert third.log(A).log_start_offset == 7
    assert third.log(A).recovery_point == 12


def test_after_a_kill_verification_starts_at_the_recovery_point(disk: Disk) -> None:
    directory = opened(disk)
    log = directory.create(A, None)
    fill(log, 7)
    log.flush(NOW)
    directory.write_checkpoints({A: Offset(6)})
    fill(log, 5)
    directory._lock.release()
    again = opened(disk)
    assert again.last_shutdown is None
    assert again.log(A).recovery_point == 7
    assert again.log(A).log_end_offset == 12


@pytest.mark.parametrize("name", [RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, CLEANER_OFFSETS])
@pytest.mark.parametrize(
    "content", [b"", b"0\n9\n", b"0\n1\na 0 -5\n", b"\xff\x00", b"0\n1\na 0\n"]
)
def test_a_damaged_checkpoint_is_reported_and_rebuilt(
    disk: Disk, name: str, content: bytes
) -> None:
    directory = opened(disk)
    fill(directory.create(A, None), 12)
    directory.close(NOW, 1)
    write_whole(disk, name, content)
    again = opened(disk)
    assert [offset for offset, _ in records_of(again.log(A))] == list(range(12))
    assert any(name in note for note in again.notes)


def test_a_damaged_marker_means_an_unclean_start(disk: Disk) -> None:
    directory = opened(disk)
    fill(directory.create(A, None), 3)
    directory.close(NOW, 1)
    write_whole(disk, CLEAN_SHUTDOWN, b"{")
    again = opened(disk)
    assert again.last_shutdown is None
    assert again.log(A).log_end_offset == 3


def test_a_truncation_lowers_the_checkpointed_recovery_point_immediately(disk: Disk) -> None:
    directory = opened(disk)
    log = directory.create(A, None)
    fill(log, 12)
    log.flush(NOW)
    directory.write_checkpoints({})
    log.truncate_to(Offset(3), NOW)
    assert read_whole(disk, RECOVERY_POINTS) == b"0\n1\na 0 3\n"


def test_a_second_holder_is_refused(disk: Disk) -> None:
    directory = opened(disk)
    with pytest.raises(DirectoryLockedError):
        opened(disk)
    directory.close(NOW, 1)
    opened(disk)


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    opened(RealDisk(tmp_path))
    code = (
        "import sys; from holdfast.storage import *; "
        "LogDirectory(RealDisk(sys.argv[1]), lambda partition: LogSettings())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert "DirectoryLockedError" in done.stderr


def test_a_deleted_partition_is_gone_immediately_and_its_files_later(disk: Disk) -> None:
    directory = opened(disk)
    fill(directory.create(A, TOPIC), 12)
    directory.delete(A, uuid.UUID(int=7), NOW)
    assert A not in directory.partitions
    fill(directory.create(A, TOPIC), 1)
    names = [entry.name for entry in disk.list("")]
    assert f"a-0.{7:032x}-delete" in names
    directory.take_due(NOW + SMALL.file_delete_delay_ms).run()
    assert [entry.name for entry in disk.list("") if entry.is_directory] == ["a-0"]
    assert directory.log(A).log_end_offset == 1


def test_a_log_that_is_offline_leaves_no_clean_shutdown_marker() -> None:
    disk = ByteDisk()
    directory = opened(disk)
    log = directory.create(A, None)
    fill(directory.create(B, None), 2)
    disk.faults.append(Fault("append", "a-0/"))
    with pytest.raises(LogOfflineError):
        fill(log, 1)
    assert not directory.close(NOW, 1)
    disk.faults.clear()
    again = opened(disk)
    assert again.last_shutdown is None
    assert again.log(B).log_end_offset == 2


def test_meta_properties_and_ids_keep_kafkas_spelling(disk: Disk) -> None:
    meta = MetaProperties("AnchorClusterId0000001", 1, "xZHW2l5QSSG8yTjE1MzEBg")
    write_meta_properties(disk, meta)
    assert read_meta_properties(disk) == meta
    assert id_text(parse_id("dR4XlZSAQaOSMGBKDi_20w")) == "dR4XlZSAQaOSMGBKDi_20w"
    with pytest.raises(ValueError, match="not an id"):
        parse_id("too short")


def test_a_new_log_does_not_inherit_the_checkpoints_of_a_deleted_one() -> None:
    disk = ByteDisk()
    directory = opened(disk)
    log = directory.create(A, None)
    fill(log, 40)
    log.flush(NOW)
    log.advance_start_to(Offset(30))
    directory.cleaner_offsets[A] = Offset(20)
    directory.write_checkpoints({A: Offset(40)})
    directory.write_checkpoints({})
    directory.delete(A, uuid.UUID(int=1), NOW)
    fill(directory.create(A, None), 20)
    for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS):
        assert f"{A.topic} {A.partition} " not in (read_whole(disk, name) or b"").decode()
    directory._lock.release()
    again = opened(disk).log(A)
    assert [offset for offset, _ in records_of(again)] == list(range(20))


def test_a_log_that_cannot_be_opened_does_not_prevent_the_others() -> None:
    disk = ByteDisk()
    directory = opened(disk)
    for partition in (A, B):
        fill(directory.create(partition, None), 3)
    directory.close(NOW, 1)
    disk.faults.append(Fault("read", "a-0/"))
    again = opened(disk)
    assert list(open_all(again)) == [A]
    assert list(again.logs) == [B]
    assert "a-0" in again.notes[-1]


def test_a_log_that_fails_to_close_does_not_prevent_the_others() -> None:
    disk = ByteDisk()
    directory = opened(disk)
    for partition in (A, B):
        fill(directory.create(partition, None), 3)
    disk.faults.append(Fault("flush", "a-0/"))
    assert not directory.close(NOW, 1)
    assert isinstance(directory.logs[B].offline, LogClosedError)
    assert not disk.exists(CLEAN_SHUTDOWN)
    opened(disk)


@pytest.mark.parametrize("file", ["recovery-point-offset-checkpoint", CLEAN_SHUTDOWN])
def test_a_disk_that_fails_at_the_very_end_costs_only_the_marker(file: str) -> None:
    disk = ByteDisk()
    directory = opened(disk)
    fill(directory.create(A, None), 3)
    disk.faults.append(Fault("rename", file))
    assert not directory.close(NOW, 1)
    disk.faults.clear()
    again = opened(disk)
    assert again.last_shutdown is None
    assert open_all(again) == {}


def test_a_creation_that_failed_halfway_can_be_retried() -> None:
    disk = ByteDisk()
    directory = opened(disk)
    disk.faults.append(Fault("create", ".log"))
    with pytest.raises(OSError, match="simulated"):
        directory.create(A, TOPIC)
    disk.faults.clear()
    fill(directory.create(A, TOPIC), 3)
    assert directory.log(A).log_end_offset == 3


def test_the_recovery_points_are_written_only_if_they_are_too_high(disk: Disk) -> None:
    directory = opened(disk)
    log = directory.create(A, None)
    fill(log, 20)
    log.flush(NOW)
    log.truncate_to(Offset(10), NOW)
    assert not disk.exists(RECOVERY_POINTS)
    directory.write_checkpoints({})
    assert read_whole(disk, RECOVERY_POINTS) == b"0\n1\na 0 10\n"
    log.truncate_to(Offset(5), NOW)
    assert read_whole(disk, RECOVERY_POINTS) == b"0\n1\na 0 5\n"


def test_a_truncation_overrides_a_checkpoint_in_progress(disk: Disk) -> None:
    """The offsets of the background write are older and higher: they must not come back."""
    directory = opened(disk)
    log = directory.create(A, None)
    fill(log, 12)
    log.flush(NOW)
    write = directory.checkpoint({A: Offset(12)})
    write.work.flush()
    log.truncate_to(Offset(3), NOW)
    assert read_whole(disk, RECOVERY_POINTS) == b"0\n1\na 0 3\n"
    directory.checkpoints.put_in_place(write)
    write.work.flush_names()
    write.work.close()
    assert read_whole(disk, RECOVERY_POINTS) == b"0\n1\na 0 3\n"
    assert read_whole(disk, HIGH_WATERMARKS) == b"0\n1\na 0 12\n"
    assert not [name for name in disk.names("") if name.endswith(".new")]


def test_a_background_checkpoint_is_durable_once_its_names_are(disk: Disk) -> None:
    directory = opened(disk)
    fill(directory.create(A, None), 12)
    write_whole(disk, HIGH_WATERMARKS + ".new", b"of a process that died")
    write = directory.checkpoint({A: Offset(7)})
    assert read_whole(disk, HIGH_WATERMARKS) is None
    write.work.flush()
    directory.checkpoints.put_in_place(write)
    write.work.flush_names()
    write.work.close()
    assert read_whole(disk, HIGH_WATERMARKS) == b"0\n1\na 0 7\n"


def test_a_log_that_cannot_be_renamed_does_not_count_as_deleted() -> None:
    disk = ByteDisk()
    directory = opened(disk)
    fill(directory.create(A, TOPIC), 3)
    disk.faults.append(Fault("rename", "a-0"))
    with pytest.raises(OSError, match="simulated"):
        directory.delete(A, TOPIC, NOW)
    assert A in directory.partitions
    disk.faults.clear()
    directory.delete(A, TOPIC, NOW)
    assert A not in directory.partitions


def test_a_truncation_lowers_what_counts_as_clean(disk: Disk) -> None:
    """Otherwise a gap that a crash left above it would be taken for the cleaner's."""
    directory = opened(disk)
    log = directory.create(A, TOPIC)
    fill(log, 12)
    log.flush(NOW)
    directory.cleaner_offsets[A] = Offset(10)
    directory.write_checkpoints({})
    log.truncate_to(Offset(6), NOW)
    assert read_whole(disk, CLEANER_OFFSETS) == b"0\n1\na 0 6\n"


class _KilledError(Exception):
    """The process ends here."""


def test_an_interrupted_truncation_lowers_the_recovery_point_at_the_next_start() -> None:
    """Otherwise recovery after the next crash would skip the part where records were lost."""
    disk = ByteDisk()
    directory = opened(disk)
    log = directory.create(A, TOPIC)
    fill(log, 20)
    log.flush(NOW)
    directory.write_checkpoints({})

    def kill(step: Step) -> None:
        if step.path.startswith(RECOVERY_POINTS):
            raise _KilledError

    disk.on_step = kill
    with pytest.raises(_KilledError):
        log.truncate_to(Offset(3), NOW)
    again = opened(ByteDisk(disk.root))
    assert open_all(again) == {}
    assert again.log(A).recovery_point == 3
    assert read_whole(again.disk, RECOVERY_POINTS) == b"0\n1\na 0 3\n"
