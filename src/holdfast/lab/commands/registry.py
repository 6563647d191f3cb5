"""What handlers share: the stage they act on, and the table they stand in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.lab.broker import SimBroker
from holdfast.lab.clients import SimConsumer, SimProducer
from holdfast.lab.options import parse_option
from holdfast.lab.scenario import Command, suggestion
from holdfast.lab.verdict import Verdict
from holdfast.lab.world import World

QUIET_KINDS = ("fetch-sent", "fetch-parked", "sent", "registered", "isr-applied", "message-lost")
"""Kinds whose lines a story does not show unless it asks (`trace +fetch-parked`)."""


class CommandError(Exception):
    """A command that cannot be carried out; the runner adds file and line."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(slots=True)
class Stage:
    """Where a story plays: the world, and how much of it is told."""

    variant: Mapping[str, str]
    overrides: Mapping[str, str]
    world_or_none: World | None = None
    telling: bool = True
    quiet: dict[str, None] = field(default_factory=lambda: dict.fromkeys(QUIET_KINDS))
    said: list[str] = field(default_factory=list)
    """What commands say themselves, in between what the trace says."""
    verdict: Verdict | None = None

    @property
    def world(self) -> World:
        """The world, once `cluster` has made it."""
        if self.world_or_none is None:
            raise CommandError("there is no cluster yet", "begin with 'cluster brokers=(A,B)'")
        return self.world_or_none

    def broker(self, name: str) -> SimBroker:
        """A broker by name."""
        brokers = self.world.brokers
        if name not in brokers:
            hint = suggestion(name, brokers) or f"known: {', '.join(brokers)}"
            raise CommandError(f"no broker is called {name!r}", hint)
        return brokers[name]

    def option(self, key: str, given: str | None) -> Any:
        """A choice of the command line, else of the variant, else of the command itself."""
        text = self.overrides.get(key) or self.variant.get(key) or given
        return None if text is None else parse_option(key, text)

    def producer(self, name: str) -> SimProducer:
        """A producer by name; made with the defaults if it is new."""
        clients = self.world.clients
        if name not in clients:
            clients[name] = SimProducer(self.world, name)
        client = clients[name]
        if not isinstance(client, SimProducer):
            raise CommandError(f"{name!r} is not a producer")
        return client

    def consumer(self, name: str) -> SimConsumer:
        """A consumer by name; made with the defaults if it is new."""
        clients = self.world.clients
        if name not in clients:
            clients[name] = SimConsumer(self.world, name)
        client = clients[name]
        if not isinstance(client, SimConsumer):
            raise CommandError(f"{name!r} is not a consumer")
        return client


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """One command."""

    usage: str
    run: Callable[[Stage, Command], None]
    options: tuple[str, ...]


HANDLERS: dict[str, Handler] = {}


def command(
    usage: str, *options: str
) -> Callable[[Callable[[Stage, Command], None]], Callable[[Stage, Command], None]]:
    """Put a handler into the table. The usage's first word is the command's name."""

    def register(run: Callable[[Stage, Command], None]) -> Callable[[Stage, Command], None]:
        HANDLERS[usage.split(maxsplit=1)[0]] = Handler(usage=usage, run=run, options=options)
        return run

    return register


def names_in(text: str) -> list[str]:
    """`(A,B)` or `A,B` as a list."""
    return [one for one in text.strip("()").split(",") if one]


def need(words: tuple[str, ...], count: int, usage: str) -> tuple[str, ...]:
    """Exactly so many words, or the usage line."""
    if len(words) != count:
        raise CommandError(f"expected {count} word(s)", f"usage: {usage}")
    return words


def number(text: str, what: str) -> int:
    """A whole number that is not negative."""
    if not text.isdecimal():
        raise CommandError(f"{what} must be a whole number, not {text!r}")
    return int(text)
