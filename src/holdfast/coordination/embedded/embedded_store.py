"""The embedded store: one SQLite file, shared by the brokers of one machine. No daemon.

Two threads keep the event loop free. One owns the SQLite connection, runs what is asked in order,
looks for changes by others and ends the sessions of dead neighbours. The other beats for our own
session, and only as long as the event loop turns: a broker that hangs must not look alive.

A process that is stopped in the middle of a write keeps SQLite's write lock, and the store is away
for all until it goes on or is killed. Nothing is lost by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from holdfast.coordination.embedded.database import Database, Told
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
"""How often we look without having been rung."""
LONGEST_BEAT_S = 1.0
BEATS_PER_TIMEOUT = 6


class EmbeddedStore(Store):
    """A session with the store in a file, which is made if it is missing."""

    def __init__(
        self, file: Path, *, session_timeout_ms: int = 18_000, busy_timeout_ms: int = 2_000
    ) -> None:
        super().__init__()
        self._file = file
        self._database = Database(
            file,
            self._tell,
            session_timeout_ms=session_timeout_ms,
            busy_timeout_ms=busy_timeout_ms,
        )
        self._beat_s = min(session_timeout_ms / 1000 / BEATS_PER_TIMEOUT, LONGEST_BEAT_S)
        self._is_open = False
        self._loop_turned = False

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
        self._heart = Worker("holdfast-heart", self._beat, self._beat_s)
        self._turn()

    async def renew(self) -> None:
        if self._state is SessionState.LOST:
            await self._ask(self._database.open_session)

    async def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._turning.cancel()
        await self._heart.stop()
        await self._worker.call(self._database.close)
        await self._worker.stop()
        self._end()

    async def expire(self) -> None:
        await self._ask(self._database.expire)

    def cut(self) -> None:
        self._database.is_cut = True

    def heal(self) -> None:
        self._database.is_cut = False

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

    def _tell(self, told: Told) -> None:
        """Called by the database on its thread; states and changes arrive in their order."""
        self._worker.tell(self._hear, told)

    def _hear(self, told: Told) -> None:
        match told:
            case SessionState():
                self._enter(told)
            case None:
                self._perhaps_all_changed()
            case _:
                self._changed(told)

    def _turn(self) -> None:
        """The event loop turns: the next beat may say so."""
        self._loop_turned = True
        self._turning = asyncio.get_running_loop().call_later(self._beat_s, self._turn)

    def _beat(self, _: Sequence[int]) -> None:
        if self._loop_turned and not self._database.is_cut:
            self._loop_turned = False
            if (life := self._database.life) is not None:
                life.beat()
