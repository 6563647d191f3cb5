"""Explains lost records from a trace. What happened to the new leader's log decides:

- it had the records and lost them in a power failure: they were not flushed;
- it never had them, and the election was unclean: the election;
- it never had them, and the election was clean: the leader alone had acknowledged them.

What happens to other copies afterwards (their brokers truncate them to follow the new leader) is a
consequence, shown in the chain. Works on traces of real brokers and of the lab.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.lab.render.narrate import sentence
from holdfast.pipeline.audit.causes import kinds
from holdfast.pipeline.audit.causes.case import Asked, Case, Names, cases_of
from holdfast.pipeline.audit.causes.history import Copy, Election, History
from holdfast.pipeline.audit.causes.traces import Seen
from holdfast.pipeline.audit.findings.findings import Step

ACKS_ALL: Final = -1
MOST_STEPS: Final = 14
_KINDS_OF_END: Final = {
    "power-lost": kinds.LOST_FLUSH,
    "restarted": kinds.LOST_FLUSH,
    "disk-lost": kinds.LOST_DISK,
    "truncated": kinds.TRUNCATION,
    "appended": kinds.TRUNCATION,
}
_DEATHS: Final = {
    "crashed": "died",
    "power-lost": "lost its power",
    "stopped": "shut down",
    "disk-lost": "lost its disk",
    "disk-failed": "lost its disk",
}
_PLACES: Final = ("start_offset", "end_offset", "kept", "log_end_offset", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why, with what a remedy depends on."""

    kind: str
    sentence: str
    acks: int | None = None
    copies: int = 0
    """The number of logs that ever had the records."""
    root: Seen | None = None
    chain: tuple[Step, ...] = ()
    evidence: tuple[str, ...] = ()


def reason_of(history: History, asked: Asked, names: Names) -> Reason | None:
    """Why all records of a span with one fate are gone; None if the trace does not say."""
    found = [_reason_in(case) for case in cases_of(history, asked, names)]
    known = [reason for reason in found if reason is not None]
    # If there is another explanation, a clean election did not lose the records, and a record that
    # is still in a log is not the missing one: a kill loses acknowledgements from a trace, and
    # older ones remain.
    gone = [reason for reason in known if reason.kind != kinds.OUTSIDE]
    taken = [reason for reason in gone if reason.kind != kinds.ELECTION]
    return next(iter(taken or gone or known), None)


def _reason_in(case: Case) -> Reason | None:
    election = case.taken_by()
    if election is None:
        return _without_election(case)
    lost = case.ended_before(election)
    if lost:
        return _leader_lost_them(case, election, lost[-1])
    if election.rule == "unclean":
        return _unclean(case, election)
    if case.acks in (0, 1):
        return _leader_alone(case, election)
    text = f"{_elected(case, election)} without {case.what}, although the election was clean."
    return _reason(case, kinds.ELECTION, text, election.seen, election)


# The sentences.


def _unclean(case: Case, election: Election) -> Reason:
    alone = ""
    if case.is_of_one_member and case.acknowledgement is not None:
        only = case.name(case.acknowledgement.isr[0])
        alone = f" {only} alone was in sync when {case.they_were} acknowledged."
    text = (
        f"Unclean election: {_elected(case, election)}, not in sync and without {case.what}."
        f"{alone}{_aftermath(case, election)}"
    )
    return _reason(case, kinds.UNCLEAN_ELECTION, text, election.seen, election)


def _leader_alone(case: Case, election: Election) -> Reason:
    former = _leader_then(case)
    who = case.name(former) if former is not None else "the leader"
    died = _death(case, election, former)
    text = (
        f"With acks={case.acks} {who} alone answered for {case.what}, before another log had "
        f"{case.them}. {f'{who} {died}. ' if died else ''}{_elected(case, election)} without "
        f"{case.them}, by a clean election.{_aftermath(case, election)}"
    )
    return _reason(case, kinds.LEADER_ALONE, text, election.seen, election)


def _leader_lost_them(case: Case, election: Election, copy: Copy) -> Reason:
    assert copy.until is not None
    kind = _KINDS_OF_END[copy.until.event.kind]
    if kind == kinds.TRUNCATION:
        text = f"{sentence(copy.until.event, case.names)} Then {_elected(case, election)}."
    else:
        text = f"{_losses(case)} {_elected(case, election)} without {case.what}."
    return _reason(case, kind, text, copy.until, election)


def _without_election(case: Case) -> Reason | None:
    """No leader lacked them from the start: a log lost them, never had them, or still has them."""
    ends, held = case.ends(), [copy.broker for copy in case.copies if copy.until is None]
    if held:
        text = (
            f"According to the trace {case.listed(held)} still {_has(held)} {case.what}: the "
            "files were changed by something else than the broker."
        )
        return _reason(case, kinds.OUTSIDE, text, None, None)
    if ends:
        last = max(ends, key=lambda seen: seen.event.t)
        kind = _KINDS_OF_END[last.event.kind]
        text = sentence(last.event, case.names) if kind == kinds.TRUNCATION else _losses(case)
        return _reason(case, kind, text, last, None)
    if case.acks == 0:
        text = f"No log ever had {case.what}: with acks=0 the producer gets no answer."
        return _reason(case, kinds.NEVER_WRITTEN, text, None, None)
    return None


