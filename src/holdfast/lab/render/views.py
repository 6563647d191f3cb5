"""Snapshots of a scenario: every replica, the store, the acknowledgements, the consumers.

Plain frozen values without rules. `folding` makes them from trace events; the terminal and the web
draw them. Consecutive snapshots share every part that did not change, so hundreds of snapshots cost
little more than their events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Literal, NamedTuple

from holdfast.lab.render.wording import headline

Role = Literal["leader", "follower", "offline", "none"]
Answer = Literal["sent", "acknowledged", "refused", "unanswered"]
Status = Literal["sent", "acknowledged", "refused", "unanswered", "endangered", "lost"]


NOT_REPORTED = -1
"""The flushed end of a replica whose broker does not report it, as Apache Kafka's do not."""


class Cell(NamedTuple):
    """One record in one log. Offset and epoch together name a record; the label is for people."""

    offset: int
    epoch: int
    label: str

    @property
    def anonymous(self) -> bool:
        """True when the trace did not name the record (a broker never opens a batch)."""
        return self.label == str(self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaView:
    """One replica: its log, its role and its condition."""

    id: int
    name: str
    alive: bool = True
    paused: bool = False
    down: str = ""
    """Why it is not alive: crashed, lost power, stopped. Empty while alive."""
    fault: str = ""
    """A disk error in force, by its name."""
    session: bool = True
    """False after the store has ended this broker's session."""
    role: Role = "none"
    """The role that the replica has taken; two replicas may act as leader."""
    leader: int | None = None
    """The leader that it follows."""
    leader_epoch: int = -1
    broker_epoch: int | None = None
    log_start: int = 0
    log_end_offset: int = 0
    high_watermark: int = 0
    flushed_end: int = 0
    """Everything below is on the disk, the rest is only in the page cache; or NOT_REPORTED."""
    in_isr: bool = False
    """According to the store; the ISR that the leader uses may differ."""
    eligible: bool = False
    cells: tuple[Cell, ...] = ()
    """The log, oldest first; of a long log only the newest cells."""
    remote: tuple[tuple[int, int | None], ...] = ()
    """As leader: the log end offset of each follower. None: no fetch in this leader epoch yet."""
    counts_on: tuple[int, ...] | None = None
    """As leader: the ISR that it uses, which may differ from the one in the store."""
    proposed: tuple[int, ...] | None = None
    """As leader: the ISR that it has asked the store for."""
    parked: tuple[tuple[int, int], ...] = ()
    """As leader: fetches that wait for a record, as (follower, fetch offset)."""

    @property
    def offline(self) -> bool:
        return self.role == "offline"

    @property
    def condition(self) -> str:
        """The role in one word; or `dead` or `paused`."""
        if not self.alive:
            return "dead"
        return "paused" if self.paused else self.role


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreView:
    """The state of the partition in the coordination store, which decides who leads."""

    leader: int | None = None
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()
    eligible: tuple[int, ...] = ()
    rule: str = ""
    """The rule by which the leader was elected, if not the usual one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """One record as its producer sees it."""

    producer: str
    record: str
    acks: str
    answer: Answer = "sent"
    status: Status = "sent"
    """The answer; after an acknowledgement also endangered (no consumer can read it) or lost."""
    offset: int | None = None
    epoch: int | None = None
    error: str = ""
    held: tuple[int, ...] = ()
    """The replicas, running or not, whose log has the record."""
    copies: int = 0
    """The most copies in one of these logs; more than one is a duplicate."""


def alike(
    acknowledgements: Sequence[Acknowledgement], most: int
) -> list[tuple[Acknowledgement, ...]]:
    """The acknowledgements in groups: more than `most` are grouped by neighbours of one status.

    Fewer than three neighbours stay apart, and an endangered or lost record is always alone.
    """
    groups: list[tuple[Acknowledgement, ...]] = []
    for status, run in groupby(acknowledgements, key=lambda entry: entry.status):
        members = tuple(run)
        alone = (
            len(acknowledgements) <= most or len(members) < 3 or status in ("endangered", "lost")
        )
        groups += [(member,) for member in members] if alone else [members]
    return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerView:
    name: str
    position: int | None = None
    """The next offset it will ask for."""
    committed: int | None = None
    record: str = ""
    error: str = ""
    alive: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictView:
    verdict: str
    outcome: str
    reason: str
    lost: tuple[str, ...] = ()
    exposed_lost: tuple[str, ...] = ()
    refused_kept: tuple[str, ...] = ()
    diverged: tuple[str, ...] = ()

    @property
    def harm(self) -> bool:
        """Whether an acknowledged or readable record is gone, or logs differ."""
        return bool(self.lost or self.exposed_lost or self.diverged)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        return f"{headline(asdict(self))}; {self.reason}" if self.reason else headline(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything at one moment."""

    replicas: tuple[ReplicaView, ...] = ()
    store: StoreView = StoreView()
    acknowledgements: tuple[Acknowledgement, ...] = ()
    consumers: tuple[ConsumerView, ...] = ()
    disconnected: tuple[tuple[str, str], ...] = ()
    """Links that carry nothing, as (source, target) by name."""
    rules: tuple[tuple[str, str], ...] = ()
    """The settings and switches of the scenario."""
    verdict: VerdictView | None = None

    def name(self, broker: int | None) -> str:
        """A broker's name."""
        for replica in self.replicas:
            if replica.id == broker:
                return replica.name
        return "nobody" if broker is None or broker < 0 else f"b{broker}"

    def names(self, brokers: tuple[int, ...]) -> str:
        return " ".join(self.name(broker) for broker in brokers)
