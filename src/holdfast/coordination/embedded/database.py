"""The embedded store's blocking half: everything that touches the SQLite file, on one thread.

Each write begins by looking for our own session in the same SQL transaction: one that was ended by
others, while we were stopped say, can write nothing any more.
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
from holdfast.coordination.embedded.sessions import Life, Neighbours
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

Told = SessionState | list[str] | None
"""A new state of our session, or the paths that changed; None: any path may have."""


class Database:
    """Not thread-safe: every call comes from one thread."""

    def __init__(
        self,
        file: Path,
        tell: Callable[[Told], None],
        *,
        session_timeout_ms: int,
        busy_timeout_ms: int,
    ) -> None:
        self._file = file
        self._tell = tell
        self._session_timeout_ms = session_timeout_ms
        self._busy_timeout_ms = busy_timeout_ms
        self._neighbours: Neighbours
        self._connection: sqlite3.Connection
        self._is_open = False
        self._is_away = False
        self._try_again = 0.0
        self.is_cut = False
        """The file is out of reach on purpose; set from any thread."""
        self._seen_change = 0
        self._seen_data_version = 0
        self.session = 0
        self.life: Life | None = None
        """Ours while our session lives; beaten by another thread."""

    def open(self, poll: select.poll) -> None:
        """Open the file and a session; sessions left by dead processes are ended first.

        Descriptors that may call for a tick are registered with `poll`.
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
                self._neighbours.know(self._tree.sessions())
            self._end_dead_sessions()
            self.open_session()
        except StoreAwayError:
            self._neighbours.know({})
            self._connection.close()
            raise
        self._is_open = True

    def open_session(self) -> None:
        """A new session. The lock is held before anybody can know of the session."""
        life = None
        try:
            with self._writing():
                session = self._tree.new_session(self._session_timeout_ms)
                life = Life(self._neighbours.folder, session)
        except BaseException:
            if life is not None:
                life.end()
            raise
        self.session, self.life = session, life
        self._poll.register(life.bell, select.POLLIN)
        self._tell(SessionState.CONNECTED)
        self._look_if_possible()

    def close(self) -> None:
        """End our session and close the file. If it cannot be written, the free lock will tell."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            if self.life is not None:
                self._end_session()
        except StoreAwayError:
            pass
        finally:
            self._end_life()
            self._neighbours.know({})
            self._connection.close()

    def expire(self) -> None:
        """End our own session as another process would, and find out."""
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
        """All in one SQL transaction, so one flush; each under a savepoint, so independent."""
        with self._writing():
            self._demand_session()
            outcomes = [self._commit(transaction) for transaction in transactions]
        self._look_if_possible()
        return outcomes

    def tick(self, rung: Sequence[int]) -> None:
        """Look for changes by others, and for others that are dead."""
        if not self._is_open:
            return
        if self.life is not None and self.life.bell in rung:
            self.life.hear_rings()
        own = None if self.life is None else self.life.bell
        self._neighbours.bells_broken([bell for bell in rung if bell != own])
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
        except StoreAwayError:  # told already; try again
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
        if self.life is None or not self._tree.has_session(self.session):
            self._lose_session()
            raise SessionLostError(f"session {self.session} of the store {self._file} has ended")

    def _lose_session(self) -> None:
        if self._end_life():
            self._tell(SessionState.LOST)

    def _end_life(self) -> bool:
        """Whether it had not ended before."""
        if self.life is None:
            return False
        self._poll.unregister(self.life.bell)
        self.life.end()
        self.life = None
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
        """After something of ours was done: that it was is true even if we cannot look now."""
        with suppress(StoreAwayError):  # told already; the tick will look
            self._look()

    def _look(self) -> None:
        """See what has changed since we last looked, and tell."""
        with self._reading():
            self._seen_data_version = self._data_version()
            changed = self._tree.changed_since(self._seen_change)
            self._seen_change = self._tree.last_change()
            sessions = self._tree.sessions()
            if changed != []:
                self._tell(changed)
            if self.session not in sessions:
                self._lose_session()
            self._neighbours.know({s: ms for s, ms in sessions.items() if s != self.session})

    def _data_version(self) -> int:
        """Differs from before if and only if another connection has committed."""
        with self._errors(outcome_unknown=False):
            self._demand_reach()
            [version] = self._connection.execute("PRAGMA data_version").fetchone()
        assert isinstance(version, int)
        return version

    def _demand_reach(self) -> None:
        if self.is_cut:
            raise OSError("cut off on purpose")

    def _demand_file(self) -> None:
        """Others may use a file that has replaced ours: nothing we write would be agreed."""
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
        """One durable SQL transaction. Another writer is waited for; not long if it was in vain."""
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
            self._neighbours.ring()
        if self._is_away:
            self._is_away = False
            if self.life is not None:
                self._tell(SessionState.CONNECTED)

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
                if self.life is not None:
                    self._tell(SessionState.AWAY)
            message = f"the store {self._file} cannot be reached: {error}"
            raise StoreAwayError(message, outcome_unknown=outcome_unknown) from error
