"""The coordination store as brokers use it: versioned nodes, compare-and-set, sessions, watches.

All stores (embedded, ZooKeeper, simulated) guarantee:

- A transaction is atomic, and durable before its answer arrives. Change numbers strictly rise.
- A session ends by `close`, by the death of its process, or by silence beyond its timeout. Its
  ephemeral nodes then vanish, and its holder can change nothing more.
- A watch reports changes of a node's data, existence and children, and misses none: a caller that
  reads after `watch`, and again in or after each callback, ends up with the newest content. One
  callback may stand for several changes. A callback may also come without a change, for example
  after the store was away.
- Callbacks run on the event loop. Nothing here blocks it.

A store belongs to the event loop in which `open` was awaited.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Iterable, Sequence

from holdfast.coordination.operations import (
    ConflictError,
    Create,
    Node,
    Operation,
    Outcome,
    Reason,
    StoreError,
    Transaction,
    ancestry,
    is_path,
)


class SessionState(enum.Enum):
    """The state of our session, as far as this client can see it."""

    CONNECTED = "connected"
    AWAY = "away"
    """The store cannot be reached. The session may still exist, or may have ended."""
    LOST = "lost"
    """No session: it has ended, or was never opened."""


WatchCallback = Callable[[str], None]
"""Receives the watched path."""
SessionCallback = Callable[[SessionState], None]


class Watch:
    """A registered callback, until it is cancelled."""

    def __init__(self, cancel: Callable[[Watch], None]) -> None:
        self._cancel = cancel

    def cancel(self) -> None:
        """Stop the callbacks; cancelling twice is harmless."""
        self._cancel(self)


class Store(abc.ABC):
    """One session with the coordination store; the module docstring lists the guarantees."""

    def __init__(self) -> None:
        self._state = SessionState.LOST
        self._watches: dict[str, dict[Watch, WatchCallback]] = {}
        self._session_watches: dict[Watch, SessionCallback] = {}

    @property
    def state(self) -> SessionState:
        return self._state

    @property
    @abc.abstractmethod
    def session_id(self) -> int:
        """The id of the last session opened, lost or not: the `owner` of its ephemeral nodes."""

    @abc.abstractmethod
    async def open(self) -> None:
        """Open a session. StoreUnusableError: see its message. StoreAwayError: try again."""

    @abc.abstractmethod
    async def renew(self) -> None:
        """Open a new session in place of a lost one; watches stay. No effect if it is not lost."""

    @abc.abstractmethod
    async def close(self) -> None:
        """End the session: its nodes vanish immediately if the store can be reached."""

    @abc.abstractmethod
    async def expire(self) -> None:
        """Inject a fault: end our session as if its timeout had passed."""

    @abc.abstractmethod
    def disconnect(self) -> None:
        """Inject a fault: nothing passes between us and the store from now on.

        The session continues until its timeout.
        """

    @abc.abstractmethod
    def reconnect(self) -> None:
        """End that fault. The state of the session then follows from what the store reports."""

    @abc.abstractmethod
    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """The nodes at these paths, None where there is none, in one request."""

    @abc.abstractmethod
    async def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted; empty if there is no such node."""

    @abc.abstractmethod
    async def commit_all(self, transactions: Sequence[Transaction]) -> list[Outcome]:
        """Commit many independent transactions, in order, for little more than the cost of one.

        A failed one does not affect the others, so errors are returned, not raised.
        """

    async def get_newest(self, paths: Sequence[str]) -> list[Node | None]:
        """As `get_many`, but never older than what any session had committed before the call.

        A server of an ensemble may lag behind the others, and `get_many` reads from only one.
        """
        return await self.get_many(paths)

    async def get(self, path: str) -> Node | None:
        """The node at a path, or None."""
        [node] = await self.get_many([path])
        return node

    async def commit(self, *operations: Operation) -> tuple[Node, ...]:
        """Commit one transaction. Returns the nodes it created or set, in order.

        Raises ConflictError (nothing was changed), StoreAwayError or SessionLostError.
        """
        [outcome] = await self.commit_all([operations])
        if isinstance(outcome, StoreError):
            raise outcome
        return outcome

    async def ensure_path(self, path: str) -> None:
        """Create a node and its ancestors, empty, where they are missing."""
        wanted = ancestry(path)
        known = await self.get_many(wanted)
        missing = [p for p, node in zip(wanted, known, strict=True) if node is None]
        for outcome in await self.commit_all([[Create(p)] for p in missing]):
            match outcome:
                case ConflictError(reason=Reason.EXISTS) | tuple():
                    pass  # another session created it meanwhile
                case StoreError():
                    raise outcome

    def watch(self, path: str, callback: WatchCallback) -> Watch:
        """Call back after changes of this node or its children's names, even if it does not exist.

        To miss no change, watch first, then read.
        """
        assert is_path(path), path
        watch = Watch(lambda this: self._forget(path, this))
        self._watches.setdefault(path, {})[watch] = callback
        return watch

    def on_session(self, callback: SessionCallback) -> Watch:
        """Call back with each new state of the session."""
        watch = Watch(self._forget_session_watch)
        self._session_watches[watch] = callback
        return watch

    def _forget(self, path: str, watch: Watch) -> None:
        watches = self._watches.get(path, {})
        watches.pop(watch, None)
        if not watches:
            self._watches.pop(path, None)

    def _forget_session_watch(self, watch: Watch) -> None:
        self._session_watches.pop(watch, None)

    def _changed(self, paths: Iterable[str]) -> None:
        for path in paths:
            watches = self._watches.get(path, {})
            for watch, callback in list(watches.items()):
                if watch in watches:  # else an earlier callback has cancelled it
                    callback(path)

    def _perhaps_all_changed(self) -> None:
        self._changed(list(self._watches))

    def _enter(self, state: SessionState) -> None:
        """Notify of a new state, once. When connected again, watches may have missed changes."""
        if state is self._state:
            return
        self._state = state
        for watch, callback in list(self._session_watches.items()):
            if watch in self._session_watches:
                callback(state)
        if state is SessionState.CONNECTED:
            self._perhaps_all_changed()

    def _end(self) -> None:
        """Drop all callbacks: a session that its owner closes notifies nobody."""
        self._state = SessionState.LOST
        self._watches.clear()
        self._session_watches.clear()
