"""The coordination store in ZooKeeper: for brokers on several machines.

ZooKeeper's watches fire once. After each firing the store arms the watch again before it runs the
callback. ZooKeeper serves the requests of one session in order, so what the callback reads is newer
than the watch, and no change is missed between the two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from holdfast.coordination.availability import check_zookeeper
from holdfast.coordination.operations import (
    Node,
    Outcome,
    SessionLostError,
    StoreAwayError,
    StoreError,
    Transaction,
    is_path,
)
from holdfast.coordination.store import SessionState, Store, Watch, WatchCallback

if TYPE_CHECKING:
    from holdfast.coordination.zookeeper.kazoo_session import ZooKeeperSession

T = TypeVar("T")
Ask = Callable[[Callable[[T | StoreError], None]], None]


class ZooKeeperStore(Store):
    """A session with the ensemble at `host:port,host:port/folder`."""

    def __init__(
        self, hosts: str, *, session_timeout_ms: int = 18_000, connect_timeout_ms: int = 18_000
    ) -> None:
        super().__init__()
        self._hosts = hosts
        self._session_timeout_ms = session_timeout_ms
        self._connect_timeout_ms = connect_timeout_ms
        self._session: ZooKeeperSession | None = None
        self._is_disconnected = False

    @property
    def session_id(self) -> int:
        return 0 if self._session is None else self._session.id

    async def open(self) -> None:
        assert self._session is None, "open() once; renew() opens a new session"
        self._loop = asyncio.get_running_loop()
        await self._start()

    async def renew(self) -> None:
        if self._state is SessionState.LOST:
            await self._start()

    async def close(self) -> None:
        session, self._session = self._session, None
        self._end()
        if session is not None:
            await asyncio.to_thread(session.finish)

    async def expire(self) -> None:
        assert self._session is not None, "not open"
        await asyncio.to_thread(self._session.expire)

    def disconnect(self) -> None:
        self._is_disconnected = True
        if self._session is not None:
            self._session.disconnect()

    def reconnect(self) -> None:
        self._is_disconnected = False
        if self._session is not None:
            self._session.reconnect()

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        assert all(is_path(path) for path in paths), paths
        session = self._reachable()
        found = [self._asked(partial(session.get, path)) for path in paths]
        return [_raised(answer) for answer in await asyncio.gather(*found)]

    async def get_newest(self, paths: Sequence[str]) -> list[Node | None]:
        # ZooKeeper serves a session's requests in order, so the reads wait for the sync.
        caught_up = self._asked(self._reachable().catch_up)
        nodes = await self.get_many(paths)
        _raised(await caught_up)
        return nodes

    async def children(self, path: str) -> list[str]:
        assert is_path(path), path
        session = self._reachable()
        return _raised(await self._asked(partial(session.children, path)))

    async def commit_all(self, transactions: Sequence[Transaction]) -> list[Outcome]:
        assert all(is_path(step.path) for steps in transactions for step in steps), transactions
        try:
            session = self._reachable()
        except StoreError as error:
            return [error] * len(transactions)
        asks: list[Ask[tuple[Node, ...]]] = [
            partial(session.commit, transaction) for transaction in transactions
        ]
        return await asyncio.gather(*map(self._asked, asks))

    def watch(self, path: str, callback: WatchCallback) -> Watch:
        watch = super().watch(path, callback)
        if self._session is not None and self._state is SessionState.CONNECTED:
            self._session.arm(path)
        return watch

    async def _start(self) -> None:
        if self._is_disconnected:
            raise StoreAwayError(f"ZooKeeper at {self._hosts} is disconnected by an injected fault")
        session = self._new_session()
        try:
            await asyncio.to_thread(session.start, self._connect_timeout_ms / 1000)
        except asyncio.CancelledError:
            self._loop.run_in_executor(None, session.finish)  # no other code will
            raise
        old, self._session = self._session, session
        self._session_changed(session, SessionState.CONNECTED)
        if old is not None:
            await asyncio.to_thread(old.finish)

    def _new_session(self) -> ZooKeeperSession:
        check_zookeeper(self._hosts)
        from holdfast.coordination.zookeeper.kazoo_session import ZooKeeperSession

        def state_changed(state: SessionState) -> None:
            self._call_on_loop(self._session_changed, session, state)

        def node_changed(path: str) -> None:
            self._call_on_loop(self._fired, session, path)

        timeout_ms = self._session_timeout_ms
        session = ZooKeeperSession(self._hosts, timeout_ms, state_changed, node_changed)
        return session

    def _session_changed(self, session: ZooKeeperSession, reported: SessionState) -> None:
        """Enter the session's state of now: a reported CONNECTED may be out of date."""
        if session is not self._session:
            return
        if reported is not SessionState.CONNECTED:
            self._enter(reported)
        if session.state is SessionState.CONNECTED is not self._state:
            for path in self._watches:
                session.arm(path)
        self._enter(session.state)

    def _fired(self, session: ZooKeeperSession, path: str) -> None:
        if session is self._session and path in self._watches:
            session.arm(path)
            self._changed([path])

    def _reachable(self) -> ZooKeeperSession:
        session = self._session
        if session is None or self._state is SessionState.LOST:
            raise SessionLostError(f"there is no session with ZooKeeper at {self._hosts}")
        if self._state is SessionState.AWAY:
            raise StoreAwayError(f"ZooKeeper at {self._hosts} cannot be reached")
        return session

    def _asked(self, ask: Ask[T]) -> asyncio.Future[T | StoreError]:
        """Send a request; the future receives the answer."""
        future: asyncio.Future[T | StoreError] = self._loop.create_future()
        ask(lambda answer: self._call_on_loop(_settle, future, answer))
        return future

    def _call_on_loop(self, callback: Callable[..., None], *arguments: object) -> None:
        """Run a callback on the event loop, for kazoo's threads; not if the loop is closed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *arguments)


def _settle(future: asyncio.Future[T], answer: T) -> None:
    if not future.done():  # else cancelled
        future.set_result(answer)


def _raised(answer: T | StoreError) -> T:
    if isinstance(answer, StoreError):
        raise answer
    return answer
