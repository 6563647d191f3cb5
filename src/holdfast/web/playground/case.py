"""A case: what somebody has made of a scenario. The page's address holds it.

A case is a scenario, or its first steps and then commands of the user's own. Both are played by the
lab as a scenario file, so that a case can be saved as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from holdfast.lab import PRINTING, Scenario, Step, Variant, load, parse

FREE_PLAY = "free-play"
_FREE_PLAY = """\
# Free play: three brokers, one partition, and everything that you do to them.

cluster brokers=(b1,b2,b3)
deliver controller
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A scenario under some rules, as far as it is kept, and the commands after that."""

    scenario: str
    variant: str = ""
    kept: int | None = None
    """The last step of the scenario that is played; None: all of it."""
    commands: tuple[str, ...] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Settings, and the guards that are off (`without`)."""

    @staticmethod
    def of(given: Mapping[str, Any]) -> Case:
        """A case as the page sends it."""
        kept = given.get("kept")
        return Case(
            scenario=str(given["scenario"]),
            variant=str(given.get("variant", "")),
            kept=None if kept is None else int(kept),
            commands=tuple(map(str, given.get("commands", ()))),
            overrides={str(key): str(value) for key, value in given.get("overrides", {}).items()},
        )

    def to_dict(self) -> dict[str, Any]:
        """The same for the page."""
        return {
            "scenario": self.scenario,
            "variant": self.variant,
            "kept": self.kept,
            "commands": list(self.commands),
            "overrides": dict(self.overrides),
        }

    def then(self, step: int, command: str) -> Case:
        """The case with a command after this step; what came after the step is gone."""
        if self.kept is None or step <= self.kept:
            return replace(self, kept=step, commands=(command,))
        return replace(self, commands=(*self.commands[: step - self.kept], command))


def played(case: Case) -> tuple[Scenario, Variant]:
    """What the lab plays. ScenarioError if a command cannot be read."""
    base = base_of(case)
    chosen = base.variant(case.variant) if case.variant else base.variants[0]
    variant = replace(chosen, options={**chosen.options, **case.overrides})
    if case.kept is None:
        return base, variant
    text = "\n\n".join(_paragraphs(case, base, variant)) + "\n"
    scenario = parse(text, f"{base.id}-played.scenario")
    return scenario, scenario.variants[0]


def base_of(case: Case) -> Scenario:
    """The scenario that a case begins with."""
    if case.scenario == FREE_PLAY:
        return parse(_FREE_PLAY, f"{FREE_PLAY}.scenario")
    return load(case.scenario)


def _paragraphs(case: Case, base: Scenario, variant: Variant) -> Iterator[str]:
    yield f"# {base.title}"
    options = " ".join(f"{key}={value}" for key, value in variant.options.items())
    yield f"variant {variant.name} {options}".rstrip()
    # The first step that acts creates the cluster; the lab counts the steps after it.
    kept = list(islice((one for one in base.steps if acts(one)), (case.kept or 0) + 1))
    yield from map(_text_of, kept)
    # Otherwise the scenario's last narration would seem to be about the own commands.
    is_narrated = any(one.narration for one in kept)
    for place, command in enumerate(case.commands):
        narration = "# From here on: your own commands.\n" if is_narrated and place == 0 else ""
        yield narration + command
    yield "verdict"


def acts(step: Step) -> bool:
    """Whether a step does more than print."""
    return any(one.name not in PRINTING for one in step.commands)


def _text_of(step: Step) -> str:
    lines = [f"# {step.narration}"] if step.narration else []
    for one in step.commands:
        if one.name not in PRINTING:
            lines += [one.text, *(f"  {line}" for line in one.data)]
    return "\n".join(lines)
