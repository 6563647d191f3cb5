"""Busy and quiet stretches of a run, in turn, as its seed decides.

Faults find their mark where much happens, and a failure takes seconds to play out: a session ends,
a follower lags, a broker that was away comes back. A run is long enough for many failures one after
the other; between two of them the clients send little, so that a quiet minute costs almost nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import Final

BUSY_S: Final = (1.0, 4.0)
QUIET_S: Final = (10.0, 90.0)
QUIETER: Final = 40
"""How many times as long clients wait between two requests while it is quiet."""
LONGEST_S: Final = 8.0
"""What they wait at most."""
CALMER: Final = 12
"""How many times as long it is between two faults while it is quiet."""


class Pace:
    """When it is busy, from the first moment on. `begins_s` is when the clients start."""

    def __init__(self, seed: int, begins_s: float, duration_s: float) -> None:
        rng = Random(seed)  # noqa: S311  # a schedule, not a secret
        self._changes = [begins_s]
        """Where a stretch begins: a busy one, a quiet one, and so on."""
        while self._changes[-1] < begins_s + duration_s:
            self._changes.append(self._changes[-1] + rng.uniform(*BUSY_S))
            self._changes.append(self._changes[-1] + rng.uniform(*QUIET_S))

    def request_s(self, now_s: float, busy_s: float) -> float:
        """How long a client waits that sends every `busy_s` while it is busy."""
        quiet_s = self._quiet_left_s(now_s)
        return min(LONGEST_S, QUIETER * busy_s, quiet_s + busy_s) if quiet_s else busy_s

    def fault_s(self, now_s: float, busy_s: float) -> float:
        """How long it is until the next fault."""
        quiet_s = self._quiet_left_s(now_s)
        return min(CALMER * busy_s, quiet_s + busy_s) if quiet_s else busy_s

    def _quiet_left_s(self, now_s: float) -> float:
        place = bisect_right(self._changes, now_s)
        is_quiet = place < len(self._changes) and not place % 2
        return self._changes[place] - now_s if is_quiet else 0.0
