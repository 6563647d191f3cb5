"""One group of lost records in a trace: its acknowledgement, its copies, its election.

The question is always the same: after the acknowledgement, which election was the first whose
leader did not have the records? `from_traces` draws the conclusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.lab.render.wording import spoken_list, spoken_span
from holdfast.pipeline.audit.causes.history import (
    UNKNOWN,
    Acknowledgement,
    Copy,
    Election,
    History,
    Span,
)
from holdfast.pipeline.audit.causes.traces import Seen

Names = Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is known of the records before the trace is read."""

    span: Span
    count: int
    """The number of records; fewer than the span is long if it has holes."""
    acks: int | None = None
    acked_ms: int | None = None

    @property
    def what(self) -> str:
        """As text for a sentence."""
        if self.count == self.span.size:
            return spoken_span(*self.span)
        return f"{self.count} records between offsets {self.span.start} and {self.span.end - 1}"

    @property
    def them(self) -> str:
        return "it" if self.count == 1 else "them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One piece of a lost span, with everything that the trace says about it."""

    history: History
    asked: Asked
    names: Names
    acknowledgement: Acknowledgement | None
    epoch: int
    copies: tuple[Copy, ...]
    """Every copy of these records in any log."""

    @property
    def acks(self) -> int | None:
        if self.asked.acks is not None:
            return self.asked.acks
        return None if self.acknowledgement is None else self.acknowledgement.acks

    @property
    def what(self) -> str:
        return self.asked.what

    @property
    def them(self) -> str:
        return self.asked.them

    @property
    def they_were(self) -> str:
        return "it was" if self.asked.count == 1 else "they were"

    @property
    def since_ms(self) -> int:
        """The time from which on the fate of the records matters."""
        if self.acknowledgement is not None:
            return self.acknowledgement.first.event.t
        begun = [one.seen.event.t for one in self.history.elections if one.epoch == self.epoch]
        return begun[-1] if begun else 0

    @property
    def is_of_one_member(self) -> bool:
        """Whether the leader was the only in-sync replica when it acknowledged."""
        return self.acknowledgement is not None and len(self.acknowledgement.isr) == 1

    def name(self, broker: int | None) -> str:
        return "nobody" if broker is None else self.names.get(broker, f"b{broker}")

    def listed(self, brokers: Iterable[int]) -> str:
        return spoken_list([self.name(one) for one in dict.fromkeys(brokers)])

    def taken_by(self) -> Election | None:
        """The first election after the acknowledgement whose leader did not have the records."""
        for election in self.history.elections:
            has = election.leader_has(self.asked.span.start, self.epoch)
            if election.epoch > self.epoch and election.leader is not None and not has:
                return election
        return None

    def ended_before(self, election: Election) -> list[Copy]:
        """Copies in the new leader's log that ended before the election, oldest first."""
        return [
            copy
            for copy in self.copies
            if copy.broker == election.leader
            and copy.until is not None
            and copy.until.event.t <= election.seen.event.t
        ]

    def ends(self) -> list[Seen]:
        """The events that ended copies."""
        return [copy.until for copy in self.copies if copy.until is not None]


def cases_of(history: History, asked: Asked, names: Names) -> list[Case]:
    """The possible cases of these records, the likeliest first; none if the trace has nothing.

    Several epochs may have written at one offset, each with an acknowledgement. The last one before
    the producer noted its own is the likeliest, but a producer may note it late.
    """
    offset = asked.span.start
    copies = history.copies_of(offset)
    found: dict[int, Acknowledgement | None] = {}
    for acknowledgement in reversed(history.acknowledgements):
        if _is_about(acknowledgement, offset, copies) and _is_before(acknowledgement.first, asked):
            found.setdefault(acknowledgement.epoch, acknowledgement)
    for election in reversed(history.elections):
        # A kill loses the last lines of a trace. The leader of that time made the acknowledgement.
        if asked.acked_ms is not None and _is_before(election.seen, asked):
            found.setdefault(election.epoch, None)
    if asked.acked_ms is None:
        ended = [copy for copy in history.ended if copy.span.covers(offset)]
        found |= {copy.epoch: None for copy in ended if copy.epoch not in found}
    return [
        Case(
            history=history,
            asked=asked,
            names=names,
            acknowledgement=acknowledgement,
            epoch=epoch,
            copies=tuple(copy for copy in copies if copy.is_of(offset, epoch)),
        )
        for epoch, acknowledgement in found.items()
    ]


def _is_before(seen: Seen, asked: Asked) -> bool:
    return asked.acked_ms is None or seen.event.t <= asked.acked_ms


def _is_about(acknowledgement: Acknowledgement, offset: int, copies: list[Copy]) -> bool:
    """Whether acknowledgements cover this offset, and a log had what their epoch wrote there."""
    if not acknowledgement.span.covers(offset) or acknowledgement.epoch == UNKNOWN:
        return False
    return any(copy.epoch == acknowledgement.epoch for copy in copies)
