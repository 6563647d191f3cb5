"""Answers "why?" from the observed state and the trace.

Every answer is a list of sentences: first the reason, then the events that led there, then what
would help. The reasons come from the state in the coordination store and from the brokers' own
reports; the events are sentences of the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.lab import explain
from holdfast.lab.render.narrate import names_of, sentence
from holdfast.lab.render.wording import spoken_list
from holdfast.model.trace import TraceEvent
from holdfast.web.console.reading.observation import DOWN, Observation, PartitionFacts

MOST_EVENTS: Final = 8
_OF_LEADERSHIP: Final = (
    *("elected", "isr-committed", "crashed", "power-lost", "stopped", "restarted", "paused"),
    *("session-expired", "went-offline", "disk-failed", "cut", "healed", "truncated"),
)


@dataclass(slots=True)
class Answer:
    """One answer."""

    question: str
    reason: str
    events: list[dict[str, Any]] = field(default_factory=list)
    remedies: list[str] = field(default_factory=list)
    text: str = ""
    """The lab's account, for a terminal or a page."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "reason": self.reason,
            "events": self.events,
            "remedies": self.remedies,
            "text": self.text,
        }


def why_offline(
    seen: Observation, partition: PartitionFacts, events: Sequence[TraceEvent]
) -> Answer:
    """Why nobody leads the partition."""
    question = f"Why is {partition.name} offline?"
    if partition.leader >= 0:
        return Answer(question, f"It is not: b{partition.leader} leads it.")
    members = (*partition.isr, *(partition.eligible or ()), *partition.last_known)
    able = tuple(dict.fromkeys(members))
    down = [f"{_state(seen, one)}" for one in able]
    live = [one for one in partition.replicas if one not in able and _is_up(seen, one)]
    reason = "No replica that surely has every committed record is alive"
    reason += f": {spoken_list(down)}." if down else "."
    topic = seen.topics.get(partition.topic)
    remedies = [f"restart b{one}" for one in able if not _is_up(seen, one)]
    if live and not (topic and topic.unclean):
        reason += (
            f" {spoken_list([f'b{one}' for one in live])} could lead, but may lack committed "
            "records; unclean.leader.election.enable=false forbids it."
        )
        remedies.append(
            "unclean.leader.election.enable=true would elect it, and lose the records it lacks"
        )
    return Answer(question, reason, _last_events(events), remedies)


def why_out(
    seen: Observation, partition: PartitionFacts, broker: int, events: Sequence[TraceEvent]
) -> Answer:
    """Why a follower is not in the ISR."""
    question = f"Why is b{broker} not in the ISR of {partition.name}?"
    if broker in partition.isr:
        return Answer(question, f"It is in the ISR: {_isr(partition)}.")
    if broker not in partition.replicas:
        return Answer(question, f"b{broker} has no replica of {partition.name}.")
    reason, remedies = _reason_out(seen, partition, broker)
    return Answer(question, reason, _last_events(events, broker), remedies)


def _reason_out(seen: Observation, partition: PartitionFacts, broker: int) -> tuple[str, list[str]]:
    """The first reason that holds, and what helps."""
    return (
        _of_the_process(seen, broker)
        or _of_the_log(partition, broker)
        or _of_the_links(seen, partition, broker)
        or (_of_the_lag(partition, broker), [])
    )


Reason = tuple[str, list[str]] | None


def _of_the_process(seen: Observation, broker: int) -> Reason:
    facts = seen.brokers.get(broker)
    if facts is None or facts.state in DOWN:
        return f"{_state(seen, broker)}: it does not fetch.", [f"restart b{broker}"]
    if facts.state == "paused":
        return f"b{broker} is paused: its process does not run.", [f"resume b{broker}"]
    return None


