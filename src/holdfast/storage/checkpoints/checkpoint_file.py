"""The format of checkpoint files: offsets per partition, and leader epochs of one log.

Everything in them can be recomputed with more work. So a damaged file is reported and rebuilt. No
checkpoint is trusted beyond what can be checked, and none keeps a broker from starting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.model import EpochEntry, LeaderEpoch, Offset, TopicPartition
from holdfast.storage.disk import Disk, read_whole, write_whole

_VERSION = "0"


class DamagedFileError(Exception):
    """A file with invalid content: its path, and what is wrong with it."""

    path: str
    reason: str

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, Offset]:
    """Read the checkpoint of all partitions; empty if there is no such file."""
    offsets: dict[TopicPartition, Offset] = {}
    for line in _read_lines(disk, path):
        parts = line.split(" ")
        if len(parts) != 3:
            raise DamagedFileError(path, f"not 'topic partition offset': {line!r}")
        partition, offset = _numbers(path, line, parts[1:])
        offsets[TopicPartition(parts[0], partition)] = Offset(offset)
    return offsets


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the checkpoint of all partitions."""
    write_whole(disk, path, offsets_content(offsets))


def offsets_content(offsets: Mapping[TopicPartition, int]) -> bytes:
    """The content of a checkpoint of all partitions."""
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
    return _content(sorted(lines))


def read_epochs(disk: Disk, path: str) -> list[EpochEntry] | None:
    """Read the leader epochs of one log; None if there is no such file."""
    if not disk.exists(path):
        return None
    entries: list[EpochEntry] = []
    for line in _read_lines(disk, path):
        parts = line.split(" ")
        if len(parts) != 2:
            raise DamagedFileError(path, f"not 'epoch offset': {line!r}")
        epoch, start = _numbers(path, line, parts)
        entry = EpochEntry(LeaderEpoch(epoch), Offset(start))
        if entries and (epoch <= entries[-1].epoch or start <= entries[-1].start_offset):
            raise DamagedFileError(path, f"leader epochs do not rise: {entries[-1]} then {entry}")
        entries.append(entry)
    return entries


def write_epochs(disk: Disk, path: str, entries: Iterable[EpochEntry]) -> None:
    """Replace the leader epochs of one log."""
    write_whole(disk, path, epochs_content(entries))


def epochs_content(entries: Iterable[EpochEntry]) -> bytes:
    """The content of that file."""
    return _content([f"{epoch} {start}" for epoch, start in entries])


def _content(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in (_VERSION, str(len(lines)), *lines)).encode()


def _read_lines(disk: Disk, path: str) -> list[str]:
    content = read_whole(disk, path)
    if content is None:
        return []
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        raise DamagedFileError(path, "not text") from None
    if len(lines) < 2:
        raise DamagedFileError(path, "truncated")
    if lines[0] != _VERSION:
        raise DamagedFileError(path, f"version {lines[0]!r}, not {_VERSION}")
    [count] = _numbers(path, lines[1], [lines[1]])
    if count != len(lines) - 2 or not content.endswith(b"\n"):
        raise DamagedFileError(path, f"{len(lines) - 2} lines instead of {count}")
    return lines[2:]


def _numbers(path: str, line: str, parts: Iterable[str]) -> list[int]:
    numbers = []
    for part in parts:
        if not (part.isascii() and part.isdigit()) or int(part) >= 1 << 63:
            raise DamagedFileError(path, f"not a number: {line!r}")
        numbers.append(int(part))
    return numbers
