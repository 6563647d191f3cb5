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
    "forged-command",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a seed decided before the run begins."""

    seed: int
    faults: tuple[str, ...]
    duration_ms: int
    fault_every_ms: int
    send_every_ms: int
    latency_ms: float
    is_flushed: bool
    """Every record is flushed before it is acknowledged; then every machine may lose power."""
    is_rolling: bool
    """Segments are small: a new one every second or so."""
    is_rebalancing: bool
    """Leaderships go back to the preferred replicas all the time."""
    is_restarted: bool
    """At the end all brokers start again, and everything must still be there."""

    @property
    def summary(self) -> str:
        """One line about the run."""
        faults = ", ".join(self.faults) or "none"
        ways = {
            "every record flushed": self.is_flushed,
            "short segments": self.is_rolling,
            "leaders moved back": self.is_rebalancing,
            "all restarted at the end": self.is_restarted,
        }
        told = "".join(f", {way}" for way, is_on in ways.items() if is_on)
        return f"seed {self.seed}: {self.duration_ms} ms{told}, faults: {faults}"

    def settings(self) -> dict[str, str]:
        """What the brokers are set to."""
        chosen: dict[str, str] = {}
        if self.is_flushed:
            chosen["log.flush.interval.messages"] = "1"
        if self.is_rolling:
            chosen["log.roll.ms"] = "1000"
        if self.is_rebalancing:
            chosen["leader.imbalance.check.interval.seconds"] = "1"
        return chosen


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    dice = Random(seed)  # noqa: S311  # a schedule, not a secret
    return Plan(
        seed=seed,
        faults=tuple(fault for fault in FAULTS if dice.random() < 0.4),
        duration_ms=dice.randrange(2_500, 7_500),
        fault_every_ms=dice.randrange(300, 1_500),
        send_every_ms=dice.randrange(50, 200),
        latency_ms=dice.choice((0.5, 5.0, 30.0)),
        is_flushed=dice.random() < 0.2,
        is_rolling=dice.random() < 0.5,
        is_rebalancing=dice.random() < 0.3,
        is_restarted=dice.random() < 0.3,
    )
