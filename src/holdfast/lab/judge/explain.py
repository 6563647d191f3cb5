"""Explains from the trace why a record is gone, or where it is.

Ask by offset or by label. One offset may have held several records, in different epochs or on
different replicas, and one record may be at several offsets: each gets its own account. An
account follows the copies of the record through the logs, names the event that ended each copy, and
follows its causes (`why`) back.

A trace does not show which setting would have kept the record: the caller runs the scenario again
under other settings and passes the result as `remedies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.lab.judge.copies import Copy, Identity, Tracker, offset_of
from holdfast.lab.render.narrate import line, names_of, sentence
from holdfast.lab.render.wording import Names, acks_word, spoken_list
from holdfast.model.trace import TraceEvent

SCHEMA = "holdfast-explain/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One event, with its line and its sentence."""

    event: int
    t: int
    kind: str
    line: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCopy:
    """One copy of the record in one replica's log."""

    replica: str
    begins: Moment
    ends: Moment | None
    causes: tuple[Moment, ...]
    """The causes of the end, the nearest first."""
    alive: bool
    """Whether the replica runs at the end of the trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What became of one record."""

    record: str
    offset: int | None
    leader_epoch: int | None
    outcome: str
    """kept, refused-kept, unavailable, lost, exposed-lost, dropped or never-written."""
    sent: Moment | None
    acknowledged: Moment | None
    refused: Moment | None
    unanswered: Moment | None
    acks: str
    isr: tuple[str, ...]
    """The ISR in the store at the time of the acknowledgement."""
    holders: tuple[str, ...]
    """The replicas whose log had the record at the time of the acknowledgement."""
    copies: tuple[LogCopy, ...]
    never: tuple[str, ...]
    """The replicas whose log never had it."""
    causes: tuple[Moment, ...]
    """From the event that made the record unreadable, back to the first cause."""
    sentence: str


_JSON_NAMES = {
    "acknowledged": "promised",
    "isr": "isr_at_promise",
    "holders": "holders_at_promise",
    "copies": "lives",
    "begins": "from",
    "ends": "until",
    "alive": "replica_alive",
}
"""Fields that have another name in JSON."""


