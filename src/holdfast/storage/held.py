"""A slice of a log that is sent bit by bit, while the log goes on living.

A slow reader may take minutes for what `locate` found. Meanwhile its segment can be sealed,
cleaned, deleted by retention, closed, or cut. A held slice has a handle of its own, so everything
but a cut leaves its bytes as they were: what is sent is what the log held when it was located, as
if it had been sent at once.

A cut is different: the file shrinks under the reader, and other records may take the place of the
old ones. A held slice that reaches beyond the cut gives nothing more and raises `SliceCutError`,
also for the part below the cut: the length of the answer has been announced, so the connection
must be closed. The reader asks again and is told what the log holds now. Bytes that the system
took before the cut may still arrive, torn at that point; the CRC of their batch tells.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from holdfast.storage.disk import Holder, SharedFile


class SliceCutError(Exception):
    """The log was truncated under a reader: it can never have all the bytes it was promised."""


class HeldSlice:
    """Whole batches, given piece by piece. Costs a descriptor until it is closed."""

    __slots__ = ("_file", "_holder", "_is_cut", "left", "position")

    position: int
    """Of the next byte in the file."""
    left: int
    """Bytes not given yet."""

    def __init__(self, file: SharedFile, position: int, size: int, holder: Holder) -> None:
        self._file = file
        self._holder = holder
        self._is_cut = False
        self.position = position
        self.left = size
        holder.readers.append(self)

    def cut_at(self, position: int) -> None:
        """The file has been cut there."""
        if position < self.position + self.left:
            self._is_cut = True

    def fileno(self) -> int:
        """For `loop.sendfile` and the like, with `position` and `left`; -1 on a simulated disk.

        Who sends past this object must call `check` before every piece and `passed` after it, and
        take a short transfer for a cut.
        """
        self.check()
        return self._file.descriptor()

    def check(self) -> None:
        """SliceCutError if the bytes that are left are gone."""
        if self._is_cut:
            raise SliceCutError(f"cut at or before byte {self.position + self.left}")

    def passed(self, size: int) -> None:
        """So many bytes have been sent. None, with bytes left, means the file ends too early."""
        assert 0 <= size <= self.left
        if size == 0 and self.left:
            self._is_cut = True
            self.check()
        self.position += size
        self.left -= size

    def read(self, most: int) -> bytes:
        """The next bytes, at most so many; empty at the end."""
        self.check()
        if not self.left:
            return b""
        data = self._file.read(self.position, min(most, self.left))
        self.passed(len(data))
        return data

    def send(self, socket: int, most: int = 1 << 20) -> int:
        """Have the system copy the next bytes into a socket; how many, 0 at the end.

        `socket` is the descriptor of a non-blocking socket without TLS; BlockingIOError says that
        it is full. OSError is the disk's or the connection's.
        """
        self.check()
        if not self.left:
            return 0
        size = self._file.send(socket, self.position, min(most, self.left))
        self.passed(size)
        return size

    def close(self) -> None:
        """Give the handle back. May be called twice."""
        if self in self._holder.readers:
            self._holder.readers.remove(self)
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
