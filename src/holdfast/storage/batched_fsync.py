"""Many logs at once: what each of them must have on the disk is waited for together.

A flush is mostly waiting, and the system writes what many wait for at one go. The order of steps is
that of a single log: content before its name, names before anything is promised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.storage.disk import Disk, File, parent
from holdfast.storage.log import Log

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


def flush_new(disk: Disk, logs: Iterable[Log]) -> None:
    """The first flush of logs that have just been made, and of their names."""
    made = list(logs)
    files = [log.active.file for log in made]
    disk.flush_all(files, ["", *(log.directory for log in made)])
    for log in made:
        log.active.flushed_to(log.active.size)
        log.names.flushed(log.names.changes)
