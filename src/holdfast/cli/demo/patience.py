"""How long the demo waits: as long as something makes progress, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

IDLE_S: Final = 600.0
"""Seconds without any progress. Generous, so that only a hang takes longer."""
LOOK_S: Final = 1.0


class Patience:
    """Expires when nothing visible has changed for a while."""

    def __init__(
        self,
        progress: Callable[[], object],
        idle_s: float = IDLE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._progress = progress
        self._idle_s = idle_s
        self._clock = clock
        self._seen = progress()
        self._changed_s = self._looked_s = clock()

    @property
    def is_over(self) -> bool:
        """Cheap: it looks at most once per second."""
        now_s = self._clock()
        if now_s - self._looked_s < LOOK_S:
            return False
        seen, self._looked_s = self._progress(), now_s
        if seen != self._seen:
            self._seen, self._changed_s = seen, now_s
        return now_s - self._changed_s > self._idle_s
