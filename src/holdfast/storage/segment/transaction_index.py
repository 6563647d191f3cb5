"""The transaction index: the aborted transactions that ended in a segment.

A read_committed reader receives, with the records, the aborted transactions that overlap them, and
skips their records. The file exists only if a transaction was aborted.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError

_VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size

assert ENTRY_BYTES == 34


class AbortedTransaction(NamedTuple):
    """One aborted transaction of one producer."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def to_bytes(self) -> bytes:
        """Its entry in the file."""
        return _ENTRY.pack(_VERSION, *self)


def decode_transactions(content: bytes, path: str) -> list[AbortedTransaction]:
    """Raises DamagedFileError unless entries are whole and in the order of their markers."""
    if len(content) % ENTRY_BYTES:
        raise DamagedFileError(path, f"{len(content)} bytes are not whole entries")
    found: list[AbortedTransaction] = []
    for version, *numbers in _ENTRY.iter_unpack(content):
        entry = AbortedTransaction._make(numbers)
        if version != _VERSION or not 0 <= entry.first_offset <= entry.last_offset:
            raise DamagedFileError(path, f"invalid entry: version {version}, {entry}")
        if found and entry.last_offset <= found[-1].last_offset:
            raise DamagedFileError(path, f"entries do not rise: {found[-1]} then {entry}")
        found.append(entry)
    return found


def overlapping(
    entries: list[AbortedTransaction], start: int, end: int
) -> tuple[list[AbortedTransaction], bool]:
    """Entries with records in [start, end), and whether later segments have none."""
    found = []
    for entry in entries:
        if entry.last_offset >= start and entry.first_offset < end:
            found.append(entry)
        if entry.last_stable_offset >= end:
            return found, True
    return found, False
