"""Translates a path through the states into scenario commands, checked in the ordinary world.

Each event becomes one or two commands of `commands`. The script runs them while it writes them,
because only the world shows which message a command means (the second LeaderAndIsr of a link).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holdfast.lab.world.messages import Envelope, SettingsMessage, StateAnswer
from holdfast.search.question import Question, carry_out, opening, opening_commands
from holdfast.search.states.step_cache import LATE_MS
from holdfast.search.walk import Event

_TO_BE = {"fetch": "asks again", "proposal": "repeats its proposal", "registration": "asks again"}


@dataclass(slots=True)
class Line:
    """One event: in words, and as commands."""

    words: str
    commands: list[str] = field(default_factory=list)


class Script:
    """The commands of a scenario while it is written."""

    def __init__(self, question: Question) -> None:
        self._lag_ms = int(question.all_options["replica_lag_time_max_ms"])
        self._acks = question.options.get("acks", "all")
        self._names = question.names
        self._records = question.bounds.settled
        self.stage = opening(question)
        self.opening = opening_commands(question)
        self.lines: list[Line] = []

    def _do(self, lines: list[str], text: str) -> None:
        carry_out(self.stage, text)
        lines.append(text)

    def play(self, events: Sequence[Event]) -> None:
        """Write and run the commands of all events."""
        for event in events:
            line = Line(self._words(event))
            for text in _COMMANDS[event.kind](self, event):
                self._do(line.commands, text)
            for text in (*self._lost(), *self._answers()):
                self._do(line.commands, text)
            self.lines.append(line)

    def _name(self, event: Event) -> str:
        return self._names[event.broker - 1]

    # Messages.

    def _on_link(self, source: str, target: str) -> list[Envelope]:
        """A link's messages without LeaderAndIsr responses, which a search does not count."""
        found = self.stage.world.network.between(source, target)
        return [one for one in found if not isinstance(one.payload, StateAnswer)]

    def _chosen(self, event: Event) -> str:
        """The words by which a command selects the message of an event."""
        return self._selected(self._on_link(event.source, event.target)[event.position])

    def _selected(self, envelope: Envelope) -> str:
        source, target = envelope.source, envelope.target
        on_link = self.stage.world.network.between(source, target)
        text = f"{self._node_name(source)}->{self._node_name(target)}"
        if len(on_link) == 1:
            return text
        alike = [one for one in on_link if one.wire_name == envelope.wire_name]
        if len(alike) < len(on_link):
            text += f" only={envelope.wire_name}"
        if len(alike) == 1:
            return text
        place = next(index for index, one in enumerate(alike, 1) if one is envelope)
        return f"{text} first=1" if place == 1 else f"{text} place={place}"

    def _node_name(self, name: str) -> str:
        return "controller" if name == self.stage.world.controller_name else name

    def _lost(self) -> list[str]:
        """Commands that drop messages to unreachable nodes: the search counts these as lost."""
        world = self.stage.world
        controllers = [one.name for one in world.controllers[:-1]]
        dead = [name for name, one in world.brokers.items() if not one.alive]
        texts: list[str] = []
        for one in world.network.pending:
            disconnected = world.network.is_disconnected(one.source, one.target)
            if disconnected or one.target in dead or one.target in controllers:
                text = f"drop {self._node_name(one.source)}->{one.target}"
                if text not in texts:
                    texts.append(text)
        return texts

    def _answers(self) -> list[str]:
        """Delivery of messages that arrive immediately in the search."""
        world = self.stage.world
        found = [one for one in world.network.pending if isinstance(one.payload, StateAnswer)]
        sources = dict.fromkeys(one.source for one in found if one.target == world.controller_name)
        settings = [
            one for one in world.network.pending if isinstance(one.payload, SettingsMessage)
        ]
        return [
            *(f"deliver {one}->controller only=LeaderAndIsrResponse" for one in sources),
            *(f"deliver store->{one.target} only=SettingsMessage" for one in settings),
        ]

    # One event.

    def _words(self, event: Event) -> str:
        if event.source:
            return _MESSAGE_WORDS[event.kind].format(
                what=event.what, source=event.source, target=event.target
            )
        name = self._name(event) if event.broker else "the controller"
        again = _TO_BE.get(event.variant, "repeats what was not answered")
        kept = ", and what it had sent still arrives" if event.variant == "kept" else ""
        slow = ", slowly" if event.variant == "slow" else ""
        return _WORDS[event.kind].format(
            name=name, record=f"r{self._records}", again=again, kept=kept, slow=slow
        )

    def _deliver(self, event: Event) -> list[str]:
        return [f"deliver {self._chosen(event)}"]

    def _lose(self, event: Event) -> list[str]:
        return [f"drop {self._chosen(event)}"]

    def _duplicate(self, event: Event) -> list[str]:
        return [f"duplicate {self._chosen(event)}"]

    def _produce(self, event: Event) -> list[str]:
        text = f"produce {self._name(event)} acks={self._acks}\n  r{self._records}"
        self._records += 1
        return [text]

    def _again(self, event: Event) -> list[str]:
        if not event.broker:
            return [f"again controller {event.variant}"]
        return [f"again {self._name(event)} {event.variant}"]

    def _lag(self, event: Event) -> list[str]:
        return [f"tick {self._name(event)} {self._lag_ms + 1}"]

    def _expand(self, event: Event) -> list[str]:
        name = self._name(event)
        return [f"release expansions {name}", f"hold expansions {name}"]

    def _lower(self, _event: Event) -> list[str]:
        known = self.stage.world.store.settings.min_insync_replicas
        return [f"alter min_insync_replicas={known - 1}"]

    def _crash(self, event: Event) -> list[str]:
        return [f"crash {self._name(event)}{_wire(event)}"]

    def _power(self, event: Event) -> list[str]:
        name = self._name(event)
        if not self.stage.world.brokers[name].alive:
            return [f"power-loss {name}"]
        return [f"crash {name} keep=flushed{_wire(event)}"]

    def _restart(self, event: Event) -> list[str]:
        name = self._name(event)
        disk = self.stage.world.brokers[name].disk
        repair = [f"disk {name} works"] if disk.fails or disk.forgets_writes else []
        return [*repair, *self._slow(event, f"restart {name}")]

    def _rejoin(self, event: Event) -> list[str]:
        return self._slow(event, f"rejoin {self._name(event)}")

    def _slow(self, event: Event, text: str) -> list[str]:
        """A registration; if it is slow, the scenario delivers its messages later."""
        name = self._name(event)
        if event.variant == "slow":
            return [f"hold registrations {name}", text]
        if name in self.stage.world.slow_sessions:
            return [f"release registrations {name}", text]
        return [text]

    def _plain(self, event: Event) -> list[str]:
        return [_PLAIN[event.kind].format(name=self._name(event))]


