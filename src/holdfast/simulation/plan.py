"""The plan of a simulated run: the faults, their frequency and the settings that a seed selects.

As in seeded runs of the core, every seed switches whole classes of faults on or off.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

FAULTS: Final = (
    *("kill", "kill-in-write", "power-loss", "stop", "pause", "cut", "one-way-cut", "slow"),
    *("reset", "torn-bytes", "session-expiry", "store-away", "controller-loss", "disk-error"),
    "forged-command",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The choices that a seed makes before the run begins."""

    seed: int
    faults: tuple[str, ...]
    duration_ms: int
    fault_every_ms: int
    """In busy stretches; see `traffic_pace`."""
    send_every_ms: int
    """In busy stretches."""
    latency_ms: float
    flush_messages: int
    """flush.messages of the topic; 0: the operating system decides when to flush.

    Every batch has at least as many records, so every acknowledged record is flushed, and all
    machines may lose power, even at the same moment.
    """
    disk_ms: float
    """The longest time that a flush takes. Flushes of several logs may overtake each other."""
    is_rolling: bool
    """Segments are small: logs roll about once per second, and are compacted often."""
    is_rebalancing: bool
    """Leaderships move back to the preferred replicas all the time."""
    is_restarted: bool
    """All brokers restart at the end, and no data may be missing afterwards."""

    @property
    def summary(self) -> str:
        """One line about the run."""
        faults = ", ".join(self.faults) or "none"
        ways = {
            f"flush.messages={self.flush_messages}": self.flush_messages,
            f"flushes of up to {self.disk_ms:g} ms": self.disk_ms > FAST_MS,
            "short segments": self.is_rolling,
            "leaders moved back": self.is_rebalancing,
            "all restarted at the end": self.is_restarted,
        }
        options = "".join(f", {way}" for way, is_on in ways.items() if is_on)
        return f"seed {self.seed}: {self.duration_ms} ms{options}, faults: {faults}"

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """The batch sizes, in records, from which producers choose."""
        least = self.flush_messages
        return (least, least, least + 2) if least > 1 else (1, 1, 1, 3)

    def settings(self) -> dict[str, str]:
        """The settings of the brokers."""
        chosen: dict[str, str] = {}
        if self.flush_messages:
            chosen["log.flush.interval.messages"] = "1"
        if self.is_rolling:
            chosen["log.roll.ms"] = "1000"
            chosen["log.cleaner.backoff.ms"] = "200"
            chosen["log.cleaner.min.cleanable.ratio"] = "0.01"
        if self.is_rebalancing:
            chosen["leader.imbalance.check.interval.seconds"] = "1"
        return chosen

    def topic_settings(self) -> dict[str, str]:
        """The settings of the topic."""
        return {"flush.messages": str(self.flush_messages)} if self.flush_messages else {}


FAST_MS: Final = 2.0


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    rng = Random(seed)  # noqa: S311  # a schedule, not a secret
    return Plan(
        seed=seed,
        faults=tuple(fault for fault in FAULTS if rng.random() < 0.4),
        duration_ms=rng.randrange(100_000, 300_000),
        fault_every_ms=rng.randrange(300, 1_500),
        send_every_ms=rng.randrange(50, 200),
        latency_ms=rng.choice((0.5, 5.0, 30.0)),
        flush_messages=rng.choice((0, 0, 0, 0, 0, 0, 0, 1, 2, 5)),
        disk_ms=rng.choice((FAST_MS, 60.0, 400.0)),
        is_rolling=rng.random() < 0.5,
        is_rebalancing=rng.random() < 0.3,
        is_restarted=rng.random() < 0.3,
    )
