"""What clients were told and did: the truth that logs are judged against.

A record's `key` names one intention of a producer; a retry sends the same key again. So two copies
of one key in a log are a duplicate, and a key with a success and no copy is a loss.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from holdfast.model import NO_OFFSET, Offset


class Status(Enum):
    """What the producer knows of a record."""

    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNANSWERED = "unanswered"


@dataclass(slots=True)
class Acknowledgement:
    """One record and what its producer was told."""

    key: int
    label: str
    producer: str
    acks: int
    status: Status = Status.SENT
    offset: Offset = NO_OFFSET
    error: str = ""
    leader_epoch: int = -1
    exposed: bool = False
    """Was below the high watermark of a presumed leader: a consumer could have read it."""


@dataclass(slots=True)
class Work:
    """What one consumer (group) did with a record."""

    consumer: str
    offset: int
    label: str
    key: int


@dataclass(slots=True)
class Ledger:
    """All promises and all work, in the order they happened."""

    acknowledgements: dict[int, Acknowledgement] = field(default_factory=dict)
    consumed: list[Work] = field(default_factory=list)
    processed: list[Work] = field(default_factory=list)
    committed: dict[str, int] = field(default_factory=dict)
    hidden: dict[int, None] = field(default_factory=dict)
    """Keys that a follower did not show to a reader, though promised or read before."""
    skipped: dict[int, None] = field(default_factory=dict)
    """Keys of records that a reader went past without getting them."""

    def add(self, label: str, producer: str, acks: int) -> Acknowledgement:
        """A producer is about to send a record."""
        acknowledgement = Acknowledgement(len(self.acknowledgements), label, producer, acks)
        self.acknowledgements[acknowledgement.key] = acknowledgement
        return acknowledgement

    def acknowledged(self) -> list[Acknowledgement]:
        """Every record whose producer got a success."""
        return [one for one in self.acknowledgements.values() if one.status is Status.ACKNOWLEDGED]
