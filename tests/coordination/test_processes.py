"""Real processes that share a store: a dead or stopped process loses its session."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.coordination import Create, SessionState, Store
from tests.coordination.backends import TIMEOUT_MS, Backend, on_loop
from tests.support.waiting import eventually

SHORT_MS = 3000
"""Longer than a busy machine makes a process wait."""
Spawn = Callable[..., "Holder"]


class Holder:
    """The process of holder.py."""

    def __init__(self, address: list[str], path: str, timeout_ms: int, *options: str) -> None:
        program = Path(__file__).with_name("holder.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), *address, str(timeout_ms), path, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout

    async def line(self) -> str:
        """Its next line of output; empty if it has ended."""
        return (await asyncio.to_thread(self._out.readline)).strip()

    def create(self, path: str) -> None:
        self._in.write(f"{path}\n")
        self._in.flush()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def finish(self) -> None:
        """Let it close its store and end."""
        self._in.close()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()


@pytest.fixture
def spawn(shared_backend: Backend) -> Iterator[Spawn]:
    """Starts processes that share the backend's store."""
    holders: list[Holder] = []

    def start(path: str, timeout_ms: int = TIMEOUT_MS, *options: str) -> Holder:
        holders.append(Holder(shared_backend.address, path, timeout_ms, *options))
        return holders[-1]

    yield start
    for holder in holders:
        holder.end()


async def gone(store: Store, path: str) -> None:
    """Waits until there is no such node. Only a watch wakes it: a lost one would hang here."""
    changed = asyncio.Event()
    watch = store.watch(path, lambda _: changed.set())
    while await store.get(path) is not None:
        async with asyncio.timeout(60):
            await changed.wait()
        changed.clear()
    watch.cancel()


@on_loop
async def test_the_death_of_a_process_ends_its_session(
    shared_backend: Backend, spawn: Spawn
) -> None:
    async with shared_backend.store() as store:
        # ZooKeeper sees only the connection go, and waits for the session's timeout.
        holder = spawn("/mine", SHORT_MS)
        assert await holder.line() == "won"
        assert await store.get("/mine") is not None
        holder.signal(signal.SIGKILL)
        await gone(store, "/mine")


@on_loop
async def test_a_clean_exit_removes_the_nodes_of_a_process(
    shared_backend: Backend, spawn: Spawn
) -> None:
    async with shared_backend.store() as store:
        holder = spawn("/mine")
        assert await holder.line() == "won"
        holder.finish()
        await gone(store, "/mine")


@on_loop
async def test_a_stopped_process_loses_its_session_and_is_notified_when_it_resumes(
    shared_backend: Backend, spawn: Spawn
) -> None:
    async with shared_backend.store() as store:
        holder = spawn("/mine", SHORT_MS)
        assert await holder.line() == "won"
        holder.signal(signal.SIGSTOP)
        await gone(store, "/mine")
        holder.create("/from-the-grave")
        holder.signal(signal.SIGCONT)
        said = {await holder.line()}
        while SessionState.LOST.value not in said:
            assert "" not in said, "the process has ended"
            said.add(await holder.line())
        holder.create("/from-the-grave")
        while await holder.line() != "SessionLostError":
            pass  # ends: the process answers, or its end fails the test by its timeout
        assert await store.get("/from-the-grave") is None


@on_loop
async def test_exactly_one_of_many_processes_creates_the_node(
    shared_backend: Backend, spawn: Spawn
) -> None:
    async with shared_backend.store() as store:
        # Long enough for the winner to live until all have tried, also on a busy machine.
        holders = [spawn("/controller", 3 * SHORT_MS) for _ in range(5)]
        said = [await holder.line() for holder in holders]
        assert sorted(said) == ["taken"] * 4 + ["won"]
        holders[said.index("won")].signal(signal.SIGKILL)
        await gone(store, "/controller")
        await store.commit(Create("/controller", ephemeral=True))


@on_loop
async def test_a_restarted_process_finds_no_node_of_its_former_session(
    shared_backend: Backend, spawn: Spawn
) -> None:
    """No other process was there to notice its death."""
    holder = spawn("/mine", SHORT_MS)
    assert await holder.line() == "won"
    holder.end()
    async with shared_backend.store() as store:
        await gone(store, "/mine")


@on_loop
async def test_a_child_of_a_process_does_not_keep_its_session_alive(
    shared_backend: Backend, spawn: Spawn
) -> None:
    async with shared_backend.store() as store:
        holder = spawn("/mine", SHORT_MS, "with-child")
        assert await holder.line() == "won"
        holder.signal(signal.SIGKILL)
        await gone(store, "/mine")


@on_loop
async def test_a_watch_fires_without_further_requests(
    shared_backend: Backend, spawn: Spawn
) -> None:
    """A change by another process reaches the watch although this one sends no request."""
    async with shared_backend.store() as store:
        notified: list[str] = []
        store.watch("/mine", notified.append)
        assert await store.get("/mine") is None
        holder = spawn("/mine")
        assert await holder.line() == "won"
        await eventually(lambda: bool(notified), "notified of another process's change")
