"""The embedded store: one SQLite file, shared by the brokers of one machine. No daemon.

Two threads keep the event loop free. The first owns the SQLite connection, runs requests in order,
looks for changes by other processes and ends the sessions of dead ones. The second writes the
heartbeats of our own session, but only while the event loop runs: a broker that hangs must not look
alive.

A process that is stopped in the middle of a write keeps SQLite's write lock. The store is then away
for every broker until that process continues or is killed. No data is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from holdfast.coordination.embedded.database import Database, Notification
from holdfast.coordination.embedded.worker_thread import Worker
from holdfast.coordination.operations import (
    Node,
    Outcome,
    SessionLostError,
    StoreAwayError,
    Transaction,
    is_path,
)
from holdfast.coordination.store import SessionState, Store

T = TypeVar("T")

POLL_S = 0.1
"""How often we look for changes without a wake-up."""
LONGEST_HEARTBEAT_INTERVAL_S = 1.0
HEARTBEATS_PER_TIMEOUT = 6


class EmbeddedStore(Store):
    """A session with the store in a file. Creates the file if it is missing."""

    def __init__(
        self, file: Path, *, session_timeout_ms: int = 18_000, busy_timeout_ms: int = 2_000
    ) -> None:
        super().__init__()
        self._file = file
        self._database = Database(
            file,
            self._notify,
            session_timeout_ms=session_timeout_ms,
            busy_timeout_ms=busy_timeout_ms,
        )
        self._heartbeat_interval_s = min(
            session_timeout_ms / 1000 / HEARTBEATS_PER_TIMEOUT, LONGEST_HEARTBEAT_INTERVAL_S
        )
        self._is_open = False
        self._loop_has_run = False

    @property
    def session_id(self) -> int:
        return self._database.session

    async def open(self) -> None:
        assert not self._is_open, "open() once; renew() opens a new session"
        self._worker = Worker("holdfast-store", self._database.tick, POLL_S)
        try:
            await self._worker.call(lambda: self._database.open(self._worker.poll))
        except BaseException:
            await self._worker.call(self._database.close)
            await self._worker.stop()
            raise
        self._is_open = True
        self._heartbeat_worker = Worker(
            "holdfast-heartbeat", self._heartbeat, self._heartbeat_interval_s
        )
        self._loop_runs()

    async def renew(self) -> None:
        if self._state is SessionState.LOST:
            await self._ask(self._database.open_session)

    async def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._turning.cancel()
        await self._heartbeat_worker.stop()
        await self._worker.call(self._database.close)
        await self._worker.stop()
        self._end()

    async def expire(self) -> None:
        await self._ask(self._database.expire)

    def disconnect(self) -> None:
        self._database.is_disconnected = True

    def reconnect(self) -> None:
        self._database.is_disconnected = False

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        assert all(is_path(path) for path in paths), paths
        return await self._ask(lambda: self._database.get_many(paths))

    async def children(self, path: str) -> list[str]:
        assert is_path(path), path
        return await self._ask(lambda: self._database.children(path))

    async def commit_all(self, transactions: Sequence[Transaction]) -> list[Outcome]:
        assert all(is_path(step.path) for steps in transactions for step in steps), transactions
        try:
            return await self._ask(lambda: self._database.commit_all(transactions))
        except (SessionLostError, StoreAwayError) as error:
            return [error] * len(transactions)

    async def _ask(self, job: Callable[[], T]) -> T:
        if not self._is_open:
            raise SessionLostError(f"the store {self._file} is not open")
        return await self._worker.call(job)

    def _notify(self, notification: Notification) -> None:
        """The database calls this on its thread; states and changes arrive in order."""
        self._worker.call_on_loop(self._notified, notification)

    def _notified(self, notification: Notification) -> None:
        match notification:
            case SessionState():
                self._enter(notification)
            case None:
                self._perhaps_all_changed()
            case _:
                self._changed(notification)

    def _loop_runs(self) -> None:
        """The event loop runs, so the next heartbeat may be written."""
        self._loop_has_run = True
        self._turning = asyncio.get_running_loop().call_later(
            self._heartbeat_interval_s, self._loop_runs
        )

    def _heartbeat(self, _: Sequence[int]) -> None:
        if self._loop_has_run and not self._database.is_disconnected:
            self._loop_has_run = False
            if (heartbeat := self._database.heartbeat) is not None:
                heartbeat.write()
