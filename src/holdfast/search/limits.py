"""How far a search has come, and its limits: a number of states, time or memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

_FORM: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[a-zA-Z]*)")
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600}
_BYTES: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class LimitError(ValueError):
    """The text is not a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many states a search has visited."""

    distinct: int
    generated: int
    """The initial state and all successors, known ones included, as TLC counts them."""
    depth: int
    """The number of levels; of the specification with that of the initial state, as TLC counts."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Limits:
    states: int | None = None
    seconds: float | None = None
    memory: int | None = None
    """Peak memory of the process, in bytes."""

    def reached(self, states: int, seconds: float) -> str | None:
        """The limit that is reached, in words."""
        if self.states is not None and states >= self.states:
            return f"{self.states:,} states"
        if self.seconds is not None and seconds >= self.seconds:
            return f"{self.seconds:g} seconds"
        if self.memory is not None and peak_memory() >= self.memory:
            return f"{self.memory / 2**20:,.0f} MiB of memory"
        return None


def parse_limits(texts: Iterable[str]) -> Limits:
    """`1000000` (states), `60s`, `5m`, `2h`, `512MiB`, `2GiB`; the last one of a kind counts."""
    limits = Limits()
    for text in texts:
        match = _FORM.fullmatch(text)
        number, unit = (float(match["number"]), match["unit"]) if match else (0.0, "?")
        if unit == "" and number.is_integer() and number:
            limits = replace(limits, states=int(number))
        elif unit in _SECONDS and number:
            limits = replace(limits, seconds=number * _SECONDS[unit])
        elif unit in _BYTES and number:
            limits = replace(limits, memory=int(number * _BYTES[unit]))
        else:
            raise LimitError(f"{text!r} is no limit")
    return limits


def peak_memory() -> int:
    """Peak memory of this process, in bytes."""
    import resource  # Unix only, as is this limit
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 2**10
