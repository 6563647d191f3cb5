"""The folder of one producer or consumer, and the files in it.

An owner takes a folder or file by creating it, so two owners never share one: not in one process,
not in two, not on two machines with one file system. After a fork the child's copy is closed;
otherwise both processes would fill the same rows.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from holdfast.ledger.blocks import Cells, append_block, schema_message
from holdfast.ledger.columns import FORMAT, VERSION, Kind
from holdfast.ledger.errors import LedgerError

SMALLEST_BLOCK: Final = 1 << 8
LARGEST_BLOCK: Final = 1 << 12
"""In rows. A block of 230 KB stays in the processor's cache while it is filled; with blocks of
3.7 MB a producer's thread needed a fifth more time."""
GROWTH: Final = 4
"""Each block is so many times larger than the one before, so a thousand quiet topics stay small."""
FILE_ROWS: Final = 1 << 20
"""Rows per file. Readers split their work by file."""
LONGEST_NAME: Final = 200
"""The longest topic name in a file name. A longer one is shortened; the file has the full name."""

_STARTED: Final = datetime.now(UTC)
_books: weakref.WeakSet[Book] = weakref.WeakSet()


def default_run() -> str:
    """One name for all ledgers of this process."""
    return f"{_STARTED:%Y%m%dT%H%M%SZ}-{os.getpid()}"


class Book:
    """The folder that one producer or consumer writes to. Any thread may use it."""

    def __init__(
        self, folder: Path, run: str | None, owner: str, facts: Mapping[str, Any], role: str
    ) -> None:
        self.run = _checked(run or default_run(), "run")
        self.role = role
        self._lock = threading.Lock()
        self._sequence = 0
        self._process = os.getpid()
        self.tables: list[dict[str, Any]] = []
        """The owners' tables per topic. A forked child empties them."""
        self.folder, self.owner = _taken(folder / self.run, owner)
        self._metadata = {
            "format": FORMAT,
            "version": VERSION,
            "run": self.run,
            role: self.owner,
            **{name: str(value) for name, value in facts.items()},
        }
        about = {
            **self._metadata,
            **facts,
            "role": role,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "started_ms": time.time_ns() // 1_000_000,
        }
        (self.folder / "run.json").write_text(json.dumps(about) + "\n", encoding="utf-8")
        _books.add(self)

    def sequences(self, count: int) -> int:
        """Reserve `count` sequence numbers; returns the first."""
        with self._lock:
            first = self._sequence
            self._sequence += count
        return first

    def create(self, kind: Kind, topic: str, stream: str) -> Path:
        """Create a file without blocks. `stream` names the writer whose rows are in order."""
        content = schema_message(
            kind,
            {**self._metadata, self.role: stream, "kind": kind.name, "topic": topic},
        )
        name = quote(topic, safe="")
        name = f"{name[:LONGEST_NAME]}~" if len(name) > LONGEST_NAME else name
        folder = self.folder / "commits" if kind.name == "committed" else self.folder
        try:
            folder.mkdir(exist_ok=True)
            return _created(folder, name, content)
        except OSError as error:
            raise LedgerError(
                f"cannot create a ledger file in {folder}: {error.strerror or error}",
                hint="name a folder that this process may write to, with room on its disk",
            ) from error

    def check_process(self) -> None:
        """Refuse a forked child, whose rows would overwrite its parent's."""
        if os.getpid() != self._process:
            raise LedgerError(
                f"the ledger {self.folder} belongs to process {self._process}, not to its child",
                hint=f"create the {self.role} after the fork",
            )

    def forget(self) -> None:
        """Drop the state that belongs to the parent; called in the child after a fork."""
        self._lock = threading.Lock()
        for table in self.tables:
            table.clear()


class Writer:
    """Appends the blocks of one topic. One thread at a time may use it."""

    def __init__(self, book: Book, kind: Kind, topic: str, stream: str) -> None:
        self._book = book
        self._kind = kind
        self._topic = topic
        self._stream = stream
        self._path: Path | None = None
        self._in_file = 0
        self._size = SMALLEST_BLOCK // GROWTH

    def next_block(self) -> tuple[int, Cells]:
        """Append a block; returns its number of rows, and their cells by column."""
        self._book.check_process()
        self._size = min(self._size * GROWTH, LARGEST_BLOCK)
        if self._path is None or self._in_file + self._size > FILE_ROWS:
            self._path = self._book.create(self._kind, self._topic, self._stream)
            self._in_file = 0
        self._in_file += self._size
        first = self._book.sequences(self._size)
        return self._size, append_block(self._path, self._kind, self._size, first)


def _created(folder: Path, name: str, content: bytes) -> Path:
    number = 0
    while True:  # One step for each file that exists.
        path = folder / f"{name}-{number:05}.arrows"
        try:
            with path.open("xb") as file:
                file.write(content)
        except FileExistsError:
            number += 1
        else:
            return path


def _taken(folder: Path, owner: str) -> tuple[Path, str]:
    while True:  # Until a name is free; the first one almost always is.
        name = f"{quote(owner, safe='')[:LONGEST_NAME]}-{secrets.token_hex(4)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).mkdir()
        except FileExistsError as error:
            if not (folder / name).is_dir():
                raise _unusable(folder, error) from error
        except OSError as error:
            raise _unusable(folder, error) from error
        else:
            return folder / name, name


def _unusable(folder: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"cannot keep a ledger in {folder}: {error.strerror or error}",
        hint="name a folder that this process may create or write to",
    )


def _checked(name: str, what: str) -> str:
    if not name or name.startswith(".") or quote(name, safe=" +@=,") != name:
        raise LedgerError(
            f"{name!r} cannot be the name of a {what}",
            hint="use letters, digits and . - _ without a leading dot",
        )
    return name


def _after_fork_in_child() -> None:
    for book in list(_books):
        book.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
