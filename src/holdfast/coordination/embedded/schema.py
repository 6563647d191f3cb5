"""The file of the embedded store: its creation, and the checks before it is used.

A new file is complete before it gets its name.

Open the file only through SQLite: closing any other descriptor of it would release all of SQLite's
locks in this process (POSIX locks belong to the process, not to the descriptor).
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from holdfast.coordination.operations import StoreAwayError, StoreUnusableError

APPLICATION_ID = 0x486F4673
"""Marks the file as Holdfast's in its header: "HoFs"."""
FORMAT = 1

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE nodes (
    path TEXT PRIMARY KEY, parent TEXT, data BLOB NOT NULL, version INTEGER NOT NULL,
    created INTEGER NOT NULL, modified INTEGER NOT NULL, owner INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX nodes_by_parent ON nodes (parent);
CREATE INDEX nodes_by_owner ON nodes (owner) WHERE owner != 0;
CREATE TABLE sessions (id INTEGER PRIMARY KEY, timeout_ms INTEGER NOT NULL);
CREATE TABLE counter (value INTEGER NOT NULL);
CREATE TABLE changes (
    number INTEGER NOT NULL, path TEXT NOT NULL, PRIMARY KEY (number, path)
) WITHOUT ROWID;
INSERT INTO counter VALUES (0);
INSERT INTO nodes VALUES ('/', NULL, x'', 0, 0, 0, 0);
"""


def connect(file: Path, busy_timeout_ms: int) -> sqlite3.Connection:
    """Open the store's file; create it if it is missing."""
    try:
        if not file.exists():
            _create(file)
        connection = sqlite3.connect(
            f"{file.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=busy_timeout_ms / 1000,
            isolation_level=None,
        )
    except (OSError, sqlite3.OperationalError) as error:
        raise cannot_open(file, str(error)) from error
    try:
        _inspect(file, connection)
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        connection.close()
        raise _translated(file, error) from error
    except StoreUnusableError:
        connection.close()
        raise
    return connection


def _create(file: Path) -> None:
    """Several processes may do this at the same time: one of them gives its file the name."""
    draft = file.with_name(f"{file.name}.{os.getpid()}-{os.urandom(4).hex()}.new")
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.executescript(SCHEMA)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        try:
            file.hardlink_to(draft)
        except FileExistsError:
            return
        _flush_folder(file.parent)
    finally:
        draft.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _inspect(file: Path, connection: sqlite3.Connection) -> None:
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [written] = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise _unusable(file, "is not a Holdfast store", "name another file, or move it away")
    if written != FORMAT:
        what = f"has format {written}, and this Holdfast reads format {FORMAT}"
        raise _unusable(file, what, "use the Holdfast that wrote it")
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise _damaged(file, verdict)


def _translated(file: Path, error: sqlite3.Error) -> StoreUnusableError | StoreAwayError:
    if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
        what = "is not a Holdfast store, nor any SQLite file"
        return _unusable(file, what, "name another file, or move it away")
    if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CORRUPT:
        return _damaged(file, str(error))
    return StoreAwayError(f"the store {file} cannot be reached: {error}")


def _damaged(file: Path, detail: str) -> StoreUnusableError:
    advice = "restore a copy, or move it away with its -wal file to start with an empty store"
    one_line = " ".join(detail.split())
    return _unusable(file, f"is damaged ({one_line})", advice)


def cannot_open(file: Path, detail: str) -> StoreUnusableError:
    """The file cannot be opened or created."""
    advice = "the folder must exist and be writable, and so must the file"
    return _unusable(file, f"cannot be opened ({detail})", advice)


def _unusable(file: Path, what: str, advice: str) -> StoreUnusableError:
    return StoreUnusableError(f"the store {file} {what}; {advice}")
