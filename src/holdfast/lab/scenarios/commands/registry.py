"""The stage that command handlers act on, and the table of all handlers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from holdfast.lab.judge.verdict import Verdict
from holdfast.lab.scenarios.options import MOST, OPTIONS, parse_option
from holdfast.lab.scenarios.scenario import Command, near_or_known
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.clients import SimConsumer, SimProducer
from holdfast.lab.world.world import World

QUIET_KINDS = ("fetch-sent", "fetch-parked", "sent", "registered", "isr-applied", "message-lost")
"""Kinds of events that a scenario hides unless it shows them (`trace +fetch-parked`)."""


ClientT = TypeVar("ClientT", SimProducer, SimConsumer)

_NAME = re.compile(r"\w[\w-]*")
_OPTION = re.compile(r"(\w+)=")
_NEEDS_WORDS = re.compile(r"\S+ [A-Z]")


class CommandError(Exception):
    """A command that cannot be carried out; the runner adds file, line and, for want of a hint,
    the usage line.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(slots=True)
class Stage:
    """The state of a running scenario: the world, and which events are shown."""

    variant: Mapping[str, str]
    overrides: Mapping[str, str]
    world_or_none: World | None = None
    shows_trace: bool = True
    quiet: dict[str, None] = field(default_factory=lambda: dict.fromkeys(QUIET_KINDS))
    said: list[str] = field(default_factory=list)
    """Lines that commands print themselves."""
    verdict: Verdict | None = None

    @property
    def world(self) -> World:
        """The world that `cluster` created."""
        if self.world_or_none is None:
            raise CommandError("there is no cluster yet", "begin with 'cluster brokers=(A,B)'")
        return self.world_or_none

    def broker(self, name: str) -> SimBroker:
        """A broker by name."""
        brokers = self.world.brokers
        if name not in brokers:
            raise CommandError(f"no broker is called {name!r}", near_or_known(name, brokers))
        return brokers[name]

    def living(self, name: str) -> SimBroker:
        """A running broker by name."""
        broker = self.broker(name)
        if not broker.alive:
            raise CommandError(f"{name} is not running", f"start it first: 'restart {name}'")
        return broker

    def node(self, name: str) -> str:
        """Any node by name; `controller` is the newest one."""
        world = self.world
        controllers = [one.name for one in world.controllers]
        nodes = (*world.brokers, *world.clients, "controller", "store", *controllers)
        if name not in nodes:
            raise CommandError(f"no node is called {name!r}", near_or_known(name, nodes))
        return world.controller_name if name == "controller" else name

    def option(self, key: str, given: str | None) -> Any:
        """An option's value: from the command line, else the variant, else the command."""
        text = self.overrides.get(key) or self.variant.get(key) or given
        return None if text is None else parse_option(key, text)

    def new_name(self, name: str) -> str:
        """Check that a name is free, and fit for `A->B` and `(A,B)`."""
        brokers = self.world_or_none.brokers if self.world_or_none else {}
        taken = name in brokers or name == "store" or name.startswith("controller")
        if taken or not _NAME.fullmatch(name):
            raise CommandError(f"no new node can be called {name!r}", "letters, digits, dashes")
        return name

    def producer(self, name: str) -> SimProducer:
        """A producer by name; made with the defaults if it is new."""
        return self._client(name, SimProducer, "producer")

    def consumer(self, name: str) -> SimConsumer:
        """A consumer by name; made with the defaults if it is new."""
        return self._client(name, SimConsumer, "consumer")

    def _client(self, name: str, kind: type[ClientT], what: str) -> ClientT:
        clients = self.world.clients
        if name not in clients:
            clients[name] = kind(self.world, self.new_name(name))
        client = clients[name]
        if not isinstance(client, kind):
            raise CommandError(f"{name!r} is not a {what}")
        return client


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """One command."""

    usage: str
    run: Callable[[Stage, Command], None]

    @property
    def meaning(self) -> str:
        """What it does, in one sentence."""
        return (self.run.__doc__ or "").splitlines()[0]

    @property
    def options(self) -> tuple[str, ...]:
        """The keys that the usage line allows."""
        keys = tuple(_OPTION.findall(self.usage))
        return (*keys, *OPTIONS) if "setting" in keys else keys

    def check(self, given: Command) -> None:
        """Refuse what the usage line does not allow, rather than ignore it."""
        for key in given.options:
            if key not in self.options:
                hint = near_or_known(key, self.options) if self.options else ""
                raise CommandError(f"{given.name} has no option {key!r}", hint)
        if given.data and given.name != "produce":
            raise CommandError(f"{given.name} takes no input", "only 'produce' does")
        if not given.words and _NEEDS_WORDS.match(self.usage):
            raise CommandError(f"{given.name} what?")


HANDLERS: dict[str, Handler] = {}


def command(
    usage: str,
) -> Callable[[Callable[[Stage, Command], None]], Callable[[Stage, Command], None]]:
    """Register a handler. The first word of its usage is the command's name."""

    def register(run: Callable[[Stage, Command], None]) -> Callable[[Stage, Command], None]:
        HANDLERS[usage.split(maxsplit=1)[0]] = Handler(usage=usage, run=run)
        return run

    return register


def names_in(text: str) -> list[str]:
    """`(A,B)` or `A,B` as a list."""
    return [one for one in text.strip("()").split(",") if one]


def need(words: tuple[str, ...], count: int, usage: str = "") -> tuple[str, ...]:
    """Exactly so many words; otherwise an error that shows this usage, or the command's own."""
    if len(words) != count:
        raise CommandError(f"expected {count} word(s)", usage and f"usage: {usage}")
    return words


def number(text: str, what: str, most: int = MOST) -> int:
    """A whole number from 0 to `most`."""
    if not text.isdecimal() or len(text) > len(str(most)) or int(text) > most:
        raise CommandError(f"{what} must be a whole number up to {most}, not {text!r}")
    return int(text)
