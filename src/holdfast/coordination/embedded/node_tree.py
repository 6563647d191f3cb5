"""The nodes and sessions inside the SQLite file.

Every method runs inside the SQL transaction that its caller has begun. Each change of a node also
writes the node's path into the table `changes`, from which every process takes what to notify its
watches of.
"""

from __future__ import annotations

import sqlite3

from holdfast.coordination.operations import (
    LASTING,
    Check,
    ConflictError,
    Create,
    Delete,
    Node,
    Operation,
    Reason,
    Set,
    Transaction,
    parent_of,
)

KEPT_CHANGES = 10_000
"""A process that is further behind than this treats every node as changed."""

SELECT_NODE = "SELECT data, version, created, modified, owner FROM nodes WHERE path = ?"


class Tree:
    """Reads and writes nodes and sessions through one SQLite connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def node(self, path: str) -> Node | None:
        row = self._connection.execute(SELECT_NODE, (path,)).fetchone()
        return None if row is None else Node(*row)

    def children(self, path: str) -> list[str]:
        rows = self._connection.execute("SELECT path FROM nodes WHERE parent = ?", (path,))
        return sorted(child.rpartition("/")[2] for (child,) in rows)

    def last_change(self) -> int:
        [value] = self._connection.execute("SELECT value FROM counter").fetchone()
        assert isinstance(value, int)
        return value

    def touch(self) -> None:
        """Write without a change, to see whether a write succeeds."""
        self._connection.execute("UPDATE counter SET value = value")

    def changed_since(self, change: int) -> list[str] | None:
        """The paths changed after that change number; None: more than we keep."""
        if self.last_change() - change > KEPT_CHANGES:
            return None
        found = "SELECT DISTINCT path FROM changes WHERE number > ? ORDER BY path"
        return [path for (path,) in self._connection.execute(found, (change,))]

    def sessions(self) -> dict[int, int]:
        """The timeout in milliseconds of every session, by id."""
        return dict(self._connection.execute("SELECT id, timeout_ms FROM sessions ORDER BY id"))

    def has_session(self, session: int) -> bool:
        found = self._connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session,))
        return found.fetchone() is not None

    def new_session(self, timeout_ms: int) -> int:
        session = self._next_change()
        self._connection.execute("INSERT INTO sessions VALUES (?, ?)", (session, timeout_ms))
        return session

    def end_session(self, session: int) -> None:
        """Remove a session and its nodes, if it has not ended already."""
        if not self.has_session(session):
            return
        change = self._next_change()
        owned = self._connection.execute("SELECT path FROM nodes WHERE owner = ?", (session,))
        for (path,) in owned.fetchall():
            self._remove(path, change)
        self._connection.execute("DELETE FROM sessions WHERE id = ?", (session,))

    def apply(self, transaction: Transaction, session: int) -> tuple[Node, ...]:
        """Raises ConflictError; the caller then undoes the operations before it."""
        change = self._next_change()
        written = [self._apply(operation, change, session) for operation in transaction]
        return tuple(node for node in written if node is not None)

    def _apply(self, operation: Operation, change: int, session: int) -> Node | None:
        if isinstance(operation, Create):
            return self._create(operation, change, session)
        node = self.node(operation.path)
        if node is None:
            raise ConflictError(operation, Reason.NO_NODE)
        if operation.version not in (None, node.version):
            raise ConflictError(operation, Reason.VERSION)
        match operation:
            case Set():
                return self._set(operation, node, change)
            case Delete():
                if self.children(operation.path):
                    raise ConflictError(operation, Reason.NOT_EMPTY)
                self._remove(operation.path, change)
            case Check():
                pass
        return None

    def _create(self, create: Create, change: int, session: int) -> Node:
        parent = self.node(parent_of(create.path))
        if parent is None:
            raise ConflictError(create, Reason.NO_NODE)
        if parent.is_ephemeral:
            raise ConflictError(create, Reason.EPHEMERAL_PARENT)
        if self.node(create.path) is not None:
            raise ConflictError(create, Reason.EXISTS)
        owner = session if create.ephemeral else LASTING
        self._connection.execute(
            "INSERT INTO nodes VALUES (?, ?, ?, 0, ?, ?, ?)",
            (create.path, parent_of(create.path), create.data, change, change, owner),
        )
        self._note(change, create.path, parent_of(create.path))
        return Node(create.data, 0, change, change, owner)

    def _set(self, operation: Set, node: Node, change: int) -> Node:
        version = node.version + 1
        self._connection.execute(
            "UPDATE nodes SET data = ?, version = ?, modified = ? WHERE path = ?",
            (operation.data, version, change, operation.path),
        )
        self._note(change, operation.path)
        return Node(operation.data, version, node.created, change, node.owner)

    def _remove(self, path: str, change: int) -> None:
        self._connection.execute("DELETE FROM nodes WHERE path = ?", (path,))
        self._note(change, path, parent_of(path))

    def _note(self, change: int, *paths: str) -> None:
        rows = [(change, path) for path in paths]
        self._connection.executemany("INSERT OR IGNORE INTO changes VALUES (?, ?)", rows)

    def _next_change(self) -> int:
        [change] = self._connection.execute(
            "UPDATE counter SET value = value + 1 RETURNING value"
        ).fetchone()
        assert isinstance(change, int)
        if change % 1000 == 0:
            oldest = change - KEPT_CHANGES
            self._connection.execute("DELETE FROM changes WHERE number <= ?", (oldest,))
        return change
