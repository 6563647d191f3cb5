"""Time, of which a broker has two kinds.

Everything that waits or measures uses `now_ms`, which never goes back. `wall_ms` is the date, for
timestamps of records and for people; nothing is decided by it but retention.
"""

from __future__ import annotations

import asyncio
import time


class Clock:
    """The loop's clock and the machine's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        """Milliseconds since some moment, never falling."""
        return int(self._loop.time() * 1000)

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return int(time.time() * 1000)
