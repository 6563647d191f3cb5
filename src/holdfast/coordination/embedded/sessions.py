"""Session liveness: each session holds an OS lock on its own file, and writes heartbeats into it.

The kernel releases the lock when the process dies, for any reason, and the other processes find it
free. A process that is stopped or hangs keeps its lock but writes no heartbeats. A heartbeat is a
count, not a time, and an observer counts silence only while it runs itself. So neither a clock that
jumps nor an observer that was stopped makes a live session look dead.

Each session also has a wake-up FIFO that only it reads. Other processes write to it after a change.
They hold its other end, so the kernel reports to them when its reader is gone. The FIFO only saves
time: every process also looks at locks and changes periodically.

The locks are flock locks: they belong to the open file. So several stores in one process do not
disturb each other, and closing another descriptor of the file releases nothing. Children inherit no
descriptor from here (PEP 446); otherwise a child would keep the session of its dead parent alive.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

LONGEST_LOOK_S = 0.3
"""A longer pause between two looks means that the observer was stopped; it counts as this much."""


class SessionHeartbeat:
    """The lock, the heartbeat count and the wake-up FIFO of our own session.

    It holds the lock from its construction on.
    """

    def __init__(self, folder: Path, session: int) -> None:
        """The caller holds the store's write lock, so no other process creates these files."""
        folder.mkdir(exist_ok=True)
        self._file, self._fifo_file = _files(folder, session)
        # A process that died before its session was committed may have left them.
        self._remove_files()
        # The lock has the lower descriptor, so the kernel closes it first when we die. Closing the
        # FIFO must not wake the others while the lock still seems held.
        self._lock = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.mkfifo(self._fifo_file, 0o644)
        self.wake_up_fifo = os.open(self._fifo_file, os.O_RDONLY | os.O_NONBLOCK)
        # Without our own writer the FIFO would be ready whenever the last neighbour closes it.
        self._own_fifo_writer = os.open(self._fifo_file, os.O_WRONLY | os.O_NONBLOCK)
        self._count = 0
        self._has_ended = False
        # A heartbeat after the end could go into another file that got the same descriptor number.
        self._ending = threading.Lock()

    def drain_wake_ups(self) -> None:
        """Read all pending wake-ups."""
        with suppress(BlockingIOError):
            os.read(self.wake_up_fifo, 1 << 16)

    def write(self) -> None:
        """Write the next heartbeat. Any thread may call this.

        It is cheap: a few bytes into the page cache, never flushed. A stalled disk can delay it for
        a second or two, so shorter timeouts are for tests only.
        """
        with self._ending:
            if not self._has_ended:
                self._count += 1
                os.pwrite(self._lock, self._count.to_bytes(8, "big"), 0)

    def end(self) -> None:
        """Release the lock and remove the files."""
        with self._ending:
            self._has_ended = True
            self._remove_files()
            for descriptor in (self._lock, self.wake_up_fifo, self._own_fifo_writer):
                os.close(descriptor)

    def _remove_files(self) -> None:
        self._file.unlink(missing_ok=True)
        self._fifo_file.unlink(missing_ok=True)


class Neighbours:
    """The other sessions, and how long each has been silent."""

    def __init__(self, folder: Path, poll: select.poll) -> None:
        self.folder = folder
        self._poll = poll
        self._neighbours: dict[int, _Neighbour] = {}
        self._looked = time.monotonic()

    def set_sessions(self, sessions: Mapping[int, int]) -> None:
        """Observe exactly these sessions, each with its timeout in milliseconds."""
        for session in [session for session in self._neighbours if session not in sessions]:
            neighbour = self._neighbours.pop(session)
            self._unregister(neighbour.wake_up_fifo)
            neighbour.close()
        for session, timeout_ms in sessions.items():
            if session not in self._neighbours:
                neighbour = _Neighbour(self.folder, session, timeout_ms)
                self._neighbours[session] = neighbour
                if neighbour.wake_up_fifo is not None:
                    self._poll.register(neighbour.wake_up_fifo, 0)  # errors are always reported

    def wake_up(self) -> None:
        """Wake every other process: the store has changed."""
        for neighbour in self._neighbours.values():
            neighbour.wake_up()

    def readers_gone(self, descriptors: Sequence[int]) -> None:
        """Stop polling these FIFOs: without a reader they would be ready forever."""
        for descriptor in descriptors:
            self._unregister(descriptor)

    def look(self) -> list[int]:
        """The sessions that are over: lock free, or silent beyond their timeout."""
        now = time.monotonic()
        elapsed_s = min(now - self._looked, LONGEST_LOOK_S)
        self._looked = now
        return [
            session
            for session, neighbour in self._neighbours.items()
            if neighbour.is_over(elapsed_s)
        ]

    def remove_files(self, session: int) -> None:
        """Remove the files of a session that has ended."""
        for file in _files(self.folder, session):
            file.unlink(missing_ok=True)

    def _unregister(self, descriptor: int | None) -> None:
        if descriptor is not None:
            with suppress(KeyError):  # its reader went away before
                self._poll.unregister(descriptor)


class _Neighbour:
    def __init__(self, folder: Path, session: int, timeout_ms: int) -> None:
        file, fifo_file = _files(folder, session)
        self._timeout_s = timeout_ms / 1000
        self._silence_s = 0.0
        self._last_heartbeat = b""
        self._lock = _opened(file, os.O_RDONLY)
        self.wake_up_fifo = _opened(fifo_file, os.O_WRONLY | os.O_NONBLOCK)

    def is_over(self, elapsed_s: float) -> bool:
        if self._lock is None:  # no process can hold a lock on a file that does not exist
            return True
        try:
            # Shared, so that two observers do not take each other for the owner.
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            return True
        heartbeat = os.pread(self._lock, 8, 0)
        self._silence_s = 0.0 if heartbeat != self._last_heartbeat else self._silence_s + elapsed_s
        self._last_heartbeat = heartbeat
        return self._silence_s > self._timeout_s

    def wake_up(self) -> None:
        if self.wake_up_fifo is not None:
            # Full: enough to wake its reader. Broken: the reader is dead; a look will find that.
            with suppress(BlockingIOError, BrokenPipeError):
                os.write(self.wake_up_fifo, b"\0")

    def close(self) -> None:
        for descriptor in (self._lock, self.wake_up_fifo):
            if descriptor is not None:
                os.close(descriptor)


def _files(folder: Path, session: int) -> tuple[Path, Path]:
    """The lock file and the wake-up FIFO of a session."""
    return folder / str(session), folder / f"{session}.bell"


def _opened(file: Path, flags: int) -> int | None:
    """None: the file does not exist, or is a FIFO without a reader."""
    try:
        return os.open(file, flags)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENXIO):
            return None
        raise
