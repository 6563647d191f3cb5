"""The bounds of a search: how many faults of each kind it tries. It says nothing beyond them.

Each kind of fault has a number: so many crashes, so many lost messages. What is not a fault
(delivering a message, a follower's fetch, the end of a dead broker's session) is free.

Time is bounded too. Messages flow immediately, in a fixed order of the links, and everything else
happens between such bursts. A *delay* holds one link back until the search releases it, so with `n`
delays the search tries every schedule that differs from the plain one in `n` places (delay-bounded
scheduling: most races need very few). With delays=99 any message may arrive at any time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields

ANY = 99
"""No limit on delays."""


def _bound(default: int, meaning: str, most: int = 9) -> int:
    value: int = field(default=default, metadata={"meaning": meaning, "most": most})
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """One number per kind of event or fault; plain values that another process can use."""

    replicas: int = _bound(3, "brokers with a replica of the partition", 5)
    in_sync: int = _bound(0, "how many of them begin in the ISR; 0: all")
    settled: int = _bound(0, "records that all in-sync replicas hold before the search begins")
    records: int = _bound(1, "records that producers send, one batch each")
    crashes: int = _bound(0, "processes that die; their page cache survives")
    power_losses: int = _bound(0, "machines that lose power, and what was not flushed")
    stops: int = _bound(0, "clean stops of a process, with everything flushed")
    shutdowns: int = _bound(0, "brokers that ask the controller for a controlled shutdown")
    restarts: int = _bound(0, "starts of a broker that is down")
    expiries: int = _bound(0, "sessions that end while their broker runs")
    elections: int = _bound(0, "elections that an operator asks for")
    lowerings: int = _bound(0, "times that an operator lowers min.insync.replicas by one")
    failovers: int = _bound(0, "controllers that are replaced by another")
    partitions: int = _bound(
        0, "brokers disconnected from all others and the controller, for a time"
    )
    delays: int = _bound(0, f"links that are slow for a time; {ANY}: messages take any order", ANY)
    losses: int = _bound(0, "messages that get lost")
    unheard: int = _bound(0, "LeaderAndIsr that get lost; a later one may reach the broker")
    duplicates: int = _bound(0, "messages that arrive twice")
    overtakings: int = _bound(0, "messages that overtake others of their link")
    lags: int = _bound(0, "times that a leader finds followers too slow")
    survivals: int = _bound(0, "deaths after which what the broker had sent still arrives")
    disk_losses: int = _bound(0, "disks lost by brokers that are down")
    disk_errors: int = _bound(0, "disks that begin to refuse writes")
    flushes: int = _bound(
        0, "flushes, by the system or a rule; with 0 those of a rule take no time at all"
    )
    epoch_losses: int = _bound(0, "epoch checkpoints lost by brokers that are down")
    slow_sessions: int = _bound(0, "registrations whose messages can be delayed")
    late_joins: int = _bound(0, "1: a leader proposes a joiner some time after it qualified", 1)
    readers: int = _bound(0, "consumers, which may read from any replica that serves them", 1)
    versions: int = _bound(9, "changes of the partition state (leader or ISR) in one run", 30)

    def to_dict(self) -> dict[str, int]:
        """The bounds by name."""
        return asdict(self)

    def describe(self) -> str:
        """The bounds that are not 0, in words."""
        shown = {"replicas": self.replicas, "records": self.records}
        shown |= {one: count for one, count in asdict(self).items() if count and one != "versions"}
        return ", ".join(f"{one.replace('_', '-')} {count}" for one, count in shown.items())


def bound_names() -> tuple[str, ...]:
    """The names of all bounds."""
    return tuple(one.name for one in fields(Bounds))


def bound_meaning(name: str) -> tuple[str, int, int]:
    """What a bound counts, its default and the most it may be."""
    known = {one.name: one for one in fields(Bounds)}[name]
    assert isinstance(known.default, int)
    return str(known.metadata["meaning"]), known.default, int(known.metadata["most"])


_LASTING = ("replicas", "in_sync", "settled", "late_joins", "readers", "versions")
BUDGETED = tuple(name for name in bound_names() if name not in _LASTING)
"""Bounds that events use up, in the order in which a state counts them."""
