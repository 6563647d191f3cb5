"""Busy and quiet stretches of a run, in turn, drawn from its seed.

Faults find bugs where much happens, and a failure takes seconds to play out: a session ends, a
follower lags, a broker returns. A run is long enough for many failures in a row; between two of
them the clients send little, so that a quiet minute costs almost nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import Final

BUSY_S: Final = (1.0, 4.0)
QUIET_S: Final = (10.0, 90.0)
QUIETER: Final = 40
"""A client waits so many times longer between two requests in a quiet stretch."""
LONGEST_S: Final = 8.0
"""The longest time that a client waits."""
CALMER: Final = 12
"""Faults are so many times rarer in a quiet stretch."""


class Pace:
    """The busy and quiet stretches. `begins_s` is when the clients start."""

    def __init__(self, seed: int, begins_s: float, duration_s: float) -> None:
        rng = Random(seed)  # noqa: S311  # a schedule, not a secret
        self._changes = [begins_s]
        """The times at which stretches begin: busy and quiet in turn."""
        while self._changes[-1] < begins_s + duration_s:
            self._changes.append(self._changes[-1] + rng.uniform(*BUSY_S))
            self._changes.append(self._changes[-1] + rng.uniform(*QUIET_S))

    def request_s(self, now_s: float, busy_s: float) -> float:
        """How long a client waits that sends every `busy_s` in a busy stretch."""
        quiet_s = self._quiet_left_s(now_s)
        return min(LONGEST_S, QUIETER * busy_s, quiet_s + busy_s) if quiet_s else busy_s

    def fault_s(self, now_s: float, busy_s: float) -> float:
        """The time until the next fault."""
        quiet_s = self._quiet_left_s(now_s)
        return min(CALMER * busy_s, quiet_s + busy_s) if quiet_s else busy_s

    def _quiet_left_s(self, now_s: float) -> float:
        place = bisect_right(self._changes, now_s)
        is_quiet = place < len(self._changes) and not place % 2
        return self._changes[place] - now_s if is_quiet else 0.0
