"""Several log directories: placement of logs, failed directories, starting."""

from __future__ import annotations

import errno
import uuid

import pytest

from holdfast.model import Offset, TopicPartition
from holdfast.simulation.disk.byte_disk import ByteDisk, DirectoryNode, Fault
from holdfast.storage import (
    DirectoryLockedError,
    DuplicateLogError,
    LogDirectories,
    LogDirectory,
    LogOfflineError,
    NoLogDirectoryError,
)
from holdfast.storage.checkpoints.meta_properties import CleanShutdownMarker
from holdfast.storage.disk import read_whole
from holdfast.storage.file_names import CLEAN_SHUTDOWN, HIGH_WATERMARKS
from tests.unit.storage.support import NOW, SMALL, fill, records_of

TOPIC = uuid.UUID(int=7)
LOGS = tuple(TopicPartition("t", index) for index in range(5))


def opened(*disks: ByteDisk | OSError) -> LogDirectories:
    named = {f"/d{place}": disk for place, disk in enumerate(disks)}
    return LogDirectories(named, lambda _: SMALL)


def two() -> tuple[ByteDisk, ByteDisk]:
    return ByteDisk(), ByteDisk()


def opened_again(*disks: ByteDisk | OSError) -> LogDirectories:
    """Open the directories again, as a new process does."""
    fresh = [disk if isinstance(disk, OSError) else ByteDisk(disk.root) for disk in disks]
    return opened(*fresh)


def identified(directories: LogDirectories) -> LogDirectories:
    for path, one in directories.all.items():
        one.id = path
    return directories


def load(directories: LogDirectories) -> dict[TopicPartition, OSError]:
    failed: dict[TopicPartition, OSError] = {}
    for opening in directories.openings():
        try:
            opening.run()
        except OSError as error:
            failed[opening.partition] = error
            continue
        opening.end()
    directories.not_opened(failed)
    return failed


def close(directories: LogDirectories, epoch: int = 5) -> bool:
    return directories.close(NOW, epoch, {LOGS[0]: Offset(1)}, -1)


def test_new_logs_go_to_the_directory_with_the_fewest() -> None:
    one, other = two()
    LogDirectory(one, lambda _: SMALL).create(TopicPartition("old", 0), TOPIC)
    directories = opened_again(one, other)
    made = directories.create_all(dict.fromkeys(LOGS[:4], TOPIC))
    assert (sorted(made.partitions), made.errors) == (list(LOGS[:4]), ())
    assert [len(one.partitions) for one in directories.all.values()] == [3, 2]
    directories.create(LOGS[4], TOPIC)
    assert directories.path_of(directories.of(LOGS[4])) == "/d1"
    assert [len(one.partitions) for one in directories.all.values()] == [3, 3]


def test_each_directory_has_its_own_checkpoints_and_marker() -> None:
    one, other = two()
    directories = identified(opened(one, other))
    for name in LOGS[:2]:
        fill(directories.create(name, TOPIC), 3)
    assert close(directories)
    assert read_whole(one, HIGH_WATERMARKS) == b"0\n1\nt 0 1\n"
    assert read_whole(other, HIGH_WATERMARKS) == b"0\n0\n"
    again = identified(opened_again(one, other))
    assert again.last_shutdown == CleanShutdownMarker(5, -1, ("/d0", "/d1"))
    assert not load(again)
    assert [offset for offset, _ in records_of(again.log(LOGS[1]))] == [0, 1, 2]
    assert again.high_watermark(LOGS[0]) == 1


def test_a_shutdown_is_clean_only_if_all_directories_have_the_same_marker() -> None:
    one, other = two()
    assert close(identified(opened(one, other)), 5)
    assert identified(opened_again(one, other, ByteDisk())).last_shutdown is None, "a new one"
    assert identified(opened_again(one)).last_shutdown is None, "one that is gone"
    assert identified(opened_again(one, OSError(errno.EIO, "no"))).last_shutdown is None
    third = ByteDisk()
    assert close(identified(opened(third)), 6)
    assert identified(opened_again(one, other, third)).last_shutdown is None, "another epoch"
    assert identified(opened_again(one, other)).last_shutdown is not None


def test_one_log_in_two_directories_is_refused() -> None:
    one, other = two()
    for disk in (one, other):
        fill(LogDirectory(disk, lambda _: SMALL).create(LOGS[0], TOPIC), 1)
    with pytest.raises(DuplicateLogError, match="the log of t-0 is in /d0 and in /d1"):
        opened_again(one, other)
    disks = ByteDisk(one.root), ByteDisk(other.root)
    with pytest.raises(DuplicateLogError):
        opened(*disks)
    opened(disks[0])  # the lock is released


