"""Writes what was done as a scenario file: `holdfast lab run FILE` plays it on the real core.

The file begins with the partition as it was before the first action. Each action becomes the lab's
commands for the same fault, and a record is produced after each, so that the verdict has something
to judge. A real cluster's timing is not in the file: messages settle after every step.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

from holdfast.cluster.errors import ClusterError
from holdfast.lab import ScenarioError, parse, rewritten
from holdfast.web.console.actions import Action
from holdfast.web.console.faults import in_words
from holdfast.web.console.reading.observation import Observation, PartitionFacts

_COLUMNS: Final = 98
_SECONDS: Final = 1_000


def scenario_text(seen: Observation, partition: PartitionFacts, done: Sequence[Action]) -> str:
    """The file, with the output that the lab has for it."""
    carried_out = [action for action in done if action.state == "done"]
    first = carried_out[0].before if carried_out else seen
    begun = first.partitions.get(partition.name, partition)
    script = _Script(first, begun)
    for action in carried_out:
        script.add(action)
    try:
        scenario = parse(script.text(), f"{partition.name}.scenario")
        scenario = parse(rewritten(scenario), f"{partition.name}.scenario")
    except (ScenarioError, AssertionError) as error:
        raise ClusterError(f"the lab cannot play this sequence: {error}") from None
    return "\n".join(scenario.lines) + "\n"


class _Script:
    """Builds the file step by step; knows which brokers run in it."""

    def __init__(self, seen: Observation, partition: PartitionFacts) -> None:
        self._partition = partition
        self._down: dict[int, None] = {}
        self._expired: dict[int, None] = {}
        self._records = 1
        self._steps = [self._opening(seen)]
        self._words: list[str] = []
        for broker in partition.replicas:
            if broker in seen.brokers and not seen.brokers[broker].is_up:
                self._step(f"b{broker} does not run at the beginning.", self._dies(broker, ""))

    def _opening(self, seen: Observation) -> str:
        one = self._partition
        topic = seen.topics.get(one.topic)
        names = ",".join(f"b{broker}" for broker in one.replicas)
        options = [f"brokers=({names})"]
        if one.leader in one.replicas:
            options.append(f"leader=b{one.leader}")
        if topic is not None:
            options.append(f"min_insync_replicas={topic.min_insync}")
            if topic.unclean:
                options.append("unclean_leader_election_enable=true")
        lines = ["trace off", f"cluster {' '.join(options)}", "producer app acks=all retries=5"]
        return "\n".join((*lines, "produce app", "  m0", "settle", "trace on"))

    def add(self, action: Action) -> None:
        """One action with its comment; a comment alone if the lab has no such fault."""
        words = f"holdfast fault {in_words(action.call, action.fields)}"
        happened = "; ".join(action.lines[:3])
        commands = [one for one in self._commands(action.call, action.fields) if one]
        if not commands:
            words += " (the lab has no counterpart, or it does not concern this partition)"
        self._step(f"{words}. {f'On the cluster: {happened}.' if happened else ''}", commands)

    def _step(self, words: str, commands: Sequence[str]) -> None:
        lines = [f"# {line}" for line in textwrap.wrap(words.strip(), _COLUMNS)]
        if not commands:
            self._words += [*lines]
            return
        record = ["trace off", "produce app", f"  m{self._records}", f"run {2 * _SECONDS}", "trace on"]
        self._records += 1
        after = ("settle", *record, "isr", "logs")
        self._steps.append("\n".join((*self._words, *lines, *commands, *after)))
        self._words = []

    def _commands(self, call: str, fields: dict[str, Any]) -> Iterator[str]:
        own = self._partition.replicas
        brokers = [one for one in fields.get("brokers", ()) if one in own]
        if call == "heal":
            yield "heal"
            yield from (f"disk b{one} works" for one in own if one not in self._down)
            yield from self._come_back([one for one in self._expired if one not in self._down])
        elif call == "partition":
            yield from _between(fields.get("groups", []), own)
        for broker in brokers if call != "heal" else ():
            yield from self._one(call, broker)

    def _one(self, call: str, broker: int) -> Iterator[str]:
        name = f"b{broker}"
        match call:
            case "kill":
                yield from self._dies(broker, "")
            case "power-loss":
                yield from self._dies(broker, " keep=flushed")
            case "stop":
                yield from self._stops(broker)
            case "restart":
                if broker not in self._down:
                    yield from self._stops(broker)
                yield f"restart {name}"
                self._down.pop(broker, None)
                self._expired.pop(broker, None)
            case "pause":
                yield f"pause {name}"
                yield self._expires(broker)
            case "resume":
                yield f"resume {name}"
                yield from self._come_back([broker])
            case "isolate":
                yield f"cut {name}"
                yield self._expires(broker)
            case "expire-session":
                yield self._expires(broker)
                yield "settle"
                yield from self._come_back([broker])
            case "disk-full":
                yield f"disk {name} full"
            case "io-error":
                yield f"disk {name} fails"

    def _dies(self, broker: int, how: str) -> list[str]:
        self._down[broker] = None
        return [f"crash b{broker}{how}", self._expires(broker)]

    def _stops(self, broker: int) -> list[str]:
        self._down[broker] = None
        return [f"shutdown b{broker}", "settle", f"stop b{broker}", self._expires(broker)]

    def _expires(self, broker: int) -> str:
        if broker in self._expired:
            return ""
        self._expired[broker] = None
        return f"expire b{broker}"

    def _come_back(self, brokers: Sequence[int]) -> Iterator[str]:
        for broker in brokers:
            if self._expired.pop(broker, 0) is None:
                yield f"rejoin b{broker}"

    def text(self) -> str:
        head = [
            f"# What was done to {self._partition.name} from the console.",
            "#",
            "# The partition begins as it was before the first action, with an empty log. After",
            "# each action messages settle, and one record is produced with acks=all.",
        ]
        ending = ["\n".join((*self._words, "logs", "isr")), "invariants", "verdict"]
        return "\n\n".join(("\n".join(head), *self._steps, *ending)) + "\n"


def _between(groups: Sequence[Sequence[int]], own: Sequence[int]) -> Iterator[str]:
    """The brokers of different groups, disconnected; those not named are one more group."""
    named = [broker for group in groups for broker in group]
    rest = [broker for broker in own if broker not in named]
    parted = [[one for one in group if one in own] for group in [*groups, rest]]
    for place, group in enumerate(parted):
        others = [broker for later in parted[place + 1 :] for broker in later]
        for broker in group if others else ():
            yield f"cut b{broker} {' '.join(f'b{one}' for one in others)}"
