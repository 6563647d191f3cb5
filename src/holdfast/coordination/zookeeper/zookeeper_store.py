"""The agreed store kept by ZooKeeper: brokers on several machines, or whoever has one already.

Watches are ZooKeeper's: armed once, fired once. After each firing the watch is armed again before
the callback runs; as ZooKeeper serves one session's requests in order, whatever the callback reads
is newer than the watch, and no change falls between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
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
        self._is_cut = False

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

    def cut(self) -> None:
        self._is_cut = True
        if self._session is not None:
            self._session.cut()

    def heal(self) -> None:
        self._is_cut = False
        if self._session is not None:
            self._session.heal()

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        assert all(is_path(path) for path in paths), paths
        session = self._reachable()
        found = [self._asked(_get(session, path)) for path in paths]
        return [_raised(answer) for answer in await asyncio.gather(*found)]

    async def get_newest(self, paths: Sequence[str]) -> list[Node | None]:
        # One session's requests are served in order, so the reads wait for the sync without us.
        caught_up = self._asked(self._reachable().catch_up)
        nodes = await self.get_many(paths)
        _raised(await caught_up)
        return nodes

    async def children(self, path: str) -> list[str]:
        assert is_path(path), path
        session = self._reachable()
        return _raised(await self._asked(lambda done: session.children(path, done)))

    async def commit_all(self, transactions: Sequence[Transaction]) -> list[Outcome]:
        assert all(is_path(step.path) for steps in transactions for step in steps), transactions
        try:
            session = self._reachable()
        except StoreError as error:
            return [error] * len(transactions)
        return await asyncio.gather(
            *(self._asked(_commit(session, transaction)) for transaction in transactions)
        )

    def watch(self, path: str, callback: WatchCallback) -> Watch:
        watch = super().watch(path, callback)
        if self._session is not None and self._state is SessionState.CONNECTED:
            self._session.arm(path)
        return watch

    async def _start(self) -> None:
        if self._is_cut:
            raise StoreAwayError(f"ZooKeeper at {self._hosts} is cut off on purpose")
        session = self._new_session()
        try:
            await asyncio.to_thread(session.start, self._connect_timeout_ms / 1000)
        except asyncio.CancelledError:
            self._loop.run_in_executor(None, session.finish)  # nobody else would
            raise
        old, self._session = self._session, session
        self._hear(session, SessionState.CONNECTED)
        if old is not None:
            await asyncio.to_thread(old.finish)

    def _new_session(self) -> ZooKeeperSession:
        check_zookeeper(self._hosts)
        from holdfast.coordination.zookeeper.kazoo_session import ZooKeeperSession

        def told_state(state: SessionState) -> None:
            self._tell(self._hear, session, state)

        def told_change(path: str) -> None:
            self._tell(self._fired, session, path)

        timeout_ms = self._session_timeout_ms
        session = ZooKeeperSession(self._hosts, timeout_ms, told_state, told_change)
        return session

    def _hear(self, session: ZooKeeperSession, heard: SessionState) -> None:
        """A connection may be news of yesterday: only what the session says now can be one."""
        if session is not self._session:
            return
        if heard is not SessionState.CONNECTED:
            self._enter(heard)
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
        """The answer to a request that has been sent when this returns."""
        future: asyncio.Future[T | StoreError] = self._loop.create_future()
        ask(lambda answer: self._tell(_settle, future, answer))
        return future

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        """From kazoo's threads to the event loop, unless that was closed before the store."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *arguments)


def _get(session: ZooKeeperSession, path: str) -> Ask[Node | None]:
    return lambda done: session.get(path, done)


def _commit(session: ZooKeeperSession, transaction: Transaction) -> Ask[tuple[Node, ...]]:
    return lambda done: session.commit(transaction, done)


def _settle(future: asyncio.Future[T], answer: T) -> None:
    if not future.done():  # else cancelled: nobody waits
        future.set_result(answer)


def _raised(answer: T | StoreError) -> T:
    if isinstance(answer, StoreError):
        raise answer
    return answer
