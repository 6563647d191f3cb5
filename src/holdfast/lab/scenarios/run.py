"""Runs a scenario under one variant: commands in, lines out, and the trace of it all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.lab.judge.verdict import Verdict
from holdfast.lab.render.narrate import line as line_of
from holdfast.lab.scenarios.commands import HANDLERS, CommandError, Stage
from holdfast.lab.scenarios.options import OptionError, parse_option
from holdfast.lab.scenarios.scenario import (
    Step,
    Command,
    Scenario,
    ScenarioError,
    Variant,
    near_or_known,
)
from holdfast.lab.world.world import DoesNotSettleError
from holdfast.model import TraceEvent

SAYING = (
    "variant",
    "trace",
    "state",
    "logs",
    "isr",
    "followers",
    "metadata",
    "pending",
    "latest",
    "invariants",
    "processed",
    "verdict",
)
"""Commands that change nothing: a beat of only these is no step of the story."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A beat that did not say what it should."""

    line: int
    expected: tuple[str, ...]
    actual: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One scenario under one variant."""

    scenario: Scenario
    variant: Variant
    outputs: tuple[tuple[str, ...], ...]
    mismatches: tuple[Mismatch, ...]
    events: tuple[TraceEvent, ...]
    verdict: Verdict

    @property
    def as_expected(self) -> bool:
        """Whether every beat said what it should."""
        return not self.mismatches


def run_scenario(
    scenario: Scenario, variant: Variant, overrides: Mapping[str, str] | None = None
) -> Run:
    """Play the story. Overrides change rules and settings; then nothing is expected of it."""
    _check_variant(scenario, variant)
    stage = Stage(variant=variant.options, overrides=overrides or {})
    outputs: list[tuple[str, ...]] = []
    mismatches: list[Mismatch] = []
    for step in scenario.steps:
        output = tuple(_play(scenario, stage, step))
        outputs.append(output)
        expected = step.expects(variant.name)
        if not overrides and output != expected:
            mismatches.append(
                Mismatch(line=step.rule_line or step.line, expected=expected, actual=output)
            )
    if stage.verdict is None:
        last = scenario.steps[-1].last_line if scenario.steps else 1
        raise ScenarioError("the story has no verdict", scenario.path, last, "end with 'verdict'")
    return Run(
        scenario=scenario,
        variant=variant,
        outputs=tuple(outputs),
        mismatches=tuple(mismatches),
        events=tuple(stage.world.recorder.events),
        verdict=stage.verdict,
    )


def _check_variant(scenario: Scenario, variant: Variant) -> None:
    """Say at the variant's own line what is wrong with it."""
    try:
        for key, text in variant.options.items():
            parse_option(key, text)
    except OptionError as error:
        raise ScenarioError(str(error), scenario.path, variant.line, error.hint) from None


def _play(scenario: Scenario, stage: Stage, step: Step) -> list[str]:
    output: list[str] = []
    if step.narration and stage.world_or_none:
        stage.world.recorder.emit("said", text=step.narration)
    acting = [one.text for one in step.commands if one.name not in SAYING]
    if acting and stage.world_or_none:
        stage.world.recorder.emit("step", text=" · ".join(acting))
    for command in step.commands:
        before = len(stage.world.recorder.events) if stage.world_or_none else 0
        _carry_out(scenario, stage, command)
        if stage.telling and stage.world_or_none and command.name != "cluster":
            output.extend(_told(stage, before))
        output.extend(stage.said)
        stage.said.clear()
    return output


def _carry_out(scenario: Scenario, stage: Stage, command: Command) -> None:
    handler = HANDLERS.get(command.name)
    path = scenario.path
    if handler is None:
        hint = near_or_known(command.name, HANDLERS)
        raise ScenarioError(f"unknown command {command.name!r}", path, command.line, hint)
    try:
        if stage.world_or_none:
            stage.world.recorder.cause = None
        handler.check(command)
        handler.run(stage, command)
        if stage.world_or_none:
            stage.world.pump()
    except DoesNotSettleError as error:
        hint = "deliver step by step, or take fewer guards out"
        raise ScenarioError(str(error), path, command.line, hint) from None
    except (CommandError, OptionError) as error:
        hint = error.hint or f"usage: {handler.usage}"
        raise ScenarioError(str(error), path, command.line, hint) from None


def _told(stage: Stage, before: int) -> list[str]:
    world = stage.world
    names = {broker.id: name for name, broker in world.brokers.items()}
    lines: list[str] = []
    for event in world.recorder.events[before:]:
        if event.kind in stage.quiet or event.kind in ("begins", "verdict"):
            continue
        line = line_of(event, {int(key): value for key, value in names.items()})
        if line is not None:
            lines.append(line)
    return lines
