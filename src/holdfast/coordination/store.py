"""The agreed store as brokers see it: versioned nodes, compare-and-set, sessions, watches.

All stores (embedded, ZooKeeper, simulated) keep these promises:

- A transaction is atomic, and durable before its answer arrives. Change numbers strictly rise.
- A session's ephemeral nodes vanish when it ends: by `close`, by the death of its process, or by
  silence. After that its holder can change nothing, whatever it still believes.
- A watch tells of changes of a node's data, existence and children, and none is lost: whoever
  reads after `watch`, and again in or after each call, ends up with what is newest. One call may
  stand for several changes; a call may come without any, as when the store was away.
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
    """What we know of our session."""

    CONNECTED = "connected"
    AWAY = "away"
    """The store cannot be reached. The session may still live, or may have ended unnoticed."""
    LOST = "lost"
    """No session: it has ended, or was never opened."""


WatchCallback = Callable[[str], None]
"""Gets the watched path."""
SessionCallback = Callable[[SessionState], None]


class Watch:
    """A callback that stays until it is cancelled."""

    def __init__(self, cancel: Callable[[Watch], None]) -> None:
        self._cancel = cancel

    def cancel(self) -> None:
        """No call after this one; cancelling twice is harmless."""
        self._cancel(self)


class Store(abc.ABC):
    """One session with the agreed store; see the promises above."""

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
        """Of the last session opened, lost or not: the `owner` of its ephemeral nodes."""

    @abc.abstractmethod
    async def open(self) -> None:
        """Open a session. StoreUnusableError: see its message. StoreAwayError: try again."""

    @abc.abstractmethod
    async def renew(self) -> None:
        """Open a new session in place of a lost one; watches stay. Nothing if it is not lost."""

    @abc.abstractmethod
    async def close(self) -> None:
        """End the session: its nodes vanish at once if the store can be reached."""

    @abc.abstractmethod
    async def expire(self) -> None:
        """End our session as if we had been silent too long: a fault on purpose."""

    @abc.abstractmethod
    def cut(self) -> None:
        """The store is out of our reach from now on, and hears nothing of us: a fault on purpose.

        The session lives on until its timeout.
        """

    @abc.abstractmethod
    def heal(self) -> None:
        """The store is back, and we find out what became of our session."""

    @abc.abstractmethod
    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """The nodes at these paths, None where there is none, in one go."""

    @abc.abstractmethod
    async def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted. No node: none."""

    @abc.abstractmethod
    async def commit_all(self, transactions: Sequence[Transaction]) -> list[Outcome]:
        """Many independent transactions in one go, in this order, for little more than one costs.

        One that fails leaves the others alone, so errors are returned, not raised.
        """

    async def get_newest(self, paths: Sequence[str]) -> list[Node | None]:
        """As `get_many`, and nothing is older than what any session had confirmed before the call.

        A server of an ensemble may lag behind the others, and `get_many` asks only one.
        """
        return await self.get_many(paths)

    async def get(self, path: str) -> Node | None:
        """The node at a path, or None."""
        [node] = await self.get_many([path])
        return node

    async def commit(self, *operations: Operation) -> tuple[Node, ...]:
        """One transaction; gives the nodes it created or set, in their order.

        Raises ConflictError (nothing was changed), StoreAwayError or SessionLostError.
        """
        [outcome] = await self.commit_all([operations])
        if isinstance(outcome, StoreError):
            raise outcome
        return outcome

    async def ensure_path(self, path: str) -> None:
        """Create a node and those above it, empty, where they are missing."""
        wanted = ancestry(path)
        known = await self.get_many(wanted)
        missing = [p for p, node in zip(wanted, known, strict=True) if node is None]
        for outcome in await self.commit_all([[Create(p)] for p in missing]):
            match outcome:
                case ConflictError(reason=Reason.EXISTS) | tuple():
                    pass  # somebody else created it meanwhile; all we want is that it is there
                case StoreError():
                    raise outcome

    def watch(self, path: str, callback: WatchCallback) -> Watch:
        """Call back after changes of this node or its children's names, also if there is no node.

        To miss nothing, watch first and read then.
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
        """Tell a new state, once; back from elsewhere, watches may have missed something."""
        if state is self._state:
            return
        self._state = state
        for watch, callback in list(self._session_watches.items()):
            if watch in self._session_watches:
                callback(state)
        if state is SessionState.CONNECTED:
            self._perhaps_all_changed()

    def _end(self) -> None:
        """Closed on purpose: nobody is told."""
        self._state = SessionState.LOST
        self._watches.clear()
        self._session_watches.clear()
