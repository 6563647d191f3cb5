"""Draws the faults of a run from one seed: their kinds, targets, times and durations.

A run is a sequence of phases. After each phase all faults end, and every replica must be in sync
again before the next phase begins. A phase depends only on the seed and its number, so one seed
gives one schedule, however many phases fit into the time. The schedule does not decide what clients
and brokers do between two faults: it meets another interleaving in each run.

A phase switches whole kinds of faults on or off (a swarm, as in `rng`). With safe settings it stays
within what they guarantee (docs/chaos.md): any number of brokers may die and come back, but only
one broker per phase loses what it had not flushed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

LEADER: Final = "leader"
CONTROLLER: Final = "controller"
"""Targets that are resolved when the fault begins."""
ALL: Final = "all"

POWER_LOSS: Final = "power-loss"
ROLLING: Final = "rolling-restart"
DEPOSE: Final = "depose"
"""Disconnects a leader from its followers, lets it acknowledge alone, and kills it."""

KINDS: Final = {
    "kill": "kill -9; what was written stays in the page cache",
    POWER_LOSS: "killed, and what was not flushed is gone",
    "stop": "a controlled shutdown",
    "pause": "SIGSTOP",
    "isolate": "disconnected from brokers, clients and the store, both ways",
    "partition": "disconnected from the other brokers, both ways",
    "one-way": "what it sends to other brokers does not arrive",
    "deaf": "what other brokers send to it does not arrive",
    "delay": "what it sends to other brokers arrives later",
    "drop": "some of its messages are lost, and their connections are closed",
    "store-cut": "disconnected from the coordination store only",
    "expire": "its session ends; it registers again",
    "io-error": "its disk fails; it is restarted with a working one",
    "disk-full": "its disk is full; it is restarted with a working one",
    ROLLING: "all brokers, one after the other, each in sync again before the next; a phase alone",
}
"""The kinds that may be drawn with safe settings."""

UNSAFE_KINDS: Final = ("kill", POWER_LOSS, "pause", "isolate", "partition", "delay")
TARGETS: Final = (LEADER, LEADER, CONTROLLER)
"""Targets other than a broker's number; faults of leaders find most bugs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault."""

    at_s: float
    """Seconds after the beginning of its phase."""
    kind: str
    target: int | str
    """A broker, `leader` (of a partition that is drawn), `controller` or `all`."""
    partition: int = 0
    """The partition whose leader is the target."""
    lasts_s: float = 0.0
    amount: float = 0.0
    """Of a delay: seconds. Of a drop: its probability."""

    def __str__(self) -> str:
        whom = {ALL: "all brokers", CONTROLLER: "the controller"}.get(
            str(self.target), f"broker {self.target}"
        )
        whom = f"the leader of partition {self.partition}" if self.target == LEADER else whom
        amount = f" by {self.amount * 1000:.0f} ms" if self.kind == "delay" else ""
        amount = f" of {self.amount:.0%}" if self.kind == "drop" else amount
        lasts = f" for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return f"{self.kind}{amount}: {whom}{lasts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Faults that may overlap, between two points at which every replica is in sync."""

    number: int
    most_at_once: int
    """How many brokers may be broken at the same time."""
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be drawn."""

    brokers: tuple[int, ...]
    partitions: int
    is_safe: bool = True
    kinds: tuple[str, ...] = tuple(KINDS)


def phases(seed: int, limits: Limits) -> Iterator[Phase]:
    """An endless sequence of phases."""
    number = 0
    while True:
        rng = Random(f"holdfast chaos {seed} {number}")  # noqa: S311  # a schedule, no secret
        yield _phase(number, rng, limits)
        number += 1


def _phase(number: int, rng: Random, limits: Limits) -> Phase:
    kinds = [kind for kind in limits.kinds if kind != ROLLING]
    if ROLLING in limits.kinds and (not kinds or rng.random() < 0.1):
        rolling = Fault(at_s=0.0, kind=ROLLING, target=ALL)
        return Phase(number=number, most_at_once=1, faults=(rolling,))
    most = rng.choices((1, 2, len(limits.brokers)), (5, 3, 2))[0]
    kinds = rng.sample(kinds, rng.randint(1, min(5, len(kinds))))
    length_s = rng.uniform(5.0, 12.0)
    gap_s = rng.choice((0.3, 1.0, 2.0))
    faults: list[Fault] = []
    at_s = rng.uniform(0.0, gap_s)
    while at_s < length_s:
        kind = rng.choice(kinds)
        # Two power losses between two points of sync could take both copies of a record.
        if kind != POWER_LOSS or not any(one.kind == POWER_LOSS for one in faults):
            faults.append(_fault(at_s, kind, rng, limits))
        at_s = max(at_s, _room_s(faults, most)) + rng.uniform(0.1, 2 * gap_s)
    if not limits.is_safe:
        ended_s = max((one.at_s + one.lasts_s for one in faults), default=0.0)
        faults.append(_beyond(ended_s + 1.0, rng, limits))
    return Phase(number=number, most_at_once=most, faults=tuple(faults))


def _room_s(faults: list[Fault], most: int) -> float:
    """When fewer than `most` of the faults so far will still last."""
    ends = sorted((one.at_s + one.lasts_s for one in faults), reverse=True)
    return ends[most - 1] if len(ends) >= most else 0.0


def _fault(at_s: float, kind: str, rng: Random, limits: Limits) -> Fault:
    target: int | str = rng.choice(limits.brokers)
    if rng.random() < 0.5:
        target = rng.choice(TARGETS)
    amounts = {"delay": (0.02, 0.2, 1.0), "drop": (0.01, 0.1, 0.5)}
    return Fault(
        at_s=round(at_s, 2),
        kind=kind,
        target=target,
        partition=rng.randrange(limits.partitions),
        lasts_s=0.0 if kind == "expire" else round(rng.choice((0.3, 1.0, 3.0, 5.0)), 1),
        amount=rng.choice(amounts.get(kind, (0.0,))),
    )


def _beyond(at_s: float, rng: Random, limits: Limits) -> Fault:
    """A fault that no settings survive: a leader acknowledges alone and dies, or all lose power."""
    if rng.random() < 0.5:
        return Fault(at_s=round(at_s, 2), kind=POWER_LOSS, target=ALL, lasts_s=0.5)
    partition = rng.randrange(limits.partitions)
    return Fault(at_s=round(at_s, 2), kind=DEPOSE, target=LEADER, partition=partition)
