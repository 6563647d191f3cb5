"""Everything that clients sent, received and processed: the logs are judged against it.

A record's `key` identifies one send of a producer; a retry sends the same key again. So two copies
of one key in a log are a duplicate, and an acknowledged key without a copy is a loss.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from holdfast.model import NO_OFFSET, Offset


class Status(Enum):
    """The producer's status of a record."""

    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNANSWERED = "unanswered"


@dataclass(slots=True)
class Acknowledgement:
    """One record, and the answer that its producer received."""

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
    """One record that a consumer (group) read or processed."""

    consumer: str
    offset: int
    label: str
    key: int


@dataclass(slots=True)
class ClientHistory:
    """All records that were sent, read and processed, in order."""

    acknowledgements: dict[int, Acknowledgement] = field(default_factory=dict)
    consumed: list[Work] = field(default_factory=list)
    processed: list[Work] = field(default_factory=list)
    committed: dict[str, int] = field(default_factory=dict)
    hidden: dict[int, None] = field(default_factory=dict)
    """Keys that a follower did not return to a consumer, though acknowledged or read before."""
    skipped: dict[int, None] = field(default_factory=dict)
    """Keys of records that a consumer skipped."""

    def add(self, label: str, producer: str, acks: int) -> Acknowledgement:
        """A producer is about to send a record."""
        acknowledgement = Acknowledgement(len(self.acknowledgements), label, producer, acks)
        self.acknowledgements[acknowledgement.key] = acknowledgement
        return acknowledgement

    def acknowledged(self) -> list[Acknowledgement]:
        """Every acknowledged record."""
        return [one for one in self.acknowledgements.values() if one.status is Status.ACKNOWLEDGED]
