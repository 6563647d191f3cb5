"""Flushes the files of many logs together instead of one after the other.

A flush is mostly waiting, and the system can write for many waiters in one pass. The order of steps
is that of a single log: content before its name, names before any acknowledgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.storage.disk import TEMPORARY, Disk, File, create_file, parent
from holdfast.storage.log import Log


def write_together(disk: Disk, contents: Mapping[str, bytes], *, lasting: bool = True) -> None:
    """Replace several files, as `write_whole` does one."""
    files: list[File] = []
    try:
        for path, content in contents.items():
            files.append(create_file(disk, path + TEMPORARY, content))
        disk.flush_all(files, ())
    finally:
        for file in files:
            file.close()
    for path in contents:
        disk.rename(path + TEMPORARY, path)
    if lasting:
        disk.flush_all((), list(dict.fromkeys(map(parent, contents))))


def flush_new(disk: Disk, logs: Iterable[Log]) -> None:
    """The first flush of new logs and of their names."""
    made = list(logs)
    files = [log.active.file for log in made]
    disk.flush_all(files, ["", *(log.directory for log in made)])
    for log in made:
        log.active.flushed_to(log.active.size)
        log.names.flushed(log.names.changes)
