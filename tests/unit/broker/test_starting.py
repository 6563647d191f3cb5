"""Starts with an unavailable store, or longer than the session timeout. Chaos found both."""

from __future__ import annotations

import asyncio
import errno
import threading
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.broker.membership import registration
from holdfast.broker.node import Broker
from holdfast.coordination import EmbeddedStore, SessionState
from holdfast.model import TopicPartition
from holdfast.storage import LogDirectory, LogSettings, OpenedLog, RealDisk, open_log
from tests.support.disks import close_files
from tests.support.waiting import eventually
from tests.unit.broker.test_admin_apis import create, new_topic
from tests.unit.broker.three import Three, play

STRAY = TopicPartition("stray", 0)
Trouble = Callable[[Broker, Three], Awaitable[None]]


async def session_is_over(broker: Broker, _: Three) -> None:
    """As if opening the logs had taken too long: there are no heartbeats meanwhile."""
    await broker.store.expire()


async def store_is_away(broker: Broker, three: Three) -> None:
    """It returns once the broker has noticed."""
    broker.store.disconnect()

    async def reconnect_store() -> None:
        await eventually(
            lambda: "waits for the store" in three.lines.getvalue(), "the broker notices"
        )
        broker.store.reconnect()

    three.tasks.append(asyncio.ensure_future(reconnect_store()))


@pytest.mark.parametrize("trouble", [session_is_over, store_is_away])
@pytest.mark.parametrize("step", ["identify", "join"])
def test_a_start_survives_a_store_that_is_unavailable_for_a_while(
    tmp_path: Path, step: str, trouble: Trouble
) -> None:
    async def run() -> None:
        three = Three(tmp_path)
        broker = three.make(1)
        original = getattr(broker.membership, step)
        troubles = [trouble]

        async def troubled(*given: Any) -> Any:
            while troubles:
                await troubles.pop()(broker, three)
            return await original(*given)

        setattr(broker.membership, step, troubled)
        await broker.start()
        assert broker.is_started
        assert "waits for the store" in three.lines.getvalue()
        await broker.stop()

    asyncio.run(run())


@pytest.mark.slow
def test_the_event_loop_runs_while_logs_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash that takes long, and the session needs heartbeats meanwhile."""

    async def scenario(three: Three) -> None:
        await create(three, new_topic("events", 3))

    async def start_again() -> None:
        loop, opened = asyncio.get_running_loop(), 0

        def open_when_the_loop_has_turned(*given: Any) -> OpenedLog:
            nonlocal opened
            opened += 1
            turned = threading.Event()
            loop.call_soon_threadsafe(turned.set)
            assert turned.wait(60.0), "the loop waits for the log"
            return open_log(*given)

        monkeypatch.setattr(
            "holdfast.storage.recovery.log_opening.open_log", open_when_the_loop_has_turned
        )
        three = Three(tmp_path)
        broker = await three.start(1)
        assert opened == len(broker.replicas.partitions) == 3
        await broker.stop()

    play(tmp_path, scenario)
    asyncio.run(start_again())


def test_a_session_that_comes_and_goes_writes_few_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does ten times a second while the disk of the store is full."""
    monkeypatch.setattr(registration, "SESSION_LINE_S", 0.2)

    async def run() -> None:
        three = Three(tmp_path)
        broker = await three.start(1)
        store = broker.store
        assert isinstance(store, EmbeddedStore)

        def lines() -> list[str]:
            return [line for line in three.lines.getvalue().splitlines() if "=session" in line]

        for _ in range(100):
            store._notified(SessionState.AWAY)
            store._notified(SessionState.CONNECTED)
        assert [line.split("=session ")[1] for line in lines()] == ["state=away"]
        await eventually(lambda: len(lines()) == 2, "a line about the others")
        assert lines()[1].endswith("state=connected changes=199")
        await broker.stop()

    asyncio.run(run())


class Unchangeable(RealDisk):
    """A disk whose logs can be read, but not deleted."""

    def rename(self, old: str, new: str) -> None:
        if old == str(STRAY):
            raise OSError(errno.EIO, "Input/output error", old)
        super().rename(old, new)


def test_a_stray_that_cannot_be_deleted_does_not_keep_a_broker_from_starting(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        three = Three(tmp_path)
        (tmp_path / "log").mkdir()
        disk = Unchangeable(tmp_path / "log")
        before = LogDirectory(disk, lambda _: LogSettings())
        before.create(STRAY, uuid.UUID(int=1))
        close_files(disk)
        before.release()
        broker = three.make(1, {str(tmp_path / "log"): disk})
        await broker.start()
        assert broker.is_started
        await broker.stop()

    asyncio.run(run())
