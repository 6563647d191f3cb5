"""The blocking half of the embedded store: all access to the SQLite file, on one thread.

Each write first checks, in the same SQL transaction, that our session still exists. Another process
may have ended it while ours was stopped; such a session cannot write any more.
"""

from __future__ import annotations

import select
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.coordination.embedded.node_tree import Tree
from holdfast.coordination.embedded.schema import connect
from holdfast.coordination.embedded.sessions import Neighbours, SessionHeartbeat
from holdfast.coordination.operations import (
    ConflictError,
    Node,
    Outcome,
    SessionLostError,
    StoreAwayError,
    Transaction,
)
from holdfast.coordination.store import SessionState

TRY_AGAIN_S = 0.25

Notification = SessionState | list[str] | None
"""A new state of our session, or the paths that changed. None: any path may have changed."""


class Database:
    """A session with the SQLite file. Not thread-safe: call it from one thread only."""

    def __init__(
        self,
        file: Path,
        notify: Callable[[Notification], None],
        *,
        session_timeout_ms: int,
        busy_timeout_ms: int,
    ) -> None:
        self._file = file
        self._notify = notify
        self._session_timeout_ms = session_timeout_ms
        self._busy_timeout_ms = busy_timeout_ms
        self._neighbours: Neighbours
        self._connection: sqlite3.Connection
        self._is_open = False
        self._is_away = False
        self._try_again = 0.0
        self.is_disconnected = False
        """An injected fault makes the file unreachable. Any thread may set this."""
        self._seen_change = 0
        self._seen_data_version = 0
        self.session = 0
        self.heartbeat: SessionHeartbeat | None = None
        """Set while our session exists. Another thread writes the heartbeats."""

    def open(self, poll: select.poll) -> None:
        """Open the file, end the sessions of dead processes, then open a session.

        Register with `poll` the descriptors that cause a tick when they are ready.
        """
        self._poll = poll
        self._is_away = False
        self._neighbours = Neighbours(self._file.with_name(f"{self._file.name}-sessions"), poll)
        self._connection = connect(self._file, self._busy_timeout_ms)
        self._tree = Tree(self._connection)
        self._inode = self._file.stat().st_ino
        try:
            with self._reading():
                self._seen_change = self._tree.last_change()
                self._neighbours.set_sessions(self._tree.sessions())
            self._end_dead_sessions()
            self.open_session()
        except StoreAwayError:
            self._neighbours.set_sessions({})
            self._connection.close()
            raise
        self._is_open = True

    def open_session(self) -> None:
        """Open a session. We hold its lock before other processes can see it."""
        heartbeat = None
        try:
            with self._writing():
                session = self._tree.new_session(self._session_timeout_ms)
                heartbeat = SessionHeartbeat(self._neighbours.folder, session)
        except BaseException:
            if heartbeat is not None:
                heartbeat.end()
            raise
        self.session, self.heartbeat = session, heartbeat
        self._poll.register(heartbeat.wake_up_fifo, select.POLLIN)
        self._notify(SessionState.CONNECTED)
        self._look_if_possible()

    def close(self) -> None:
        """End our session and close the file.

        If we cannot write, the other processes see the released lock and end the session.
        """
        if not self._is_open:
            return
        self._is_open = False
        try:
            if self.heartbeat is not None:
                self._end_session()
        except StoreAwayError:
            pass
        finally:
            self._stop_heartbeat()
            self._neighbours.set_sessions({})
            self._connection.close()

    def expire(self) -> None:
        """End our own session as another process would, then notice that it has ended."""
        self._end_session()
        self._look_if_possible()

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        with self._reading():
            self._demand_session()
            return [self._tree.node(path) for path in paths]

    def children(self, path: str) -> list[str]:
        with self._reading():
            self._demand_session()
            return self._tree.children(path)

    def commit_all(self, transactions: Sequence[Transaction]) -> list[Outcome]:
        """Commit all in one SQL transaction, so with one flush, each under its own savepoint."""
        with self._writing():
            self._demand_session()
            outcomes = [self._commit(transaction) for transaction in transactions]
        self._look_if_possible()
        return outcomes

    def tick(self, ready: Sequence[int]) -> None:
        """Look for changes by other processes, and for processes that died."""
        if not self._is_open:
            return
        if self.heartbeat is not None and self.heartbeat.wake_up_fifo in ready:
            self.heartbeat.drain_wake_ups()
        own = None if self.heartbeat is None else self.heartbeat.wake_up_fifo
        self._neighbours.readers_gone([fifo for fifo in ready if fifo != own])
        if self._is_away and time.monotonic() < self._try_again:
            return
        try:
            if self._is_away:
                with self._writing():
                    self._tree.touch()
                self._look()
            elif self._data_version() != self._seen_data_version:
                self._look()
            with self._errors(outcome_unknown=False):
                self._demand_file()
            self._end_dead_sessions()
        except StoreAwayError:  # already notified; try again
            self._try_again = time.monotonic() + TRY_AGAIN_S

    def _end_session(self) -> None:
        with self._writing():
            self._tree.end_session(self.session)

    def _commit(self, transaction: Transaction) -> Outcome:
        if not transaction:
            return ()
        self._connection.execute("SAVEPOINT one")
        try:
            outcome: Outcome = self._tree.apply(transaction, self.session)
        except ConflictError as conflict:
            self._connection.execute("ROLLBACK TO one")
            outcome = conflict
        self._connection.execute("RELEASE one")
        return outcome

    def _demand_session(self) -> None:
        if self.heartbeat is None or not self._tree.has_session(self.session):
            self._lose_session()
            raise SessionLostError(f"session {self.session} of the store {self._file} has ended")

    def _lose_session(self) -> None:
        if self._stop_heartbeat():
            self._notify(SessionState.LOST)

    def _stop_heartbeat(self) -> bool:
        """False if it had stopped before."""
        if self.heartbeat is None:
            return False
        self._poll.unregister(self.heartbeat.wake_up_fifo)
        self.heartbeat.end()
        self.heartbeat = None
        return True

    def _end_dead_sessions(self) -> None:
        dead = self._neighbours.look()
        if not dead:
            return
        with self._writing():
            for session in dead:
                self._tree.end_session(session)
        for session in dead:
            self._neighbours.remove_files(session)
        self._look()

    def _look_if_possible(self) -> None:
        """Look after a write of our own, which stands even if we cannot look now."""
        with suppress(StoreAwayError):  # already notified; the tick will look
            self._look()

    def _look(self) -> None:
        """Find what has changed since the last look, and notify."""
        with self._reading():
            self._seen_data_version = self._data_version()
            changed = self._tree.changed_since(self._seen_change)
            self._seen_change = self._tree.last_change()
            sessions = self._tree.sessions()
            if changed != []:
                self._notify(changed)
            if self.session not in sessions:
                self._lose_session()
            self._neighbours.set_sessions(
                {s: ms for s, ms in sessions.items() if s != self.session}
            )

    def _data_version(self) -> int:
        """Differs from before if and only if another connection has committed."""
        with self._errors(outcome_unknown=False):
            self._demand_reach()
            [version] = self._connection.execute("PRAGMA data_version").fetchone()
        assert isinstance(version, int)
        return version

    def _demand_reach(self) -> None:
        if self.is_disconnected:
            raise OSError("disconnected by an injected fault")

    def _demand_file(self) -> None:
        """Refuse to write if another file has replaced ours: other brokers would not see it."""
        self._demand_reach()
        if self._file.stat().st_ino != self._inode:
            raise OSError("another file has taken its place; restart to use that one")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._errors(outcome_unknown=False):
            self._demand_reach()
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._roll_back()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One durable SQL transaction. Waits for another writer, unless the store is away."""
        written = self._connection.total_changes
        patience_ms = 0 if self._is_away else self._busy_timeout_ms
        with self._errors(outcome_unknown=False):
            self._demand_file()
            self._connection.execute(f"PRAGMA busy_timeout = {patience_ms}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._roll_back()
                raise
        with self._errors(outcome_unknown=True):
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error:
                self._roll_back()
                raise
        if self._connection.total_changes != written:
            self._neighbours.wake_up()
        if self._is_away:
            self._is_away = False
            if self.heartbeat is not None:
                self._notify(SessionState.CONNECTED)

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # SQLite has rolled back by itself after some errors
            self._connection.execute("ROLLBACK")

    @contextmanager
    def _errors(self, *, outcome_unknown: bool) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            if not self._is_away:
                self._is_away = True
                if self.heartbeat is not None:
                    self._notify(SessionState.AWAY)
            message = f"the store {self._file} cannot be reached: {error}"
            raise StoreAwayError(message, outcome_unknown=outcome_unknown) from error
