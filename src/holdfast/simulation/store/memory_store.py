"""The simulated coordination store: the same guarantees, without disk, thread or own clock.

All time comes from an event loop's `call_later`, so on a virtual-time loop one seed gives one run:
the server's loop times the server, a session's loop times the session. The failures are those of a
real store: responses take time, a store is away and returns, a request or only its response is
lost, a session ends unnoticed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.coordination import (
    Node,
    Outcome,
    SessionLostError,
    SessionState,
    Store,
    StoreAwayError,
    Transaction,
)
from holdfast.simulation.store.memory_tree import MemoryTree

T = TypeVar("T")


class MemoryServer:
    """The server that all sessions of one simulated cluster share."""

    def __init__(self, delay_s: Callable[[], float] = lambda: 0.0) -> None:
        self.tree = MemoryTree()
        self.delay_s = delay_s
        """The delay of one message, in one direction."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The server's loop; None: the caller's loop, which must then exist as long as the server.
        """
        self._sessions: dict[int, MemoryStore] = {}

    def admit(self, store: MemoryStore) -> int:
        session = self.tree.next_change()
        self._sessions[session] = store
        return session

    def has(self, session: int) -> bool:
        return session in self._sessions

    def end(self, session: int) -> None:
        """End a session; its broker is notified when it is reachable."""
        store = self._sessions.pop(session, None)
        if store is not None:
            self.tree.remove_owned(session)
            self.notify_watches()
            store.notify_session_end(session)

    def notify_watches(self) -> None:
        changed = self.tree.take_changed()
        if changed:
            for store in list(self._sessions.values()):
                store.notify_changed(changed)


@dataclass(slots=True)
class _Request:
    job: Callable[[], Any]
    answer: asyncio.Future[Any]
    needs_session: bool
    result: object = None


class MemoryStore(Store):
    """One broker's session with the simulated store; it can be disconnected."""

    def __init__(self, server: MemoryServer, *, session_timeout_ms: int = 18_000) -> None:
        super().__init__()
        self._server = server
        self._session_timeout_s = session_timeout_ms / 1000
        self._session = 0
        self._connection = 0
        """Counts connections: messages of an earlier connection are lost."""
        self._is_away = False
        self._loop: asyncio.AbstractEventLoop | None = None
        # One queue per direction: messages of a session never overtake each other.
        self._requests: deque[_Request] = deque()
        self._answers: deque[_Request] = deque()

    @property
    def session_id(self) -> int:
        return self._session

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._open_session()

    async def renew(self) -> None:
        if self._state is SessionState.LOST:
            await self._open_session()

    async def close(self) -> None:
        if self._is_away:
            self._server_notices_silence()
        else:
            self._server.end(self._session)
        self._end()

    async def expire(self) -> None:
        self._server.end(self._session)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return await self._ask(lambda: [self._server.tree.nodes.get(path) for path in paths])

    async def children(self, path: str) -> list[str]:
        return await self._ask(lambda: self._server.tree.children(path))

    async def commit_all(self, transactions: Sequence[Transaction]) -> list[Outcome]:
        try:
            return await self._ask(lambda: self._commit_all(transactions))
        except (SessionLostError, StoreAwayError) as error:
            return [error] * len(transactions)

    def disconnect(self) -> None:
        """Disconnect; requests in flight or their responses are lost, without a sign which."""
        if self._is_away:
            return
        self._is_away = True
        self._connection += 1
        for request in (*self._requests, *self._answers):
            self._fail(
                request, StoreAwayError("the store became unreachable", outcome_unknown=True)
            )
        self._requests.clear()
        self._answers.clear()
        self._server_notices_silence()
        if self._state is SessionState.CONNECTED:
            self._enter(SessionState.AWAY)

    def reconnect(self) -> None:
        """Reconnect, in the old session if it has not ended."""
        if not self._is_away:
            return
        self._is_away = False
        self._connection += 1
        if self._state is SessionState.AWAY:
            incarnation = self._server.has(self._session)
            self._enter(SessionState.CONNECTED if incarnation else SessionState.LOST)

    def die(self) -> None:
        """The process has ended without closing the session, which stays until its timeout."""
        self._end()
        self.disconnect()

    def notify_changed(self, paths: list[str]) -> None:
        """Send changed paths to this session; lost while away, a reconnect reports them."""
        if not self._is_away:
            self._later(lambda: self._changed(paths))

    def notify_session_end(self, session: int) -> None:
        """Send the session's end to this session; lost while away, a reconnect reports it."""
        if not self._is_away:
            self._later(lambda: self._session_ended(session))

    def _session_ended(self, session: int) -> None:
        if session == self._session:
            self._enter(SessionState.LOST)

    async def _open_session(self) -> None:
        self._session = await self._send(lambda: self._server.admit(self), needs_session=False)
        self._enter(SessionState.CONNECTED)

    def _commit_all(self, transactions: Sequence[Transaction]) -> list[Outcome]:
        tree = self._server.tree
        outcomes = [tree.commit(transaction, self._session) for transaction in transactions]
        self._server.notify_watches()
        return outcomes

    async def _ask(self, job: Callable[[], T]) -> T:
        if self._state is SessionState.LOST:
            raise SessionLostError(f"session {self._session} has ended")
        return await self._send(job, needs_session=True)

    async def _send(self, job: Callable[[], T], *, needs_session: bool) -> T:
        if self._is_away:
            raise StoreAwayError("the store is unreachable")
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._requests.append(_Request(job, answer, needs_session))
        self._later(self._arrive, self._server_loop)
        return await answer

    def _arrive(self) -> None:
        request = self._requests.popleft()
        if request.needs_session and not self._server.has(self._session):
            request.result = SessionLostError(f"session {self._session} has ended")
        else:
            request.result = request.job()
        self._answers.append(request)
        self._later(self._answer)

    def _answer(self) -> None:
        request = self._answers.popleft()
        if isinstance(request.result, SessionLostError):
            self._enter(SessionState.LOST)
            self._fail(request, request.result)
        elif not request.answer.done():
            request.answer.set_result(request.result)

    def _fail(self, request: _Request, error: Exception) -> None:
        if not request.answer.done():
            request.answer.set_exception(error)

    @property
    def _own_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop or asyncio.get_running_loop()

    @property
    def _server_loop(self) -> asyncio.AbstractEventLoop:
        return self._server.loop or self._own_loop

    def _later(
        self, callback: Callable[[], None], loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """Call back after one message delay, unless there is another connection by then."""
        connection = self._connection

        def arrive() -> None:
            if connection == self._connection:
                callback()

        (loop or self._own_loop).call_later(self._server.delay_s(), arrive)

    def _server_notices_silence(self) -> None:
        connection, session = self._connection, self._session

        def end_if_still_silent() -> None:
            if connection == self._connection:
                self._server.end(session)

        self._server_loop.call_later(self._session_timeout_s, end_if_still_silent)