def _wire(event: Event) -> str:
    return " wire=kept" if event.variant == "kept" else ""


_PLAIN = {
    "tick": f"tick {{name}} {LATE_MS}",
    "stop": "stop {name}",
    "shutdown": "shutdown {name}",
    "expire": "expire {name}",
    "elect": "elect {name}",
    "failover": "elect-controller",
    "cut": "cut {name}",
    "heal": "heal",
    "read": "consume c1 from={name}",
    "flush": "flush {name}",
    "fail-disk": "disk {name} fails",
    "lose-disk": "lose-disk {name}",
    "lose-epochs": "disk {name} loses-epochs",
}

_COMMANDS: dict[str, Callable[[Script, Event], list[str]]] = {
    "deliver": Script._deliver,
    "overtake": Script._deliver,
    "hold": lambda _script, _event: [],
    "lose": Script._lose,
    "unheard": Script._lose,
    "duplicate": Script._duplicate,
    "produce": Script._produce,
    "again": Script._again,
    "lag": Script._lag,
    "expand": Script._expand,
    "lower": Script._lower,
    "answer": lambda _script, _event: ["release settings", "hold settings"],
    "crash": Script._crash,
    "power": Script._power,
    "restart": Script._restart,
    "rejoin": Script._rejoin,
    **dict.fromkeys(_PLAIN, Script._plain),
}

_MESSAGE_WORDS = {
    "deliver": "",
    "overtake": "A {what} of {source} overtakes others on its way to {target}.",
    "hold": "What {source} sends to {target} is slow from here on.",
    "lose": "A {what} of {source} to {target} gets lost.",
    "unheard": "{target} never receives it.",
    "duplicate": "The {what} of {source} is on its way to {target} twice.",
}

_WORDS = {
    "produce": "A producer sends {record} to {name}.",
    "again": "After a while {name} {again}.",
    "tick": "Time passes at {name}: what was parked there is answered.",
    "lag": "Much time passes at {name}: followers that are behind now lag.",
    "expand": "Now {name} proposes the followers that had qualified for the ISR.",
    "crash": "{name} crashes{kept}.",
    "power": "The machine of {name} loses power{kept}.",
    "stop": "{name} stops cleanly.",
    "shutdown": "{name} asks the controller for a controlled shutdown.",
    "restart": "{name} starts again, and registers{slow}.",
    "rejoin": "{name} registers again{slow}.",
    "expire": "The session of {name} ends.",
    "elect": "An operator has {name} elected.",
    "lower": "An operator lowers min.insync.replicas.",
    "answer": "The controller learns that the store has the settings.",
    "failover": "Another controller takes over.",
    "read": "A consumer reads from {name}.",
    "cut": "{name} is disconnected.",
    "heal": "The network is reconnected.",
    "flush": "The operating system flushes the log of {name}.",
    "fail-disk": "The disk of {name} begins to fail.",
    "lose-disk": "{name} loses its disk.",
    "lose-epochs": "{name} loses its checkpoint of leader epochs.",
}
