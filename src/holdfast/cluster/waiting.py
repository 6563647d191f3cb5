"""Waits for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from holdfast.cluster.errors import ClusterTimeoutError

T = TypeVar("T")

LOOK_S: Final = 0.01
LONGEST_LOOK_S: Final = 0.1


def wait_for(look: Callable[[], T | None], timeout_s: float, what: Callable[[], str]) -> T:
    """Poll until the condition returns something; `what` names it in the error."""
    deadline = time.monotonic() + timeout_s
    pause_s = LOOK_S
    while True:
        found = look()
        if found is not None:
            return found
        if time.monotonic() >= deadline:
            raise ClusterTimeoutError(f"{what()}, after {timeout_s:g} s")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, LONGEST_LOOK_S)
