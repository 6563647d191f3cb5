"""What was done from the page, and what came of it.

An action keeps the state before it. Every later observation is compared with that for a while: the
differences are what the fault did.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from holdfast.cluster.errors import ClusterError
from holdfast.cluster.testserver.server import ask_owner
from holdfast.cluster.timeline import INTERNAL
from holdfast.web.console.answers.forecast import Forecast, forecast
from holdfast.web.console.faults import in_words, request_of
from holdfast.web.console.hub import Hub
from holdfast.web.console.reading.observation import Observation, PartitionFacts

WATCH_S: Final = 40.0
"""How long the consequences of an action are followed."""
MOST_ACTIONS: Final = 100
MOST_NAMED: Final = 6
PATIENCE_S: Final = 90.0


@dataclass(slots=True)
class Action:
    """One fault, and its consequences."""

    number: int
    call: str
    fields: dict[str, Any]
    at: float
    """Seconds since the epoch."""
    before: Observation
    expected: Forecast
    running: tuple[int, ...] = ()
    """The brokers that ran before it."""
    state: str = "running"
    error: str = ""
    is_over: bool = False
    """Whether a later action has begun: what happens now may be its consequence."""
    elected: dict[str, float] = field(default_factory=dict)
    """For partitions that lost their leader: the seconds until they had one again."""
    leaders: dict[str, int] = field(default_factory=dict)
    """The leader of each partition at the end of what was observed."""
    lines: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "command": in_words(self.call, self.fields),
            "at": round(self.at * 1000),
            "state": self.state,
            "error": self.error,
            "expected": list(self.expected.lines),
            "happened": self.lines,
        }


class Actions:
    """Carries out faults, one after another, and follows them."""

    def __init__(self, folder: Path, hub: Hub) -> None:
        self._folder = folder
        self._hub = hub
        self._done: list[Action] = []
        self._next = 1
        self._lock = threading.Lock()

    def all(self) -> list[Action]:
        """The newest actions, oldest first."""
        with self._lock:
            return list(self._done)

    def do(self, seen: Observation, call: object, fields: object) -> dict[str, Any]:
        """Carry out one fault. ClusterError if it is refused."""
        fault, checked = request_of(call, fields)
        expected = forecast(seen, fault.call, checked)
        with self._lock:
            action = Action(self._next, fault.call, checked, time.time(), seen, expected)
            action.running = tuple(one.id for one in seen.brokers.values() if one.is_up)
            self._next += 1
            for place, earlier in enumerate(self._done):
                earlier.is_over = True
                if place:
                    earlier.before = Observation()  # the first one's begins a scenario file
            self._done = [*self._done[-MOST_ACTIONS + 1 :], action]
        self._publish(action)
        try:
            ask_owner(self._folder, fault.call, checked, PATIENCE_S)
            action.state = "done"
        except ClusterError as error:
            action.state, action.error = "failed", error.message
            raise
        finally:
            self._publish(action)
        return action.to_dict()

    def observed(self, seen: Observation) -> None:
        """Compare with the state before each recent action."""
        for action in self.all():
            passed = time.time() - action.at
            if passed < WATCH_S and not action.is_over and action.state != "failed":
                _note_elections(action, seen, passed)
                action.leaders = {name: one.leader for name, one in seen.partitions.items()}
                lines = consequences(action, seen)
                if lines != action.lines:
                    action.lines = lines
                    self._publish(action)

    def _publish(self, action: Action) -> None:
        self._hub.put({f"action/{action.number:06}": action.to_dict()})


def _note_elections(action: Action, seen: Observation, passed: float) -> None:
    for name, before in action.before.partitions.items():
        now = seen.partitions.get(name)
        if now is None or name in action.elected:
            continue
        if now.leader >= 0 and now.leader_epoch > before.leader_epoch:
            action.elected[name] = passed


def consequences(action: Action, seen: Observation) -> list[str]:
    """The differences between before and now, in sentences."""
    pairs = [
        (before, seen.partitions[name])
        for name, before in action.before.partitions.items()
        if name in seen.partitions
    ]
    pairs.sort(key=lambda pair: pair[0].topic.startswith(INTERNAL))
    lines = _brokers(action.before, seen)
    moved = [(was, now) for was, now in pairs if now.leader >= 0 and now.leader != was.leader]
    offline = [now for was, now in pairs if now.leader < 0 and was.leader >= 0]
    if moved:
        slowest = max((action.elected.get(now.name, 0.0) for _, now in moved), default=0.0)
        named = [(now.name, f"{_leader(was)} → {_leader(now)}") for was, now in moved]
        lines.append(
            f"{_count(len(moved), 'partition')} got another leader within {slowest:.1f} s: "
            + _named([f"{name} {how}" for name, how in named])
        )
    if offline:
        lines.append(
            f"{_count(len(offline), 'partition')} offline: {_named([now.name for now in offline])}"
        )
    lines += _members(pairs)
    lines += _shorter_logs(pairs)
    return lines


def _brokers(before: Observation, seen: Observation) -> list[str]:
    lines = []
    for broker, facts in seen.brokers.items():
        was = before.brokers.get(broker)
        if was is not None and was.state != facts.state:
            lines.append(f"b{broker}: {was.state} → {facts.state}")
        if facts.is_controller and before.controller not in (broker, -1):
            lines.append(f"b{broker} is the controller now, no longer b{before.controller}")
    return lines


def _members(pairs: list[tuple[PartitionFacts, PartitionFacts]]) -> list[str]:
    lines = []
    left: dict[int, list[str]] = {}
    joined: dict[int, list[str]] = {}
    for was, now in pairs:
        for broker in was.isr:
            if broker not in now.isr:
                left.setdefault(broker, []).append(now.name)
        for broker in now.isr:
            if broker not in was.isr:
                joined.setdefault(broker, []).append(now.name)
    for broker, names in left.items():
        lines.append(
            f"b{broker} left the ISR of {_count(len(names), 'partition')}: {_named(names)}"
        )
    for broker, names in joined.items():
        lines.append(
            f"b{broker} joined the ISR of {_count(len(names), 'partition')}: {_named(names)}"
        )
    return lines


def _shorter_logs(pairs: list[tuple[PartitionFacts, PartitionFacts]]) -> list[str]:
    """A high watermark that fell: consumers could read records that are gone."""
    return [
        f"the end of {now.name} fell from {was.end} to {now.end}: those records are gone"
        for was, now in pairs
        if was.end is not None and now.end is not None and now.end < was.end
    ]


def _leader(one: PartitionFacts) -> str:
    return "nobody" if one.leader < 0 else f"b{one.leader}"


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def _named(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
