"""The random plan of a seeded run: one integer decides the faults, the delays and the traffic.

Every seed switches whole classes of faults on or off (swarm testing): a run in which everything
fails at the same time rarely gets far, and a run with one kind of fault explores that one deeply.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

FAULTS = (
    *("crash", "power-loss", "stop", "pause", "cut", "one-way-cut", "loss", "duplication"),
    *("reordering", "session-expiry", "election", "controller-failover", "disk-error"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The choices that a seed makes before the run begins."""

    seed: int
    faults: tuple[str, ...]
    duration_ms: int
    fault_every_ms: int
    send_every_ms: int
    delay_ms: int
    loss_percent: int
    checkpoint_every_ms: int

    @property
    def summary(self) -> str:
        """One line about the run."""
        faults = ", ".join(self.faults) or "none"
        return f"seed {self.seed}: {self.duration_ms} ms, faults: {faults}"


def plan_of(seed: int) -> tuple[Plan, Random]:
    """The plan of a seed, and the random generator for the rest of the run."""
    rng = Random(seed)  # noqa: S311  # a schedule, not a secret
    faults = tuple(fault for fault in FAULTS if rng.random() < 0.5)
    plan = Plan(
        seed=seed,
        faults=faults,
        duration_ms=rng.randrange(3_000, 12_000),
        fault_every_ms=rng.randrange(100, 900),
        send_every_ms=rng.randrange(15, 120),
        delay_ms=rng.choice((2, 10, 40)),
        loss_percent=rng.choice((1, 5, 15)),
        checkpoint_every_ms=rng.choice((200, 2_000)),
    )
    return plan, rng
