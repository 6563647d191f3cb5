"""A search's question, and the first commands of its world, as in every scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote

from holdfast.core import ACKS_ALL, FlushRule
from holdfast.lab.scenarios.commands import HANDLERS, Stage
from holdfast.lab.scenarios.options import parse_option
from holdfast.lab.scenarios.scenario import parse
from holdfast.search.bounds import Bounds
from holdfast.search.states.space import Space, State
from holdfast.search.states.step_cache import LATE_MS

_PAGE_CACHE = FlushRule.PAGE_CACHE.value
LAG_MS = "10000"
"""replica.lag.time.max.ms of every search: shorter than any producer's timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to search: plain values, so that another process can search it."""

    bounds: Bounds
    options: Mapping[str, str] = field(default_factory=dict)
    """Settings, switches and `without`, as in a scenario's `cluster` line."""
    strict: bool = False
    """Whether a loss counts that the settings do not guarantee against."""
    symmetry: bool = True
    """Whether states that differ only in broker names count once, where that is sound."""

    @property
    def all_options(self) -> dict[str, str]:
        """The options, with those that every search sets."""
        return {"replica_lag_time_max_ms": LAG_MS, **self.options}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the brokers."""
        return tuple(f"b{place}" for place in range(1, self.bounds.replicas + 1))

    @property
    def command(self) -> str:
        """The command that runs exactly this search."""
        words = ["holdfast lab search", *(["--strict"] if self.strict else [])]
        default = Bounds()
        for name, count in self.bounds.to_dict().items():
            if count != getattr(default, name) or name in ("replicas", "records"):
                words.append(f"--{name.replace('_', '-')} {count}")
        for key, value in self.options.items():
            if key == "without":
                words.extend(f"--without {one}" for one in value.strip("()").split(",") if one)
            else:
                words.append(f"--set {quote(f'{key}={value}')}")
        return " ".join(words)

    def begin(self) -> tuple[Space, State]:
        """The space of states, and the first state. OptionError if an option is wrong."""
        world = opening(self).world
        acks = parse_option("acks", self.options["acks"]) if "acks" in self.options else ACKS_ALL
        space = Space(self.bounds, world.settings, world.rules, acks, strict=self.strict)
        return space, space.initial(world)


def opening_commands(question: Question) -> list[str]:
    """The commands that create the cluster and its first records."""
    bounds, names = question.bounds, question.names
    words = [f"cluster brokers=({','.join(names)})"]
    if bounds.in_sync:
        words.append(f"isr=({','.join(names[: bounds.in_sync])})")
    words.extend(f"{key}={value}" for key, value in question.all_options.items() if key != "acks")
    commands = [" ".join(words)]
    if bounds.late_joins or (bounds.settled and bounds.in_sync):
        commands.extend(f"hold expansions {name}" for name in names)
    if bounds.lowerings:
        commands.append("hold settings")
    if bounds.settled:
        labels = " ".join(f"r{key}" for key in range(bounds.settled))
        in_sync = " ".join(names[: bounds.in_sync or None])
        commands.append(f"produce {names[0]} acks=all\n  {labels}")
        # One more round after a clock tick: followers then have the high watermark as well.
        commands.extend((f"settle {in_sync}", f"tick {names[0]} {LATE_MS}", f"settle {in_sync}"))
    if bounds.flushes and question.options.get("flush", _PAGE_CACHE) != _PAGE_CACHE:
        commands.extend(f"hold flushes {name}" for name in names)
    return commands


def opening(question: Question) -> Stage:
    """The stage after the opening commands."""
    stage = Stage(variant={}, overrides={})
    for text in opening_commands(question):
        carry_out(stage, text)
    return stage


def carry_out(stage: Stage, text: str) -> None:
    """Run one scenario command with its input. CommandError if it is impossible."""
    for one in parse(f"# A command.\n\n{text}\n", "search.scenario").steps[0].commands:
        handler = HANDLERS[one.name]
        handler.check(one)
        handler.run(stage, one)
        stage.world.pump()
    stage.said.clear()
