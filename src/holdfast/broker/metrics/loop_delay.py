"""Measures how late the event loop is: everything that the broker does waits that long."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

from holdfast.broker.histogram import DELAY_BOUNDS_S, Histogram

PERIOD_S: Final = 0.25


class LoopDelay:
    """A timer that notes how late it is called."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.times = Histogram(DELAY_BOUNDS_S)
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Measure from now on."""
        self._timer = self._loop.call_later(PERIOD_S, self._called, perf_counter() + PERIOD_S)

    def _called(self, due_s: float) -> None:
        self.times.observe(max(0.0, perf_counter() - due_s))
        self.start()

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()
