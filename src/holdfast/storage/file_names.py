"""The names of the files of a log, all derived from a segment's base offset."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.model import Offset, TopicPartition

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_KINDS = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

DELETED = ".deleted"
"""Unused; removed once no reader can still need it."""
CLEANED = ".cleaned"
"""Being written by the cleaner: discarded unless it becomes a swap file."""
SWAP = ".swap"
"""Complete and flushed: replaces the segments it spans, also after a crash."""

EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
COMPACTED = "compacted"
"""Empty. Its name says that a cleaner removed offsets, here or on a leader."""
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"

OFFSET_DIGITS = 20
_ENDINGS = {
    kind + state: (kind, state)
    for kind in (*SEGMENT_KINDS, SNAPSHOT)
    for state in ("", DELETED, CLEANED, SWAP)
}
"""The endings after the offset. A dict, because a start parses the names of all files."""
_DIRECTORY = re.compile(r"(.+)-(\d+)")
_DELETED_DIRECTORY = re.compile(r".+\.[0-9a-f]{32}-delete")


class LogFileName(NamedTuple):
    """A parsed file name."""

    base_offset: Offset
    kind: str
    state: str
    """Empty for a file in use."""


def file_name(base_offset: int, kind: str, state: str = "") -> str:
    """The name of one of a segment's files."""
    return f"{base_offset:020d}{kind}{state}"


def parse_file_name(name: str) -> LogFileName | None:
    """None for anything that is not a segment's file or a snapshot."""
    ending = _ENDINGS.get(name[OFFSET_DIGITS:])
    if ending is None or not (name[:OFFSET_DIGITS].isascii() and name[:OFFSET_DIGITS].isdigit()):
        return None
    return LogFileName(Offset(int(name[:OFFSET_DIGITS])), *ending)


def partition_of(directory: str) -> TopicPartition | None:
    """The partition whose log a directory holds, or None for any other directory."""
    if directory.endswith(("-delete", "-stray", "-future")):
        return None
    found = _DIRECTORY.fullmatch(directory)
    return TopicPartition(found[1], int(found[2])) if found else None


def is_deleted_directory(directory: str) -> bool:
    """Whether this is the directory of a deleted partition."""
    return _DELETED_DIRECTORY.fullmatch(directory) is not None
