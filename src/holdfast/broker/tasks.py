"""Work that takes more than one tick: a task that always ends with an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Final

from holdfast.broker.network.calls import Call
from holdfast.protocol import Response

AT_ONCE: Final = 20
"""Steps of long work before the event loop runs: some milliseconds, more on a slow disk."""


async def in_parts(work: Iterable[object]) -> None:
    """Do long work in parts, and let the event loop run in between: other requests wait, and a
    broker whose loop stands still loses its session.
    """
    for place, _ in enumerate(work):
        if place % AT_ONCE == 0:
            await asyncio.sleep(0)


class RequestTasks:
    """Tasks that answer a call. The loop holds tasks weakly, so they are kept here."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: dict[asyncio.Task[Response], None] = {}

    def answer_by(self, call: Call, work: Coroutine[Any, Any, Response]) -> None:
        """Answer with the result of the work; a bug in it closes the connection, not the broker."""
        task = self._loop.create_task(work)
        self._running[task] = None

        def done(task: asyncio.Task[Response]) -> None:
            self._running.pop(task, None)
            if task.cancelled():
                return
            error = task.exception()
            if error is None:
                call.answer(task.result())
            else:
                call.fail(error)

        task.add_done_callback(done)
