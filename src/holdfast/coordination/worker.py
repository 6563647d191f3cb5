"""One thread that runs jobs in order and, between them, a tick every so often."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Job = Callable[[], Any]


class Worker:
    """Keeps blocking calls off the event loop. Belongs to the loop that runs when it is made."""

    def __init__(self, name: str, tick: Callable[[], None], every_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._tick = tick
        self._every_s = every_s
        self._jobs: queue.SimpleQueue[tuple[Job, asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def call(self, job: Callable[[], T]) -> T:
        """Run a job on the thread. It runs even if nobody waits for it any more."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put((job, future))
        return await future

    async def stop(self) -> None:
        """End the thread after the jobs it has."""
        self._jobs.put(None)
        await self._ended

    def tell(self, callback: Callable[..., None], *arguments: object) -> None:
        """Call back on the event loop; for use on the thread."""
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:  # the loop was closed without `stop`: nobody is left to be told
            self._jobs.put(None)

    def _run(self) -> None:
        next_tick = time.monotonic() + self._every_s
        while True:
            try:
                entry = self._jobs.get(timeout=max(0.0, next_tick - time.monotonic()))
            except queue.Empty:
                pass
            else:
                if entry is None:
                    self.tell(_settle, self._ended, None, None)
                    return
                self._do(*entry)
            if time.monotonic() >= next_tick:
                self._do(self._tick, None)
                next_tick = time.monotonic() + self._every_s

    def _do(self, job: Job, future: asyncio.Future[Any] | None) -> None:
        try:
            result = job()
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asked, or to the loop
            if future is not None:
                self.tell(_settle, future, None, error)
            else:
                context = {"message": "a tick of the store failed", "exception": error}
                self.tell(self._loop.call_exception_handler, context)
        else:
            if future is not None:
                self.tell(_settle, future, result, None)


def _settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if future.done():  # cancelled: nobody waits
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
