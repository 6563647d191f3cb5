"""Writes what was done as a scenario file: `holdfast lab run FILE` plays it on the real core.

The file begins with the partition as it was before the first action. Each action becomes the lab's
commands for the same fault, and a record is produced after each, so that the verdict has something
to judge. A real cluster's timing is not in the file: messages settle after every step.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
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
        lines = ["trace off", f"cluster {' '.join(options)}", "producer app acks=all"]
        return "\n".join((*lines, "produce app", "  m0", "settle", "trace on"))

    def add(self, action: Action) -> None:
        """One action with its comment; a comment alone if the lab has no such fault."""
        words = f"holdfast fault {in_words(action.call, action.fields)}"
        happened = "; ".join(action.lines[:3])
        for broker in [one for one in self._down if one in action.running]:
            again = f"b{broker} was started again, not from the console."
            self._step(again, list(self._restart(broker)))
        commands = [one for one in self._commands(action.call, action.fields) if one]
        if not commands:
            words += " (the lab has no counterpart, or it does not concern this partition)"
        words = f"{words}. {f'On the cluster: {happened}.' if happened else ''}"
        self._step(words, commands, action.leaders.get(self._partition.name, -1))

    def _step(self, words: str, commands: Sequence[str], leader: int = -1) -> None:
        lines = [f"# {line}" for line in textwrap.wrap(words.strip(), _COLUMNS)]
        if not commands:
            self._words += [*lines]
            return
        record: tuple[str, ...] = ()
        if leader in self._partition.replicas:
            record = (f"produce app to=b{leader}", f"  m{self._records}")
            self._records += 1
        quiet = ("trace off", *record, f"run {2 * _SECONDS}", "trace on")
        after = ("settle", *quiet, "isr", "logs")
        self._steps.append("\n".join((*self._words, *lines, *commands, *after)))
        self._words = []

    def _commands(self, call: str, fields: dict[str, Any]) -> Iterator[str]:
        own = self._partition.replicas
        if call == "heal":
            yield from self._end_of_faults()
        elif call == "partition":
            yield from _between(fields.get("groups", []), own)
        else:
            for broker in fields.get("brokers", ()):
                if broker in own and call in _OF_ONE:
                    yield from _OF_ONE[call](self, broker)

    def _end_of_faults(self) -> Iterator[str]:
        running = [one for one in self._partition.replicas if one not in self._down]
        yield "heal"
        yield from (f"disk b{one} works" for one in running)
        for broker in running:
            yield from self._comes_back(broker)

    # One fault of one broker.

    def _kill(self, broker: int) -> Iterator[str]:
        yield from self._dies(broker, "")

    def _lose_power(self, broker: int) -> Iterator[str]:
        yield from self._dies(broker, " keep=flushed")

    def _restart(self, broker: int) -> Iterator[str]:
        if broker not in self._down:
            yield from self._stop(broker)
        yield f"restart b{broker}"
        self._down.pop(broker, None)
        self._expired.pop(broker, None)

    def _stop(self, broker: int) -> Iterator[str]:
        self._down[broker] = None
        yield from (f"shutdown b{broker}", "settle", f"stop b{broker}", self._expires(broker))

    def _pause(self, broker: int) -> Iterator[str]:
        yield from (f"pause b{broker}", self._expires(broker))

    def _resume(self, broker: int) -> Iterator[str]:
        yield f"resume b{broker}"
        yield from self._comes_back(broker)

    def _isolate(self, broker: int) -> Iterator[str]:
        yield from (f"cut b{broker}", self._expires(broker))

    def _expire_session(self, broker: int) -> Iterator[str]:
        yield from (self._expires(broker), "settle")
        yield from self._comes_back(broker)

    def _disk_full(self, broker: int) -> Iterator[str]:
        yield f"disk b{broker} full"

    def _io_error(self, broker: int) -> Iterator[str]:
        yield f"disk b{broker} fails"

    def _dies(self, broker: int, how: str) -> list[str]:
        self._down[broker] = None
        return [f"crash b{broker}{how}", self._expires(broker)]

    def _expires(self, broker: int) -> str:
        if broker in self._expired:
            return ""
        self._expired[broker] = None
        return f"expire b{broker}"

    def _comes_back(self, broker: int) -> Iterator[str]:
        if broker in self._expired:
            del self._expired[broker]
            yield f"rejoin b{broker}"

    def text(self) -> str:
        head = [
            f"# What was done to {self._partition.name} from the console.",
            "#",
            "# The partition begins as it was before the first action, with an empty log. After",
            "# each action messages settle, and one record is sent with acks=all.",
        ]
        ending = ["\n".join((*self._words, "logs", "isr")), "invariants", "verdict"]
        return "\n\n".join(("\n".join(head), *self._steps, *ending)) + "\n"


_OF_ONE: Final[dict[str, Callable[[_Script, int], Iterator[str]]]] = {
    "kill": _Script._kill,
    "power-loss": _Script._lose_power,
    "stop": _Script._stop,
    "restart": _Script._restart,
    "pause": _Script._pause,
    "resume": _Script._resume,
    "isolate": _Script._isolate,
    "expire-session": _Script._expire_session,
    "disk-full": _Script._disk_full,
    "io-error": _Script._io_error,
}
"""The faults that the lab has, too."""


def _between(groups: Sequence[Sequence[int]], own: Sequence[int]) -> Iterator[str]:
    """The brokers of different groups, disconnected; those not named are one more group."""
    named = [broker for group in groups for broker in group]
    rest = [broker for broker in own if broker not in named]
    parted = [[one for one in group if one in own] for group in [*groups, rest]]
    for place, group in enumerate(parted):
        others = [broker for later in parted[place + 1 :] for broker in later]
        for broker in group if others else ():
            yield f"cut b{broker} {' '.join(f'b{one}' for one in others)}"
