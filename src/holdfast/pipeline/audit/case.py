"""One group of lost records, put together from a trace: its promise, its copies, its election.

The question is always the same: after the promise, which election was the first whose leader did
not have the records? `reasons` says what follows from the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.lab.telling.wording import spoken_list, spoken_span
from holdfast.pipeline.audit.history import UNKNOWN, Copy, Election, History, Promise, Span
from holdfast.pipeline.audit.traces import Seen

Names = Mapping[int, str]
_SLACK_MS: Final = 1000
"""A producer hears of its promise a little after the broker made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is known of the records before the trace is looked at."""

    span: Span
    count: int
    """Records meant; fewer than the span is long if it has holes."""
    acks: int | None = None
    acked_ms: int | None = None

    @property
    def what(self) -> str:
        """Spoken."""
        if self.count == self.span.size:
            return spoken_span(*self.span)
        return f"{self.count} records between offsets {self.span.start} and {self.span.end - 1}"

    @property
    def them(self) -> str:
        return "it" if self.count == 1 else "them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One piece of a lost span, put together."""

    history: History
    asked: Asked
    names: Names
    promise: Promise | None
    epoch: int
    since_ms: int
    copies: tuple[Copy, ...]
    """Every stay of these very records in any log."""

    @property
    def acks(self) -> int | None:
        if self.asked.acks is not None:
            return self.asked.acks
        return None if self.promise is None else self.promise.acks

    @property
    def what(self) -> str:
        return self.asked.what

    @property
    def them(self) -> str:
        return self.asked.them

    @property
    def is_of_one_member(self) -> bool:
        """Whether the leader was the only one in sync when it promised."""
        return self.promise is not None and len(self.promise.isr) == 1

    def name(self, broker: int | None) -> str:
        return "nobody" if broker is None else self.names.get(broker, f"b{broker}")

    def listed(self, brokers: Iterable[int]) -> str:
        return spoken_list([self.name(one) for one in dict.fromkeys(brokers)])

    def taken_by(self) -> Election | None:
        """The first election after the promise whose leader did not have the records."""
        for election in self.history.elections:
            is_later = election.seen.event.t >= self.since_ms and election.epoch > self.epoch
            has = election.leader_has(self.asked.span.start, self.epoch)
            if is_later and election.leader is not None and not has:
                return election
        return None

    def ended_before(self, election: Election) -> list[Copy]:
        """The stays in the new leader's log that were over by then, oldest first."""
        return [
            copy
            for copy in self.copies
            if copy.broker == election.leader
            and copy.until is not None
            and copy.until.event.t <= election.seen.event.t
        ]

    def others_had(self, election: Election) -> bool:
        """Whether another log had the records at the time of an election."""
        return any(
            copy.is_of(self.asked.span.start, self.epoch) and copy.broker != election.leader
            for copy in election.copies
        )

    def ends(self) -> list[Seen]:
        """What ended the stays that are over."""
        return [copy.until for copy in self.copies if copy.until is not None]


def case_of(history: History, asked: Asked, names: Names) -> Case | None:
    """None if the trace knows nothing of these records."""
    offset = asked.span.start
    promise = _promise(history, asked)
    if promise is not None:
        epoch, since_ms = promise.epoch, promise.first.event.t
    elif asked.acked_ms is not None:
        # A kill takes the last lines of a trace with it. Whoever led then has made the promise.
        before = [one for one in history.elections if one.seen.event.t <= asked.acked_ms]
        if not before:
            return None
        epoch, since_ms = before[-1].epoch, asked.acked_ms
    else:
        gone = [copy for copy in history.ended if copy.span.covers(offset)]
        if not gone:
            return None
        epoch, since_ms = gone[0].epoch, gone[0].since.event.t
    copies = tuple(copy for copy in history.copies_of(offset) if copy.is_of(offset, epoch))
    return Case(
        history=history,
        asked=asked,
        names=names,
        promise=promise,
        epoch=epoch,
        since_ms=since_ms,
        copies=copies,
    )


def _promise(history: History, asked: Asked) -> Promise | None:
    """The acknowledgement of these records; of several at one offset, the one told at that time."""
    copies = history.copies_of(asked.span.start)
    fitting = [one for one in history.promises if _is_about(one, asked.span.start, copies)]
    if asked.acked_ms is not None:
        latest = asked.acked_ms + _SLACK_MS
        fitting = [one for one in fitting if one.first.event.t <= latest][-1:]
    return fitting[0] if fitting else None


def _is_about(promise: Promise, offset: int, copies: list[Copy]) -> bool:
    """Whether a row of promises reaches an offset; its last batch may have had many records."""
    own = [copy for copy in copies if copy.epoch == promise.epoch != UNKNOWN]
    if not own or offset < promise.offset:
        return False
    return offset <= promise.last_offset or any(
        copy.span.covers(promise.last_offset) for copy in own
    )
