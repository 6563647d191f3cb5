"""Small text files that say how far a log is flushed, committed, kept, cleaned, and who led when.

All of them only repeat what could be found out again with more work. So a file that is damaged is
reported and its content worked out anew; nothing here is trusted beyond what it can be checked
against, and nothing here keeps a broker from starting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.model import EpochEntry, LeaderEpoch, Offset, TopicPartition
from holdfast.storage.disk import Disk, read_whole, write_whole

_VERSION = "0"


class DamagedFileError(Exception):
    """A file that does not say what it should: which, and why it is not believed."""

    path: str
    reason: str

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, Offset]:
    """A checkpoint of all partitions; empty if there is no such file."""
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
    """What is in a checkpoint of all partitions."""
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
    return _content(sorted(lines))


def read_epochs(disk: Disk, path: str) -> list[EpochEntry] | None:
    """The reigns of one log, or None if there is no such file."""
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
            raise DamagedFileError(path, f"reigns do not rise: {entries[-1]} then {entry}")
        entries.append(entry)
    return entries


def write_epochs(disk: Disk, path: str, entries: Iterable[EpochEntry]) -> None:
    """Replace the reigns of one log."""
    write_whole(disk, path, epochs_content(entries))


def epochs_content(entries: Iterable[EpochEntry]) -> bytes:
    """What is in that file."""
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
        raise DamagedFileError(path, "cut short")
    if lines[0] != _VERSION:
        raise DamagedFileError(path, f"version {lines[0]!r}, not {_VERSION}")
    [count] = _numbers(path, lines[1], [lines[1]])
    if count != len(lines) - 2 or not content.endswith(b"\n"):
        raise DamagedFileError(path, f"{len(lines) - 2} lines, {count} are announced")
    return lines[2:]


def _numbers(path: str, line: str, parts: Iterable[str]) -> list[int]:
    numbers = []
    for part in parts:
        if not (part.isascii() and part.isdigit()) or int(part) >= 1 << 63:
            raise DamagedFileError(path, f"no number where one belongs: {line!r}")
        numbers.append(int(part))
    return numbers
