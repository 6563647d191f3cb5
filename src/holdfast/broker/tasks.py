"""Work that takes more than one tick: a task that ends with an answer, whatever happens in it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from holdfast.broker.calls import Call
from holdfast.protocol import Response

if TYPE_CHECKING:
    from holdfast.broker.node import Broker


def answer_by(broker: Broker, call: Call, work: Coroutine[Any, Any, Response]) -> None:
    """Answer with what the work gives; a bug in it costs the connection, not the broker."""
    task = broker.loop.create_task(work)
    broker.running[task] = None

    def done(task: asyncio.Task[Response]) -> None:
        broker.running.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            call.answer(task.result())
        else:
            broker.log.bug("request failed", error, api=call.api.name)
            call.connection.close()

    task.add_done_callback(done)
