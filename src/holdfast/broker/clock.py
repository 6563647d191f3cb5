"""The two clocks of a broker.

Everything that waits or measures uses `now_ms`, which never goes back. `wall_ms` is the date, for
record timestamps and for people; only retention decides by it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Clock:
    """The clock of the event loop and the clock of the machine."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, wall_s: Callable[[], float] = time.time
    ) -> None:
        self.loop = loop
        self._wall_s = wall_s

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        return int(self.loop.time() * 1000)

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return int(self._wall_s() * 1000)
