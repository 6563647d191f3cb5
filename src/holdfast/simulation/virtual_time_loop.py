"""Virtual time: one event loop for each simulated process, all on one timeline.

Nothing really waits: when no callback is due, time jumps to the next timer. Callbacks that are due
at the same moment run in the order in which they were scheduled, so one seed gives one run. A
paused process runs its callbacks when it resumes. A killed process never runs again, and its loop
ignores further calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

from holdfast.broker.log_lines import LogLines

if TYPE_CHECKING:
    from holdfast.simulation.network import Network, SimServer

    # For type checkers AbstractEventLoop has only abstract methods; BaseEventLoop has real ones.
    _Loop = asyncio.BaseEventLoop
else:
    _Loop = asyncio.AbstractEventLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ProcessKilledError(BaseException):
    """Raised inside a process that has just been killed, to leave its code."""


class Timeline:
    """The virtual time of a simulated cluster, and all callbacks that are due."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._count = itertools.count()
        self._timers: list[tuple[float, int, SimHandle]] = []
        self._ready: deque[SimHandle] = deque()

    def add_ready(self, handle: SimHandle) -> None:
        """Run it after everything that is already due."""
        self._ready.append(handle)

    def add_timer(self, handle: SimHandle) -> None:
        """Run it at its time."""
        heapq.heappush(self._timers, (handle.due_s, next(self._count), handle))

    def run_until(self, is_done: Callable[[], bool], patience_s: float) -> bool:
        """Run until `is_done` holds; False if it does not within `patience_s`."""
        end_s = self.now_s + patience_s
        while not is_done():
            if not self._advance(end_s):
                return False
        return True

    def run_for(self, seconds: float) -> None:
        """Run for so many seconds of virtual time."""
        end_s = self.now_s + seconds
        while self._advance(end_s):
            pass

    def _advance(self, end_s: float) -> bool:
        """Run everything that is due now. False if nothing is due before the end."""
        ready, timers = self._ready, self._timers
        if not ready:
            if not timers or timers[0][0] > end_s:
                self.now_s = max(self.now_s, end_s)
                return False
            self.now_s = max(self.now_s, timers[0][0])
        while timers and timers[0][0] <= self.now_s:
            ready.append(heapq.heappop(timers)[2])
        try:
            for _ in range(len(ready)):
                ready.popleft().run()
        finally:
            asyncio._set_running_loop(None)
        return True


class SimHandle:
    """A callback that is due now or at a time.

    asyncio's own handle copies the context every time; here only a callback that brings a context
    has one.
    """

    __slots__ = ("_args", "_callback", "_context", "_is_cancelled", "_loop", "due_s")

    def __init__(
        self,
        loop: SimLoop,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
        due_s: float = 0.0,
    ) -> None:
        self._loop = loop
        self._callback = callback
        self._args = args
        self._context = context
        self._is_cancelled = False
        self.due_s = due_s

    def cancel(self) -> None:
        self._is_cancelled = True
        self._args = ()

    def cancelled(self) -> bool:
        return self._is_cancelled

    def when(self) -> float:
        return self.due_s

    def run(self) -> None:
        """Run it in its process; a paused process runs it later, a dead one never."""
        loop = self._loop
        if self._is_cancelled or loop.is_dead:
            return
        if loop.is_paused:
            loop.waiting.append(self)
            return
        asyncio._set_running_loop(loop)
        try:
            if self._context is None:
                self._callback(*self._args)
            else:
                self._context.run(self._callback, *self._args)
        except BaseException as error:  # noqa: BLE001  # as asyncio does it
            what = {"exception": error, "message": f"{self._callback} failed"}
            loop.call_exception_handler(what)


class SimLoop(_Loop):
    """The event loop of one simulated process."""

    def __init__(
        self, timeline: Timeline, network: Network, host: str, rng: Random, log: LogLines
    ) -> None:
        self.timeline = timeline
        self.host = host
        self.is_dead = False
        self.is_paused = False
        self.waiting: list[SimHandle] = []
        """The callbacks that a paused process runs when it resumes."""
        self.disk_s = 0.002
        """The longest time that work on another thread takes; such work waits for a disk."""
        self._network = network
        self._rng = rng
        self._log = log
        self._tasks: dict[asyncio.Task[Any], None] = {}

    # The process.

    def kill(self) -> None:
        """End immediately, in the middle of any work."""
        self.is_dead = True
        self.waiting.clear()
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        waiting, self.waiting = self.waiting, []
        for handle in waiting:
            self.timeline.add_ready(handle)

    def bury(self) -> None:
        """Cancel the tasks that a killed process had begun."""
        assert self.is_dead
        for task in self._tasks:
            coroutine = task.get_coro()
            assert coroutine is not None
            with contextlib.suppress(ProcessKilledError, RuntimeError):
                coroutine.close()
        self._tasks.clear()

    # asyncio's loop interface.

    def time(self) -> float:
        return self.timeline.now_s

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.is_dead

    def is_closed(self) -> bool:
        return self.is_dead

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> SimHandle:
        handle = SimHandle(self, callback, args, context)
        if not self.is_dead:
            self.timeline.add_ready(handle)
        return handle

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> SimHandle:
        return self.call_at(self.timeline.now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> SimHandle:
        handle = SimHandle(self, callback, args, context, when)
        if not self.is_dead:
            self.timeline.add_timer(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], **more: Any
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, **more)
        self._tasks[task] = None
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Do the work at the start or at the end of its time, as a thread may."""
        del executor
        future: asyncio.Future[T] = asyncio.Future(loop=self)
        takes_s = self._rng.random() * self.disk_s
        if self._rng.random() < 0.5:
            self.call_later(takes_s, _settle, future, *_outcome(func, args))
        else:
            self.call_later(takes_s, lambda: _settle(future, *_outcome(func, args)))
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if self.is_dead or isinstance(error, ProcessKilledError):
            return
        self._log.bug("a callback failed", error or RuntimeError(str(context.get("message"))))

    # The network.

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        **_: Any,
    ) -> SimServer:
        return self._network.listen(self, protocol_factory, (host, port))

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int, **_: Any
    ) -> tuple[asyncio.Transport, Any]:
        return await self._network.connect(self, protocol_factory, (host, port))


def _outcome(func: Callable[..., T], args: tuple[Any, ...]) -> tuple[T | None, Exception | None]:
    try:
        return func(*args), None
    except Exception as error:  # noqa: BLE001  # raised where the result is awaited
        return None, error


def _settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