def _of_the_log(partition: PartitionFacts, broker: int) -> Reason:
    copy = partition.copies.get(broker)
    if copy is not None and copy.role == "offline":
        words = f"The log of b{broker} failed, and stays offline until the broker restarts."
        return words, [f"restart b{broker}"]
    if copy is not None and copy.copy_problem:
        return f"b{broker} cannot copy from the leader: {copy.copy_problem}.", []
    return None


def _of_the_links(seen: Observation, partition: PartitionFacts, broker: int) -> Reason:
    facts = seen.brokers[broker]
    if any(one.startswith("store") for one in facts.faults):
        words = f"b{broker} has no connection to the coordination store, so it is not registered."
        return words, ["end the faults; it then reconnects after some seconds"]
    links = [one for one in facts.faults if not one.startswith("disk")]
    if links:
        return f"b{broker} has faults on its links: {', '.join(links)}.", ["end the faults"]
    if partition.leader < 0:
        return "The partition has no leader: nobody can propose it for the ISR.", []
    leader = seen.brokers.get(partition.leader)
    if leader is None or not leader.is_up or leader.faults:
        return f"The leader, b{partition.leader}, cannot be reached from b{broker}.", []
    return None


def _of_the_lag(partition: PartitionFacts, broker: int) -> str:
    behind = _behind(partition, broker)
    if behind:
        return (
            f"b{broker} is {behind:,} records behind the leader. It joins the ISR when it reaches "
            "the high watermark; a follower leaves it after replica.lag.time.max.ms without "
            "catching up."
        )
    return (
        f"b{broker} has caught up; the leader is about to propose it for the ISR, or the "
        "controller has not confirmed it yet."
    )


def why_lost(
    partition: PartitionFacts, offset: int, events: Sequence[TraceEvent], since: str
) -> Answer:
    """What became of the record at an offset: the lab's account of the trace."""
    question = f"What became of offset {offset} of {partition.name}?"
    explanation = explain(events, offset)
    if not explanation.accounts:
        reason = f"The trace has no record at offset {offset} in {since}."
        end = partition.end
        if end is not None and offset < end:
            reason += f" The record is below the end of the leader's log, {end}."
        return Answer(question, reason)
    causes = [
        {"t": cause.t, "text": cause.sentence}
        for account in explanation.accounts
        for cause in account.causes
    ]
    return Answer(question, explanation.sentence, causes[:MOST_EVENTS], [], explanation.to_text())


# Small tools.


def _behind(partition: PartitionFacts, broker: int) -> int:
    copy, leader = partition.copies.get(broker), partition.copies.get(partition.leader)
    if copy is None or leader is None or copy.log_end is None or leader.log_end is None:
        return 0
    return max(0, leader.log_end - copy.log_end)


def _is_up(seen: Observation, broker: int) -> bool:
    return broker in seen.brokers and seen.brokers[broker].is_up


def _state(seen: Observation, broker: int) -> str:
    facts = seen.brokers.get(broker)
    if facts is None:
        return f"b{broker} is not registered"
    words = {
        "killed": "was killed",
        "power-lost": "lost power",
        "stopped": "was stopped",
        "died": "died by itself",
    }
    if facts.state == "running":
        return f"b{broker} runs, but its log may be incomplete"
    return f"b{broker} {words.get(facts.state, f'is {facts.state}')}"


def _isr(partition: PartitionFacts) -> str:
    return spoken_list([f"b{one}" for one in partition.isr]) or "nobody"


def _last_events(events: Sequence[TraceEvent], broker: int | None = None) -> list[dict[str, Any]]:
    """The last events about leadership, oldest first; of a broker, those that touch it."""
    names = names_of(events)
    chosen = [one for one in events if one.kind in _OF_LEADERSHIP and _touches(one, broker)]
    return [{"t": one.t, "text": sentence(one, names)} for one in chosen[-MOST_EVENTS:]]


def _touches(event: TraceEvent, broker: int | None) -> bool:
    if broker is None or event.kind in ("elected", "isr-committed", "healed"):
        return True
    return event.broker == broker or event.numbers.get("source") == f"b{broker}"
