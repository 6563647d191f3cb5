"""Dice for a whole simulated cluster: which faults a seed allows, how often, with which settings.

As with seeded runs of the core, every seed switches whole classes of faults on or off.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

FAULTS: Final = (
    "kill",
    "kill-in-write",
    "power-loss",
    "stop",
    "pause",
    "cut",
    "one-way-cut",
    "slow",
    "reset",
    "torn-bytes",
    "session-expiry",
    "store-away",
    "controller-loss",
    "disk-error",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a seed decided before the run begins."""

    seed: int
    faults: tuple[str, ...]
    duration_s: float
    fault_every_s: float
    send_every_s: float
    latency_s: float
    is_flushed: bool
    """Every record is flushed before it is acknowledged; then every machine may lose power."""

    @property
    def summary(self) -> str:
        """One line about the run."""
        faults = ", ".join(self.faults) or "none"
        flushed = ", every record flushed" if self.is_flushed else ""
        return f"seed {self.seed}: {self.duration_s:.1f} s{flushed}, faults: {faults}"


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    dice = Random(seed)  # noqa: S311  # a schedule, not a secret
    return Plan(
        seed=seed,
        faults=tuple(fault for fault in FAULTS if dice.random() < 0.4),
        duration_s=dice.uniform(4.0, 12.0),
        fault_every_s=dice.uniform(0.3, 1.5),
        send_every_s=dice.uniform(0.05, 0.2),
        latency_s=dice.choice((0.0005, 0.005, 0.03)),
        is_flushed=dice.random() < 0.2,
    )