def _json_object(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {_JSON_NAMES.get(name, name): value for name, value in fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer to one question."""

    asked: int | str
    accounts: tuple[Account, ...]
    remedies: tuple[str, ...]

    @property
    def sentence(self) -> str:
        if not self.accounts:
            where = f"offset {self.asked}" if isinstance(self.asked, int) else str(self.asked)
            return f"No record was ever written or sent as {where}."
        return " ".join(account.sentence for account in self.accounts)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "asked": {"offset" if isinstance(self.asked, int) else "record": self.asked},
            "records": [asdict(one, dict_factory=_json_object) for one in self.accounts],
            "remedies": list(self.remedies),
            "sentence": self.sentence,
        }

    def to_text(self) -> str:
        """For a terminal: the answer first, then the evidence."""
        if not self.accounts:
            return self.sentence
        blocks = [_account_text(account) for account in self.accounts]
        if self.remedies:
            blocks.append("What would have kept it:\n" + _bullets(self.remedies))
        return "\n\n".join(blocks)


def explain(
    events: Iterable[TraceEvent], asked: int | str, remedies: Sequence[str] = ()
) -> Explanation:
    """Account for every record at this offset (int) or of this label (str)."""
    trace = list(events)
    offset = offset_of(trace, asked) if isinstance(asked, str) else None
    tracker = Tracker(trace, asked if offset is None else offset)
    names = names_of(trace)
    accounts = tuple(_account(tracker, identity, names) for identity in tracker.identities())
    return Explanation(asked=asked, accounts=accounts, remedies=tuple(remedies))


def _account(tracker: Tracker, identity: Identity, names: Names) -> Account:
    copies = tracker.copies(identity)
    acknowledgement = tracker.acknowledgement(identity)
    outcome = tracker.outcome(identity)
    causes = tracker.causes(identity)
    had = {copy.broker: None for copy in copies}
    known = acknowledgement or tracker.answer(identity, "sent")
    isr, holders = tracker.at_acknowledgement(identity)
    return Account(
        record=tracker.label(identity),
        offset=identity.offset,
        leader_epoch=identity.epoch,
        outcome=outcome,
        sent=_moment(tracker.answer(identity, "sent"), names),
        acknowledged=_moment(acknowledgement, names),
        refused=_moment(tracker.answer(identity, "refused"), names),
        unanswered=_moment(tracker.answer(identity, "unanswered"), names),
        acks="" if known is None else acks_word(known.numbers.get("acks", "")),
        isr=_named(isr, names),
        holders=_named(holders, names),
        copies=tuple(_log_copy(tracker, copy, names) for copy in copies),
        never=_named([broker for broker in tracker.brokers if broker not in had], names),
        causes=tuple(_moment_of(event, names) for event in causes),
        sentence=_verdict(tracker, identity, outcome, causes, names),
    )


def _log_copy(tracker: Tracker, copy: Copy, names: Names) -> LogCopy:
    causes = tracker.chain(copy.ends)[1:]
    return LogCopy(
        replica=_named([copy.broker], names)[0],
        begins=_moment_of(copy.begins, names),
        ends=_moment(copy.ends, names),
        causes=tuple(_moment_of(event, names) for event in causes),
        alive=copy.broker in tracker.alive,
    )


_OUTCOMES = {
    "kept": "{name} is where it should be: in the log of the leader{where}.",
    "refused-kept": "{name} was refused, and yet it is in the log{where}.",
    "unavailable": "{name} exists only{where}, where no consumer can read it now.",
    "lost": "{name} was acknowledged to the producer and is gone.",
    "exposed-lost": "{name} was never acknowledged, but a consumer read it, and it is gone.",
    "dropped": "{name} is gone, but it was never acknowledged.",
    "never-written": "{name} was never written to any log.",
}


def _verdict(
    tracker: Tracker,
    identity: Identity,
    outcome: str,
    causes: Sequence[TraceEvent],
    names: Names,
) -> str:
    holders, label = _named(tracker.holders(identity), names), tracker.label(identity)
    offset = "" if identity.offset is None else f" (offset {identity.offset})"
    text = _OUTCOMES[outcome].format(
        name=f"{label}{offset}", where=f" on {spoken_list(holders)}" if holders else ""
    )
    if not tracker.copies(identity) and tracker.acknowledgement(identity) is not None:
        text = f"{label} was taken for written, and never reached any log."
    if outcome == "lost" and holders:
        text = (
            f"{label}{offset} was acknowledged; a copy on {spoken_list(holders)} is out of reach."
        )
    if causes and not holders:
        text += f" The last copy went when: {sentence(causes[0], names)}"
    return text


def _named(brokers: Sequence[int], names: Names) -> tuple[str, ...]:
    return tuple(names.get(broker, f"b{broker}") for broker in brokers)


def _moment_of(event: TraceEvent, names: Names) -> Moment:
    return Moment(
        event=event.id,
        t=event.t,
        kind=event.kind,
        line=line(event, names) or "",
        sentence=sentence(event, names),
    )


def _moment(event: TraceEvent | None, names: Names) -> Moment | None:
    return None if event is None else _moment_of(event, names)


# Text for a terminal.


def _account_text(account: Account) -> str:
    lines = [account.sentence, "", *_client_lines(account)]
    for number, copy in enumerate(account.copies):
        lines += _copy_lines(copy, "copy" if number == 0 else "")
    if account.never:
        lines.append(f"  {'never on':<12} {spoken_list(account.never)}")
    if any(copy.ends is None for copy in account.copies):
        lines += [
            f"  {'because' if number == 0 else '':<12} {_when(moment)}"
            for number, moment in enumerate(account.causes)
        ]
    return "\n".join(lines)


def _client_lines(account: Account) -> list[str]:
    answers = (
        ("sent", account.sent),
        ("acknowledged", account.acknowledged),
        ("refused", account.refused),
        ("no answer", account.unanswered),
    )
    lines = [f"  {title:<12} {_when(moment)}" for title, moment in answers if moment is not None]
    if account.acknowledged is not None:
        then = f"in sync then: {_set(account.isr)}; had it then: {_set(account.holders)}"
        lines.append(f"  {'':<12} acks={account.acks or '?'}; {then}")
    return lines


def _copy_lines(copy: LogCopy, title: str) -> list[str]:
    text = f"  {title:<12} on {copy.replica} from {copy.begins.t} ms"
    if copy.ends is None:
        down = "" if copy.alive else f", but {copy.replica} is down"
        return [f"{text}, and is still there{down}"]
    lines = [f"{text} until {copy.ends.t} ms: {copy.ends.line}"]
    return lines + [f"  {'':<12}   because  {_when(moment)}" for moment in copy.causes]


def _when(moment: Moment) -> str:
    return f"{moment.t:>5} ms  {moment.line}"


def _set(items: Sequence[str]) -> str:
    return "{" + ", ".join(items) + "}"


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"  - {item}" for item in items)
