"""Cleans up after a crash during a deletion, a cleaning or a recovery.

It removes `.deleted` files, and `.cleaned` files, which are unfinished work of the cleaner. A
`.swap` file is finished work: the cleaned segment, flushed. It replaces every segment it spans;
those that still exist are removed. Only the cleaner creates it, so nothing is lost.
"""

from __future__ import annotations

from contextlib import closing, suppress
from typing import NamedTuple

from holdfast.model import Offset
from holdfast.storage.disk import Disk
from holdfast.storage.file_names import (
    CLEANED,
    DELETED,
    LOG,
    OFFSET_DIGITS,
    SEGMENT_KINDS,
    SNAPSHOT,
    SWAP,
    LogFileName,
    file_name,
    parse_file_name,
)
from holdfast.storage.segment.batch_scan import BadBatchError, walk_headers


class Found(NamedTuple):
    """The usable files of a log's directory."""

    bases: list[int]
    snapshots: list[int]


def tidy_directory(disk: Disk, directory: str, notes: list[str]) -> Found:
    """Clean up; returns the segments' base offsets and the snapshots, oldest first.

    A start does this for every log, and a log may have thousands of files. So it handles the files
    of segments in bulk, and parses only the other names one by one.
    """
    bases, snapshots, rest = _sorted_out(disk.names(directory))
    if any(name.endswith((DELETED, CLEANED, SWAP)) for name in rest):
        _finish(disk, directory, _parsed(disk.names(directory)), notes)
        bases, snapshots, rest = _sorted_out(disk.names(directory))
    for name in sorted(rest):
        found = parse_file_name(name)
        if found is not None and found.kind == SNAPSHOT:
            snapshots.append(name)
        elif found is not None:
            notes.append(f"{directory}/{name}: no log beside it; removed")
            disk.remove(f"{directory}/{name}")
    ends = slice(OFFSET_DIGITS)
    return Found(sorted(map(int, bases)), sorted(int(name[ends]) for name in snapshots))


def _sorted_out(names: list[str]) -> tuple[list[str], list[str], set[str]]:
    """The offsets of segments, the names of the snapshots at them, and all other names."""
    bases = [name[: -len(LOG)] for name in names if name.endswith(LOG)]
    bases = [base for base in bases if len(base) == OFFSET_DIGITS and base.isdecimal()]
    rest = set(names)
    snapshots = rest.intersection([base + SNAPSHOT for base in bases])
    rest -= snapshots
    for kind in SEGMENT_KINDS:
        rest.difference_update([base + kind for base in bases])
    return bases, list(snapshots), rest


def _parsed(names: list[str]) -> list[LogFileName]:
    return [found for found in map(parse_file_name, names) if found is not None]


def _finish(disk: Disk, directory: str, names: list[LogFileName], notes: list[str]) -> None:
    for name in sorted(names):
        if name.state in (DELETED, CLEANED):
            notes.append(f"{directory}/{file_name(*name)}: left over; removed")
            disk.remove(f"{directory}/{file_name(*name)}")
    swaps = sorted(name.base_offset for name in names if name.kind == LOG and name.state == SWAP)
    for base in swaps:
        end = _swap_end(disk, f"{directory}/{file_name(base, LOG, SWAP)}", base)
        for name in sorted(names):
            if not name.state and name.kind in SEGMENT_KINDS and base <= name.base_offset < end:
                disk.remove(f"{directory}/{file_name(*name)}")
    disk.flush_directory(directory)
    for name in sorted(names, key=lambda name: name.kind == LOG):
        if name.state == SWAP:
            path = f"{directory}/{file_name(name.base_offset, name.kind)}"
            notes.append(f"{path}: replaced by the cleaner's segment")
            disk.rename(path + SWAP, path)
    disk.flush_directory(directory)


def _swap_end(disk: Disk, path: str, base: Offset) -> int:
    """The end offset of a swap file."""
    end: int = base + 1
    with closing(disk.open(path)) as file, suppress(BadBatchError):
        for found in walk_headers(file, 0, file.size):
            end = found.header.base_offset + found.header.last_offset_delta + 1
    return end
