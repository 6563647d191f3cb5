"""Many logs at once: what each of them must have on the disk is waited for together.

A flush is mostly waiting, and the system writes what many wait for at one go. The order of steps is
that of a single log: content before its name, names before anything is promised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.storage.checkpoints import epochs_content
from holdfast.storage.disk import Disk, File, parent
from holdfast.storage.log import Log
from holdfast.storage.names import EPOCH_CHECKPOINT

SUFFIX = ".tmp"


def write_together(disk: Disk, contents: Mapping[str, bytes], *, lasting: bool = True) -> None:
    """`write_whole` of several files."""
    files: list[File] = []
    try:
        for path, content in contents.items():
            temporary = path + SUFFIX
            if disk.exists(temporary):
                disk.remove(temporary)
            file = disk.open(temporary, create=True)
            files.append(file)
            file.append([content])
        disk.flush_all(files, ())
    finally:
        for file in files:
            file.close()
    for path in contents:
        disk.rename(path + SUFFIX, path)
    if lasting:
        disk.flush_all((), list(dict.fromkeys(map(parent, contents))))


def write_epochs_together(logs: Sequence[Log]) -> None:
    """Put the leader-epoch checkpoints of these logs in line with their caches.

    If a disk fails, each of its logs is written alone: LogOfflineError of the first that cannot be.
    """
    of_disk: dict[Disk, list[Log]] = {}
    for log in logs:
        of_disk.setdefault(log.disk, []).append(log)
    for disk, its_logs in of_disk.items():
        if not _write_epochs(disk, its_logs):
            for log in its_logs:
                log.write_epochs()


def _write_epochs(disk: Disk, logs: Sequence[Log]) -> bool:
    """All with one wait for the disk; False if there is only one, or if the disk fails."""
    if len(logs) == 1:
        return False
    contents = {
        f"{log.directory}/{EPOCH_CHECKPOINT}": epochs_content(log.epochs.entries) for log in logs
    }
    try:
        write_together(disk, contents)
    except OSError:
        return False
    for log in logs:
        log.epochs_written()
    return True


def flush_new(disk: Disk, logs: Iterable[Log]) -> None:
    """The first flush of logs that have just been made, and of their names."""
    made = list(logs)
    files = [log.active.file for log in made]
    disk.flush_all(files, ["", *(log.directory for log in made)])
    for log in made:
        log.active.flushed_to(log.active.size)
        log.names.flushed(log.names.changes)
