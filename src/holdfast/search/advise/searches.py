"""Runs the search for one kind of fault at a time: with one failure, then two, up to all.

If fewer replicas are in sync than exist, the others are down: a cluster of that size shows what can
happen then. So each kind is searched with all replicas, with as few as writes need, and with one
more than that (a replica that is behind).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from holdfast.search import (
    HOLDS,
    VIOLATED,
    Bounds,
    Coverage,
    Found,
    Question,
    explore,
    write_scenario,
)
from holdfast.search.advise.combination import Asked
from holdfast.search.advise.losses import Evidence, Loss, Searched
from holdfast.search.limits import Limits

Watch = Callable[[Coverage], None]


class Fault(NamedTuple):
    """A kind of fault, and the bounds for a number of such faults."""

    kind: str
    words: Callable[[int], str]
    bounds: Callable[[int, int], Bounds]
    """The bounds for so many faults among so many replicas."""
    most: int
    """The most faults to try, with any number of replicas."""
    least_replicas: int = 1
    """The fault needs at least so many replicas."""


def _crashes(count: int, replicas: int) -> Bounds:
    # With one death, a slow link is needed; with more deaths, each of them is a delay.
    slow = int(count == 1)
    return Bounds(replicas=replicas, crashes=count, restarts=1, delays=slow, lags=slow)


def _power_losses(count: int, replicas: int) -> Bounds:
    return Bounds(replicas=replicas, power_losses=count, restarts=min(count, 2) if count < 3 else 1)


def _disk(_: int, replicas: int) -> Bounds:
    return Bounds(replicas=replicas, crashes=1, disk_losses=1, restarts=1)


def _disconnect(_: int, replicas: int) -> Bounds:
    return Bounds(replicas=replicas, partitions=1)


def _election(_: int, replicas: int) -> Bounds:
    return Bounds(replicas=replicas, elections=1, delays=1)


def _many(one: str, more: str) -> Callable[[int], str]:
    return lambda count: one if count == 1 else more.format(count=count)


FAULTS: Final = (
    Fault("election", _many("an operator has another leader elected", ""), _election, 1, 2),
    Fault("cut", _many("one broker is disconnected for a time", ""), _disconnect, 1, 2),
    Fault("crash", _many("one process dies", "{count} processes die"), _crashes, 9),
    Fault(
        "power", _many("one machine loses power", "{count} machines lose power"), _power_losses, 9
    ),
    Fault("disk", _many("one disk is lost", ""), _disk, 1),
)


@dataclass(slots=True)
class Findings:
    """The results of the searches."""

    losses: list[Loss] = field(default_factory=list)
    searched: list[Searched] = field(default_factory=list)
    found: dict[str, int] = field(default_factory=dict)
    """The fewest replicas with which each kind of fault caused a loss."""


def questions(asked: Asked, failures: int) -> Iterator[tuple[Fault, int, Question]]:
    """The questions, those with few failures first."""
    for count in range(1, failures + 1):
        for fault in FAULTS:
            if count <= fault.most:
                for question in _sized(asked, fault, count):
                    yield fault, count, question


def _sized(asked: Asked, fault: Fault, count: int) -> Iterator[Question]:
    """The questions for each number of replicas in sync, all first."""
    needed = asked.needed
    sizes = sorted({asked.replicas, needed, min(asked.replicas, needed + 1)}, reverse=True)
    for size in sizes:
        if size >= max(count, fault.least_replicas):
            bounds = fault.bounds(count, size)
            yield Question(bounds=bounds, options=asked.of_logs, strict=True)


def verdict_of(asked: Asked, kinds: Mapping[str, int], limits: Callable[[], Limits]) -> str:
    """Whether so many faults of a kind cause no loss, with any number of replicas in sync."""
    for fault in FAULTS:
        if fault.kind in kinds:
            for question in _sized(asked, fault, kinds[fault.kind]):
                verdict = explore(question, limits()).verdict
                if verdict != HOLDS:
                    return verdict
    return HOLDS


def search_all(asked: Asked, failures: int, limits: Callable[[], Limits], watch: Watch) -> Findings:
    """Search every question whose answer does not follow from an earlier one."""
    findings = Findings()
    for fault, count, question in questions(asked, failures):
        size = question.bounds.replicas
        known = findings.found.get(fault.kind)
        if known is not None and (size < asked.replicas or known == asked.replicas):
            continue
        found = explore(question, limits(), watch)
        words = _words(fault, count, asked.replicas - size)
        findings.searched.append(
            Searched(
                faults=words,
                command=question.command,
                verdict=found.verdict,
                distinct=found.coverage.distinct,
            )
        )
        if found.verdict == VIOLATED:
            findings.found[fault.kind] = size
            findings.losses.append(_loss(found, fault, count, words))
    return findings


def _words(fault: Fault, count: int, down: int) -> str:
    words = fault.words(count)
    if down:
        others = "another is" if down == 1 else f"{down} others are"
        words += f" while {others} down"
    return words


def _loss(found: Found, fault: Fault, count: int, words: str) -> Loss:
    assert found.violation is not None
    written = write_scenario(found, found.question.command)
    evidence = Evidence(
        kind="search",
        title=found.violation.text,
        command=found.question.command,
        scenario_text=written.text,
    )
    return Loss(
        outcome=written.outcome,
        faults=words,
        kinds={fault.kind: count},
        evidence=(evidence,),
    )
