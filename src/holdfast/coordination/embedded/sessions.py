"""Who lives: each session holds an OS lock on a file of its own, and beats in it.

The kernel drops the lock when the process dies, however it dies; whoever finds the lock free knows.
A process that is stopped or hangs keeps its lock but beats no more. Beats are counted, not dated,
and silence is added up only while the observer itself was looking: neither a clock that jumps nor
an observer that was stopped itself can make a living session look dead.

Each session also has a bell, a FIFO that only it reads. Others ring it after a change; and as they
hold its other end, the kernel tells them when its reader is gone. Bells save waiting, nothing
depends on them: everybody looks at locks and changes now and then without having been rung.

The locks are flock locks: they belong to the open file, so several stores in one process do not
disturb each other, and closing another descriptor of the file drops nothing. No descriptor here is
inherited by children (PEP 446), or a child would keep alive what its dead parent held.
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
"""A longer pause between two looks of an observer is its own fault and counts as this much."""


class Life:
    """Our own lock, held from construction on, and our own bell."""

    def __init__(self, folder: Path, session: int) -> None:
        """The caller holds the store's write lock, so no one else makes these files."""
        folder.mkdir(exist_ok=True)
        self._file, self._bell_file = _files(folder, session)
        # Left, if at all, by one who died before its session was committed.
        self._remove_files()
        # The lock has the lower descriptor and so goes first when we die: the bell's end must not
        # call the others while the lock still seems held.
        self._lock = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.mkfifo(self._bell_file, 0o644)
        self.bell = os.open(self._bell_file, os.O_RDONLY | os.O_NONBLOCK)
        # Without a writer of our own the bell would seem to ring whenever the last neighbour left.
        self._own_ringer = os.open(self._bell_file, os.O_WRONLY | os.O_NONBLOCK)
        self._beats = 0
        self._has_ended = False
        # A beat after the end would go into whatever file got our descriptor's number next.
        self._ending = threading.Lock()

    def hear_rings(self) -> None:
        """Silence the bell, however often it was rung."""
        with suppress(BlockingIOError):
            os.read(self.bell, 1 << 16)

    def beat(self) -> None:
        """Cheap: a few bytes into the page cache, never flushed. From any thread.

        A stalled disk can hold it up for a second or two: shorter timeouts are for tests only.
        """
        with self._ending:
            if not self._has_ended:
                self._beats += 1
                os.pwrite(self._lock, self._beats.to_bytes(8, "big"), 0)

    def end(self) -> None:
        """Let go of the lock and remove the files."""
        with self._ending:
            self._has_ended = True
            self._remove_files()
            for descriptor in (self._lock, self.bell, self._own_ringer):
                os.close(descriptor)

    def _remove_files(self) -> None:
        self._file.unlink(missing_ok=True)
        self._bell_file.unlink(missing_ok=True)


class Neighbours:
    """The other sessions, and how long each has been silent."""

    def __init__(self, folder: Path, poll: select.poll) -> None:
        self.folder = folder
        self._poll = poll
        self._neighbours: dict[int, _Neighbour] = {}
        self._looked = time.monotonic()

    def know(self, sessions: Mapping[int, int]) -> None:
        """Exactly these are there, each with its timeout in milliseconds."""
        for session in [session for session in self._neighbours if session not in sessions]:
            neighbour = self._neighbours.pop(session)
            self._unregister(neighbour.bell)
            neighbour.forget()
        for session, timeout_ms in sessions.items():
            if session not in self._neighbours:
                neighbour = _Neighbour(self.folder, session, timeout_ms)
                self._neighbours[session] = neighbour
                if neighbour.bell is not None:
                    self._poll.register(neighbour.bell, 0)  # errors are always reported

    def ring(self) -> None:
        """There is news in the store."""
        for neighbour in self._neighbours.values():
            neighbour.ring()

    def bells_broken(self, descriptors: Sequence[int]) -> None:
        """Whose bell has no reader any more is looked at; the bell would say so for ever."""
        for descriptor in descriptors:
            self._unregister(descriptor)

    def look(self) -> list[int]:
        """The sessions that are over: lock free, or silent for longer than their timeout."""
        now = time.monotonic()
        elapsed_s = min(now - self._looked, LONGEST_LOOK_S)
        self._looked = now
        return [
            session
            for session, neighbour in self._neighbours.items()
            if neighbour.is_over(elapsed_s)
        ]

    def remove_files(self, session: int) -> None:
        """Once a session has ended for good."""
        for file in _files(self.folder, session):
            file.unlink(missing_ok=True)

    def _unregister(self, descriptor: int | None) -> None:
        if descriptor is not None:
            with suppress(KeyError):  # its bell broke before
                self._poll.unregister(descriptor)


class _Neighbour:
    def __init__(self, folder: Path, session: int, timeout_ms: int) -> None:
        file, bell_file = _files(folder, session)
        self._timeout_s = timeout_ms / 1000
        self._silence_s = 0.0
        self._last_beat = b""
        self._lock = _opened(file, os.O_RDONLY)
        self.bell = _opened(bell_file, os.O_WRONLY | os.O_NONBLOCK)

    def is_over(self, elapsed_s: float) -> bool:
        if self._lock is None:  # nobody can hold a lock on a file that is not there
            return True
        try:
            # Shared: two observers at once must not take each other for the owner.
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            return True
        beat = os.pread(self._lock, 8, 0)
        self._silence_s = 0.0 if beat != self._last_beat else self._silence_s + elapsed_s
        self._last_beat = beat
        return self._silence_s > self._timeout_s

    def ring(self) -> None:
        if self.bell is not None:
            # Full: it has enough to wake it. Broken: it is dead, and that will be noticed.
            with suppress(BlockingIOError, BrokenPipeError):
                os.write(self.bell, b"\0")

    def forget(self) -> None:
        for descriptor in (self._lock, self.bell):
            if descriptor is not None:
                os.close(descriptor)


def _files(folder: Path, session: int) -> tuple[Path, Path]:
    """A session's lock and its bell."""
    return folder / str(session), folder / f"{session}.bell"


def _opened(file: Path, flags: int) -> int | None:
    """None: it is not there, or is a bell that nobody reads."""
    try:
        return os.open(file, flags)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENXIO):
            return None
        raise