def _elected(case: Case, election: Election) -> str:
    starts = [seen.event.numbers["start_offset"] for seen in _beginnings(case, election)]
    where = f" at offset {starts[0]}" if starts else ""
    return f"{case.name(election.leader)} began epoch {election.epoch}{where}"


def _beginnings(case: Case, election: Election) -> list[Seen]:
    """The new leader's own events of the beginning of its epoch."""
    return [
        seen
        for seen in case.history.became
        if seen.event.kind == "became-leader"
        and seen.event.broker == election.leader
        and seen.event.numbers["leader_epoch"] == election.epoch
    ]


def _leader_then(case: Case) -> int | None:
    """The leader when the records were acknowledged."""
    if case.acknowledgement is not None:
        return case.acknowledgement.first.event.broker
    led = [one.leader for one in case.history.elections if one.epoch == case.epoch]
    return led[-1] if led else None


def _death(case: Case, election: Election, broker: int | None) -> str:
    """How a broker had died when the election took place; empty if unknown."""
    for seen in reversed(case.history.faults):
        is_between = case.since_ms <= seen.event.t <= election.seen.event.t
        if broker is not None and seen.event.broker == broker and is_between:
            return _DEATHS[seen.event.kind]
    return ""


def _losses(case: Case) -> str:
    """The brokers whose power failed or whose disk came back empty, and the lost offsets."""
    groups: dict[tuple[str, int, int], list[int]] = {}
    for copy in case.copies:
        if copy.until is not None:
            numbers = copy.until.event.numbers
            end = numbers.get("kept", numbers.get("log_end_offset", 0))
            alike = (copy.until.event.kind, end, numbers.get("was", end))
            groups.setdefault(alike, []).append(copy.broker)
    texts = [_loss(case, *alike, brokers) for alike, brokers in groups.items()]
    return " ".join(text for text in texts if text)


def _loss(case: Case, kind: str, end: int, was: int, brokers: list[int]) -> str:
    """Empty if the copies were not lost with their brokers' memory or disks."""
    who, one = case.listed(brokers), len(set(brokers)) == 1
    if kind == "power-lost":
        what = f"offset {end} was" if was == end + 1 else f"offsets {end} to {was - 1} were"
        cache = "its page cache" if one else "their page caches"
        return f"The power of {who} failed: {what} in {cache} only."
    if kind == "restarted":
        return f"{who} came back with a log that ends at offset {end}."
    return f"The disk of {who} came back empty." if kind == "disk-lost" else ""


def _aftermath(case: Case, election: Election) -> str:
    """What happened to the copies of the other brokers."""
    after = election.seen.event.t
    truncated = [
        copy.broker
        for copy in case.copies
        if copy.until is not None
        and copy.until.event.kind in ("truncated", "appended")
        and copy.until.event.t >= after
    ]
    kept = [copy.broker for copy in case.copies if copy.until is None]
    text = (
        f" {case.listed(truncated)} truncated {case.them} to follow the new leader."
        if truncated
        else ""
    )
    if kept:
        text += f" {case.listed(kept)} still {_has(kept)} {case.them}, where no reader looks."
    return text


def _has(brokers: Sequence[int]) -> str:
    return "has" if len(set(brokers)) == 1 else "have"


# The chain.


def _reason(
    case: Case, kind: str, text: str, root: Seen | None, election: Election | None
) -> Reason:
    chain = _chain(case, root, election)
    places = [seen.place for seen in ([root] if root is not None else [])]
    return Reason(
        kind=kind,
        sentence=text,
        acks=case.acks,
        copies=len({copy.broker for copy in case.copies}),
        root=root,
        chain=tuple(_step(seen, case.names) for seen in chain),
        evidence=tuple(dict.fromkeys([*places, *(seen.place for seen in chain)])),
    )


def _chain(case: Case, root: Seen | None, election: Election | None) -> list[Seen]:
    """Acknowledgement, deaths, election, truncations: each once, oldest first."""
    chain = [case.acknowledgement.first] if case.acknowledgement is not None else []
    history, had = case.history, {copy.broker: None for copy in case.copies}
    if election is not None:
        had |= {one: None for one in (_leader_then(case),) if one is not None}
        chain += [
            seen
            for seen in (*history.isr_changes, *history.faults)
            if case.since_ms <= seen.event.t <= election.seen.event.t
            and (seen.event.kind == "isr-committed" or seen.event.broker in had)
        ]
        chain += [election.seen, *_beginnings(case, election)]
    chain += case.ends()
    chain += [] if root is None else [root]
    unique = {(seen.path, seen.line): seen for seen in chain}
    ordered = sorted(unique.values(), key=lambda one: (one.event.t, one.event.numbers.get("ns", 0)))
    return ordered[:MOST_STEPS]


def _step(seen: Seen, names: Names) -> Step:
    event = seen.event
    place = next(
        (event.numbers[key] for key in _PLACES if isinstance(event.numbers.get(key), int)), None
    )
    broker = event.numbers.get("leader") if event.kind == "elected" else event.broker
    return Step(
        time_ms=event.t,
        kind=event.kind,
        broker=None if broker is None else names.get(broker, f"b{broker}"),
        offset=place,
        sentence=sentence(event, names),
    )
