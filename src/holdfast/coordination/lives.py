"""Who lives: each session holds an OS lock on a file of its own, and beats in it.

The kernel drops the lock when the process dies, however it dies; whoever finds the lock free knows.
A process that is stopped or hangs keeps its lock but beats no more. Beats are counted, not dated,
and silence is added up only while the observer itself was looking: neither a clock that jumps nor
an observer that was stopped itself can make a living session look dead.

The locks are flock locks: they belong to the open file, so several stores in one process do not
disturb each other, and closing another descriptor of the file drops nothing.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

LONGEST_LOOK_S = 0.2
"""A longer pause between two looks of an observer is its own fault and counts as this much."""


class Life:
    """Our own lock, held from construction on."""

    def __init__(self, folder: Path, session: int) -> None:
        """The caller holds the store's write lock, so no one else makes this file."""
        folder.mkdir(exist_ok=True)
        self._file = folder / str(session)
        self._file.unlink(missing_ok=True)  # left by one who died before its session was committed
        # Closed on exec: a child must not keep our lock when we die.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self._file, flags, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._beats = 0
        self._has_ended = False
        # A beat after the end would go into whatever file got our descriptor's number next.
        self._ending = threading.Lock()

    def beat(self) -> None:
        """Cheap: a few bytes into the page cache, never flushed. From any thread."""
        with self._ending:
            if not self._has_ended:
                self._beats += 1
                os.pwrite(self._descriptor, self._beats.to_bytes(8, "big"), 0)

    def end(self) -> None:
        """Let go of the lock and remove the file."""
        with self._ending:
            self._has_ended = True
            self._file.unlink(missing_ok=True)
            os.close(self._descriptor)


class Neighbours:
    """The other sessions, and how long each has been silent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._neighbours: dict[int, _Neighbour] = {}
        self._looked = time.monotonic()

    def know(self, sessions: Mapping[int, int]) -> None:
        """Exactly these are there, each with its timeout in milliseconds."""
        for session in [session for session in self._neighbours if session not in sessions]:
            self._neighbours.pop(session).forget()
        for session, timeout_ms in sessions.items():
            if session not in self._neighbours:
                file = self.folder / str(session)
                self._neighbours[session] = _Neighbour(file, timeout_ms)

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

    def remove_file(self, session: int) -> None:
        """Once a session has ended for good."""
        (self.folder / str(session)).unlink(missing_ok=True)


class _Neighbour:
    def __init__(self, file: Path, timeout_ms: int) -> None:
        self._timeout_s = timeout_ms / 1000
        self._silence_s = 0.0
        self._last_beat = b""
        try:
            self._descriptor: int | None = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # nobody can hold a lock on it
            self._descriptor = None

    def is_over(self, elapsed_s: float) -> bool:
        if self._descriptor is None:
            return True
        try:
            # Shared: two observers at once must not take each other for the owner.
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            return True
        beat = os.pread(self._descriptor, 8, 0)
        self._silence_s = 0.0 if beat != self._last_beat else self._silence_s + elapsed_s
        self._last_beat = beat
        return self._silence_s > self._timeout_s

    def forget(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
