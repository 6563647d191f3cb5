"""The errors of a log. The type says what caused the error: the disk, the reader or the writer."""

from __future__ import annotations

import errno

from holdfast.model import Offset


class LogOfflineError(Exception):
    """The disk has failed under this log, and nothing more is written to it.

    After a failed write or flush the file may have less than was appended, and the system may have
    dropped what it could not write. One more successful append would hide that.
    """

    def __init__(self, directory: str, cause: OSError) -> None:
        super().__init__(f"{directory} is offline: {cause}")
        self.directory = directory
        self.cause = cause


class LogClosedError(LogOfflineError):
    """The log was closed or deleted. It reads no files: they may be another log's by now."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory, OSError(errno.EBADF, "closed"))


class OffsetOutOfRangeError(Exception):
    """The log does not have this offset; the error has its bounds."""

    def __init__(self, offset: int, start: Offset, end: Offset) -> None:
        super().__init__(f"offset {offset} is not in [{start}, {end}]")
        self.offset = offset
        self.log_start_offset = start
        self.log_end_offset = end


class AppendRefusedError(Exception):
    """The batches do not follow the log's end, or span more offsets than a segment can."""