@pytest.mark.parametrize("used", [0, 1])
def test_leftovers_of_a_failed_creation_do_not_count(used: int) -> None:
    disks = two()
    logs = [LogDirectory(disk, lambda _: SMALL).create(LOGS[0], TOPIC) for disk in disks]
    fill(logs[used], 2)
    again = opened_again(*disks)
    assert again.path_of(again.of(LOGS[0])) == f"/d{used}"
    assert not load(again)
    assert again.log(LOGS[0]).log_end_offset == 2
    unused = again.all[f"/d{1 - used}"]
    assert not unused.disk.exists("t-0")


def test_a_directory_locked_by_another_process_is_refused_and_the_others_are_released() -> None:
    one, other = two()
    held = LogDirectory(other, lambda _: SMALL)
    with pytest.raises(DirectoryLockedError):
        opened(one, other)
    held.release()
    opened(one, other)


def test_a_bad_directory_is_offline_and_the_others_are_used() -> None:
    directories = opened(OSError(errno.EACCES, "Permission denied"), ByteDisk())
    assert list(directories.offline) == ["/d0"]
    assert list(directories.live) == ["/d1"]
    assert directories.take_notes() == ["/d0: Permission denied; this directory is offline"]
    directories.create(LOGS[0], TOPIC)
    assert not close(directories)
    with pytest.raises(NoLogDirectoryError, match=r"cannot use /d0 \(gone\): fix log.dirs"):
        opened(OSError(errno.EIO, "gone"))


def test_a_directory_that_fails_takes_its_own_logs_offline() -> None:
    one, other = two()
    directories = opened(one, other)
    logs = [directories.create(name, TOPIC) for name in LOGS[:2]]
    failed: list[str] = []
    directories.on_offline = lambda directory, _: failed.append(directories.path_of(directory))
    directories.failed(directories.of(LOGS[0]), OSError(errno.EIO, "Input/output error"))
    directories.failed(directories.of(LOGS[0]), OSError(errno.EIO, "again"))
    assert failed == ["/d0"]
    with pytest.raises(LogOfflineError):
        fill(logs[0], 1)
    fill(logs[1], 1)
    directories.create(LOGS[2], TOPIC)
    assert directories.path_of(directories.of(LOGS[2])) == "/d1"
    assert not close(directories)
    assert read_whole(one, CLEAN_SHUTDOWN) is None
    assert read_whole(other, CLEAN_SHUTDOWN) is not None


@pytest.mark.parametrize(("error", "is_offline"), [(errno.EIO, True), (errno.ENOSPC, False)])
def test_a_log_is_created_in_a_directory_that_works(error: int, is_offline: bool) -> None:
    one, other = two()
    directories = opened(one, other)
    one.faults.append(Fault("create", "t-0", error))
    directories.create(LOGS[0], TOPIC)
    assert directories.path_of(directories.of(LOGS[0])) == "/d1"
    assert ("/d0" in directories.offline) is is_offline


def test_a_failed_creation_does_not_prevent_others() -> None:
    one, other = two()
    directories = opened(one, other)
    one.faults.append(Fault("create", "t-0"))
    made = directories.create_all(dict.fromkeys(LOGS[:2], TOPIC))
    assert made.partitions == (LOGS[1],)
    assert len(made.errors) == 1
    one.faults.append(Fault("create", "t-2"))
    other.faults.append(Fault("create", "t-2"))
    with pytest.raises(OSError, match="simulated"):
        directories.create(LOGS[2], TOPIC)


def test_a_deleted_log_does_not_come_back_beside_its_successor() -> None:
    """Deleted in one directory, created in another: a power failure leaves one of the two."""
    one, other = two()
    directories = opened(one, other)
    for name in LOGS[:3]:
        fill(directories.create(name, TOPIC), 1)
    assert [directories.path_of(directories.of(name)) for name in LOGS[:2]] == ["/d0", "/d1"]
    for name in LOGS[:2]:
        directories.delete(name, uuid.uuid4(), NOW)
    fill(directories.create(LOGS[0], uuid.UUID(int=8)), 1)
    assert directories.path_of(directories.of(LOGS[0])) == "/d1"
    survivors = [ByteDisk(DirectoryNode(disk.root.flushed)) for disk in (one, other)]
    again = opened(*survivors)
    assert again.topic_id(LOGS[0]) in (uuid.UUID(int=8), None)


def test_a_directory_that_fails_when_its_logs_are_opened_takes_its_own_offline() -> None:
    one, other = two()
    directories = opened(one, other)
    directories.create_all(dict.fromkeys(LOGS[:2], TOPIC))
    assert close(directories)
    bad = ByteDisk(one.root)
    bad.faults.append(Fault("remove", CLEAN_SHUTDOWN))
    again = opened(bad, ByteDisk(other.root))
    assert load(again) == {}
    assert list(again.offline) == ["/d0"]
    assert again.log(LOGS[1]).offline is None
