"""A thread that runs jobs in order and a periodic tick between them.

The tick also runs immediately when a descriptor registered with `poll` is ready.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
Job = Callable[[], Any]


class Worker:
    """Keeps blocking calls off the event loop. Belongs to the loop that runs when it is created."""

    def __init__(self, name: str, tick: Callable[[Sequence[int]], None], every_s: float) -> None:
        """The tick receives the descriptors that are ready."""
        self._loop = asyncio.get_running_loop()
        self._tick = tick
        self._every_s = every_s
        self._jobs: deque[tuple[Job, asyncio.Future[Any]] | None] = deque()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        self.poll = select.poll()
        """Only the thread may use it."""
        self.poll.register(self._wake_reader, select.POLLIN)
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def call(self, job: Callable[[], T]) -> T:
        """Run a job on the thread. It runs even if its caller was cancelled."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._put((job, future))
        return await future

    async def stop(self) -> None:
        """End the thread after its pending jobs. No call may follow."""
        self._put(None)
        await self._ended
        os.close(self._wake_writer)

    def call_on_loop(self, callback: Callable[..., None], *arguments: object) -> None:
        """Run a callback on the event loop; for use on the thread."""
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:  # the loop was closed without `stop`: no callback can run
            self._jobs.append(None)

    def _put(self, entry: tuple[Job, asyncio.Future[Any]] | None) -> None:
        self._jobs.append(entry)
        # Full: the thread will wake anyway. Broken: the thread has ended.
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(self._wake_writer, b"\0")

    def _run(self) -> None:
        next_tick = time.monotonic() + self._every_s
        while True:
            wait_ms = max(0.0, next_tick - time.monotonic()) * 1000
            ready = [descriptor for descriptor, _ in self.poll.poll(wait_ms)]
            if self._wake_reader in ready:
                os.read(self._wake_reader, 4096)
                ready.remove(self._wake_reader)
            while self._jobs:
                entry = self._jobs.popleft()
                if entry is None:
                    os.close(self._wake_reader)
                    self.call_on_loop(_settle, self._ended, None, None)
                    return
                self._do(*entry)
            if ready or time.monotonic() >= next_tick:
                self._do(partial(self._tick, ready), None)
                next_tick = time.monotonic() + self._every_s

    def _do(self, job: Job, future: asyncio.Future[Any] | None) -> None:
        try:
            result = job()
        except Exception as error:  # noqa: BLE001 - goes to the caller, or to the loop
            if future is not None:
                self.call_on_loop(_settle, future, None, error)
            else:
                context = {"message": "a tick of the store failed", "exception": error}
                self.call_on_loop(self._loop.call_exception_handler, context)
        else:
            if future is not None:
                self.call_on_loop(_settle, future, result, None)


def _settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if future.done():  # cancelled
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
