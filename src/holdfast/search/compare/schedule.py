"""The contenders, and their faults, which are fixed before a run begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from holdfast.core import ACKS_ALL, Rules, Settings
from holdfast.lab.scenarios.options import build

DURATION_MS: Final = 20_000
LAG_MS: Final = 1_500
KINDS: Final = ("crash", "power-loss", "pause", "cut")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A rule that decides when a record is committed."""

    name: str
    settings: Settings
    rules: Rules
    acks: int = ACKS_ALL
    idempotent: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One fault: its kind, broker, start and duration."""

    at_ms: int
    kind: str
    broker: str
    lasts_ms: int


def contenders(replicas: int, options: Mapping[str, str]) -> tuple[Contender, ...]:
    """The ISR rule with the smallest min.insync.replicas and with a majority, and the majority
    rule.
    """
    most = replicas // 2 + 1
    named = {
        "ISR, min.insync.replicas=1": {"min_insync_replicas": "1"},
        f"ISR, min.insync.replicas={most}": {"min_insync_replicas": str(most)},
        "majority": {"commit_rule": "majority"},
    }
    common = {"replica_lag_time_max_ms": str(LAG_MS), **options}
    made = {name: build({**common, **own}, replicas) for name, own in named.items()}
    return tuple(
        Contender(name=name, settings=settings, rules=rules)
        for name, (settings, rules) in made.items()
    )


def schedule_of(seed: int, names: Sequence[str]) -> tuple[Strike, ...]:
    """The faults of a seed; each seed switches whole classes of faults on or off."""
    rng = Random(seed)  # noqa: S311  # a schedule, not a secret
    kinds = [kind for kind in KINDS if rng.random() < 0.6] or ["crash"]
    period = rng.randrange(800, 4_000)
    strikes: list[Strike] = []
    at_ms = period
    # At most DURATION_MS / 400 rounds: each one advances the time.
    while at_ms < DURATION_MS * 3 // 4:
        strikes.append(
            Strike(
                at_ms=at_ms,
                kind=rng.choice(kinds),
                broker=rng.choice(names),
                lasts_ms=rng.randrange(200, 5_000),
            )
        )
        at_ms += rng.randrange(period // 2, period * 3 // 2)
    return tuple(strikes)
