"""What a crash in the middle of deleting, cleaning or recovering leaves, and what becomes of it.

`.deleted` is rubbish. `.cleaned` is the cleaner's unfinished work: rubbish. `.swap` is finished
work: the cleaned segment, flushed. It takes the place of every segment it spans, which are removed
if they are still there; nobody but the cleaner made it, so nothing is lost by that.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model import Offset
from holdfast.storage.disk import Disk
from holdfast.storage.names import (
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
from holdfast.storage.scan import BadBatchError, walk_headers


class Found(NamedTuple):
    """The usable files of a log's directory."""

    bases: list[int]
    snapshots: list[int]


def tidy_directory(disk: Disk, directory: str, notes: list[str]) -> Found:
    """Clear up; then the segments' base offsets and the snapshots, oldest first.

    A start does this for every log, so the usual case looks at each name once.
    """
    numbers, rest = _by_kind(disk.names(directory))
    if any(name.endswith((DELETED, CLEANED, SWAP)) for name in rest):
        _finish(disk, directory, _parsed(disk.names(directory)), notes)
        numbers, _ = _by_kind(disk.names(directory))
    known = set(numbers[LOG])
    for kind in SEGMENT_KINDS[1:]:
        for number in numbers[kind]:
            if number not in known:
                notes.append(f"{directory}/{number}{kind}: no log beside it; removed")
                disk.remove(f"{directory}/{number}{kind}")
    return Found(sorted(map(int, known)), sorted(map(int, numbers[SNAPSHOT])))


def _by_kind(names: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """The offsets in the names of files in use, by kind; and all other names."""
    numbers: dict[str, list[str]] = {kind: [] for kind in (*SEGMENT_KINDS, SNAPSHOT)}
    rest = []
    for name in names:
        ending = name[OFFSET_DIGITS:]
        if ending in numbers and name[:OFFSET_DIGITS].isdecimal():
            numbers[ending].append(name[:OFFSET_DIGITS])
        else:
            rest.append(name)
    return numbers, rest


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
            notes.append(f"{path}: the cleaner's work is taken over")
            disk.rename(path + SWAP, path)
    disk.flush_directory(directory)


def _swap_end(disk: Disk, path: str, base: Offset) -> int:
    """The offset after the last one that a swap file spans."""
    file = disk.open(path)
    end: int = base + 1
    try:
        for found in walk_headers(file, 0, file.size):
            end = found.header.base_offset + found.header.last_offset_delta + 1
    except BadBatchError:
        pass
    finally:
        file.close()
    return end
