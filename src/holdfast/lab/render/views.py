"""What a person may see at one moment: every replica, the store, the promises, the readers.

Plain frozen values without rules of their own. `folding` makes them from trace events; the terminal
and the web draw them. Two neighbouring moments share every part that did not change, so a story of
hundreds of moments costs little more than its events.
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
    """One replica: what it has, what it believes, and how it is."""

    id: int
    name: str
    alive: bool = True
    paused: bool = False
    down: str = ""
    """Why it is not alive: crashed, lost power, stopped. Empty while alive."""
    fault: str = ""
    """A disk error in force, by its name."""
    session: bool = True
    """False when the store no longer believes that this broker lives."""
    role: Role = "none"
    """What the replica believes of itself; two may believe that they lead."""
    leader: int | None = None
    """Whom it believes to be the leader."""
    leader_epoch: int = -1
    broker_epoch: int | None = None
    log_start: int = 0
    log_end_offset: int = 0
    high_watermark: int = 0
    flushed_end: int = 0
    """Everything below is on the disk; the rest is only in the page cache."""
    in_isr: bool = False
    """According to the store, whatever the leader believes."""
    eligible: bool = False
    cells: tuple[Cell, ...] = ()
    """The log, oldest first; of a long log only the newest cells."""
    remote: tuple[tuple[int, int | None], ...] = ()
    """As leader: how far it believes each other replica to be. None: not heard of in this reign."""
    counts_on: tuple[int, ...] | None = None
    """As leader: the ISR that it works with, which may differ from the store's."""
    proposed: tuple[int, ...] | None = None
    """As leader: the ISR that it has asked the store for."""
    parked: tuple[tuple[int, int], ...] = ()
    """As leader: fetches that wait for a record, as (follower, fetch offset)."""

    @property
    def offline(self) -> bool:
        return self.role == "offline"

    @property
    def condition(self) -> str:
        """One word for the lane's badge: what it does, or why it does nothing."""
        if not self.alive:
            return "dead"
        return "paused" if self.paused else self.role


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreView:
    """What the agreed store says of the partition: the only truth about who leads."""

    leader: int | None = None
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()
    eligible: tuple[int, ...] = ()
    rule: str = ""
    """By which rule the present leader was chosen, if not the usual one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """One record as its producer sees it."""

    producer: str
    record: str
    acks: str
    answer: Answer = "sent"
    status: Status = "sent"
    """The answer; or, after a promise: endangered (only where no reader gets it) or lost."""
    offset: int | None = None
    epoch: int | None = None
    error: str = ""
    held: tuple[int, ...] = ()
    """The replicas, dead or alive, whose log has the record."""
    copies: int = 0
    """How often the fullest of these logs has it; more than one is a duplicate."""


def alike(acknowledgements: Sequence[Acknowledgement], most: int) -> list[tuple[Acknowledgement, ...]]:
    """The promises in groups: if there are more than `most`, neighbours of one status together.

    Few neighbours stay apart, and a promise in danger or broken always stands alone.
    """
    groups: list[tuple[Acknowledgement, ...]] = []
    for status, run in groupby(acknowledgements, key=lambda acknowledgement: acknowledgement.status):
        members = tuple(run)
        alone = len(acknowledgements) <= most or len(members) < 3 or status in ("endangered", "lost")
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
        """Whether a record is gone that somebody counted on, or logs differ."""
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
    """Links that carry nothing, by name, from and to."""
    rules: tuple[tuple[str, str], ...] = ()
    """The settings and switches of the story."""
    verdict: VerdictView | None = None

    def name(self, broker: int | None) -> str:
        """The name people know a broker by."""
        for replica in self.replicas:
            if replica.id == broker:
                return replica.name
        return "nobody" if broker is None or broker < 0 else f"b{broker}"

    def names(self, brokers: tuple[int, ...]) -> str:
        return " ".join(self.name(broker) for broker in brokers)
