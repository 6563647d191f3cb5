"""Waits for a condition with a deadline, instead of a fixed sleep."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

DEADLINE_S = 300.0
"""So generous that only something broken reaches it, also on a busy machine."""
PAUSE_S = 0.01


def wait_until(condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Return when the condition holds; fail with `what` if it does not in time."""
    ends = time.monotonic() + deadline_s
    never = threading.Event()
    while not condition():
        assert time.monotonic() < ends, f"not within {deadline_s:g} s: {what}"
        never.wait(PAUSE_S)


async def eventually(
    condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S
) -> None:
    """The same on an event loop, in its time."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + deadline_s
    while not condition():
        assert loop.time() < ends, f"not within {deadline_s:g} s: {what}"
        await asyncio.sleep(PAUSE_S)
