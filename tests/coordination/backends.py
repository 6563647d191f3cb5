"""The three stores, each with the means to make it fail."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ParamSpec

from holdfast.coordination import EmbeddedStore, Store, ZooKeeperStore
from holdfast.simulation.store.memory_store import MemoryServer, MemoryStore
from tests.support.zookeeper import ZooKeeperServer

P = ParamSpec("P")
TIMEOUT_MS = 20_000
"""The timeout of sessions that must not expire, however busy the machine is."""


def on_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on its own event loop."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class Backend:
    """Creates stores that share the same nodes."""

    @property
    def address(self) -> list[str]:
        """The address of the store for another process."""
        raise NotImplementedError

    def new(self, timeout_ms: int = TIMEOUT_MS) -> Store:
        raise NotImplementedError

    async def go_away(self, store: Store) -> None:
        raise NotImplementedError

    async def come_back(self, store: Store) -> None:
        raise NotImplementedError

    @asynccontextmanager
    async def store(self, timeout_ms: int = TIMEOUT_MS) -> AsyncIterator[Store]:
        """An open store; closed at the end."""
        store = self.new(timeout_ms)
        await store.open()
        try:
            yield store
        finally:
            await store.close()


class EmbeddedBackend(Backend):
    def __init__(self, folder: Path) -> None:
        self.file = folder / "store.db"
        self._intruder: sqlite3.Connection | None = None

    @property
    def address(self) -> list[str]:
        return ["embedded", str(self.file)]

    def new(self, timeout_ms: int = TIMEOUT_MS) -> Store:
        return EmbeddedStore(self.file, session_timeout_ms=timeout_ms, busy_timeout_ms=1000)

    async def go_away(self, store: Store) -> None:
        self._intruder = sqlite3.connect(self.file, isolation_level=None)
        self._intruder.execute("BEGIN IMMEDIATE")

    async def come_back(self, store: Store) -> None:
        assert self._intruder is not None
        self._intruder.close()


class ZooKeeperBackend(Backend):
    def __init__(self, server: ZooKeeperServer) -> None:
        self.server = server
        self.hosts = f"{server.connect_string}/{uuid.uuid4()}"

    @property
    def address(self) -> list[str]:
        return ["zookeeper", self.hosts]

    def new(self, timeout_ms: int = TIMEOUT_MS) -> Store:
        return ZooKeeperStore(self.hosts, session_timeout_ms=timeout_ms)

    async def go_away(self, store: Store) -> None:
        await asyncio.to_thread(self.server.kill)

    async def come_back(self, store: Store) -> None:
        await asyncio.to_thread(self.server.start)


class SimulatedBackend(Backend):
    def __init__(self) -> None:
        self._server = MemoryServer(delay_s=lambda: 0.001)

    def new(self, timeout_ms: int = TIMEOUT_MS) -> Store:
        return MemoryStore(self._server, session_timeout_ms=timeout_ms)

    async def go_away(self, store: Store) -> None:
        assert isinstance(store, MemoryStore)
        store.disconnect()

    async def come_back(self, store: Store) -> None:
        assert isinstance(store, MemoryStore)
        store.reconnect()
