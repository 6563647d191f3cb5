"""Waits for a condition without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from holdfast.broker.log_lines import LogLines


class Conditions:
    """Waiters register predicates; every change evaluates all of them again."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[asyncio.Future[bool], Callable[[], bool]] = {}
        self._is_asking = False

    async def until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """Whether the predicate holds, now or within the time."""
        if holds():
            return True
        if timeout_s <= 0:
            return False
        future: asyncio.Future[bool] = self._loop.create_future()
        self._waiting[future] = holds
        timer = self._loop.call_later(timeout_s, _set, future, False)
        try:
            return await future
        finally:
            timer.cancel()
            self._waiting.pop(future, None)

    def changed(self) -> None:
        """Evaluate again when this tick is over: it may change thousands of partitions."""
        if self._waiting and not self._is_asking:
            self._is_asking = True
            self._loop.call_soon(self._ask)

    def _ask(self) -> None:
        self._is_asking = False
        for future, holds in tuple(self._waiting.items()):
            if holds():
                _set(future, True)

    def close(self) -> None:
        """Nothing will change any more."""
        for future in tuple(self._waiting):
            _set(future, False)


def _set(future: asyncio.Future[bool], value: bool) -> None:
    if not future.done():
        future.set_result(value)


class Tasks:
    """Background coroutines. A loop holds its tasks weakly, so they are kept here."""

    def __init__(self, loop: asyncio.AbstractEventLoop, log: LogLines) -> None:
        self._loop = loop
        self._log = log
        self._running: dict[asyncio.Task[None], None] = {}

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task, and log its failure."""
        task = self._loop.create_task(work)
        self._running[task] = None
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.bug("a task failed", error)


class RepeatedTask:
    """Work that runs again if its input changed while it ran."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[None]], log: LogLines
    ) -> None:
        self._loop = loop
        self._work = work
        self._log = log
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self._is_closed = False

    def soon(self) -> None:
        """Run the work, or run it once more after the current run."""
        self._again = True
        if self._task is None and not self._is_closed:
            self._task = self._loop.create_task(self._run())

    def close(self) -> None:
        """Do not run again."""
        self._is_closed = True

    async def _run(self) -> None:
        try:
            while self._again and not self._is_closed:
                self._again = False
                await self._work()
        except Exception as error:  # noqa: BLE001  # whatever it was, the next change runs it again
            self._log.bug("a repeated task failed", error)
        finally:
            self._task = None
