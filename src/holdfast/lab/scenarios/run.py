"""Runs a scenario under one variant and compares its output with the expected output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from holdfast.lab.judge.verdict import Verdict
from holdfast.lab.render.narrate import line as line_of
from holdfast.lab.scenarios.commands import HANDLERS, CommandError, Stage
from holdfast.lab.scenarios.options import OptionError, parse_option
from holdfast.lab.scenarios.scenario import (
    Command,
    Scenario,
    ScenarioError,
    Step,
    Variant,
    near_or_known,
)
from holdfast.lab.world.world import DoesNotSettleError
from holdfast.model import TraceEvent

PRINTING = (
    *("variant", "trace", "state", "logs", "isr", "followers", "metadata", "pending", "latest"),
    *("invariants", "processed", "verdict"),
)
"""Commands that only print: a paragraph of only these gets no `step` event in the trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A step whose output was not the expected one."""

    line: int
    expected: tuple[str, ...]
    actual: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of one scenario under one variant."""

    scenario: Scenario
    variant: Variant
    outputs: tuple[tuple[str, ...], ...]
    mismatches: tuple[Mismatch, ...]
    events: tuple[TraceEvent, ...]
    verdict: Verdict

    @property
    def as_expected(self) -> bool:
        """Whether every step printed the expected output."""
        return not self.mismatches


def run_scenario(
    scenario: Scenario, variant: Variant, overrides: Mapping[str, str] | None = None
) -> Run:
    """Run the scenario. Overrides change rules and settings; then no output is expected."""
    stage = new_stage(scenario, variant, overrides)
    outputs: list[tuple[str, ...]] = []
    mismatches: list[Mismatch] = []
    for step, output in zip(scenario.steps, play(scenario, stage), strict=True):
        outputs.append(output)
        expected = step.expects(variant.name)
        if not overrides and output != expected:
            mismatches.append(
                Mismatch(line=step.rule_line or step.line, expected=expected, actual=output)
            )
    if stage.verdict is None:
        last = scenario.steps[-1].last_line if scenario.steps else 1
        raise ScenarioError(
            "the scenario has no verdict", scenario.path, last, "end with 'verdict'"
        )
    return Run(
        scenario=scenario,
        variant=variant,
        outputs=tuple(outputs),
        mismatches=tuple(mismatches),
        events=tuple(stage.world.recorder.events),
        verdict=stage.verdict,
    )


def new_stage(
    scenario: Scenario, variant: Variant, overrides: Mapping[str, str] | None = None
) -> Stage:
    """A stage on which no step has been played yet."""
    _check_variant(scenario, variant)
    return Stage(variant=variant.options, overrides=overrides or {})


def play(scenario: Scenario, stage: Stage) -> Iterator[tuple[str, ...]]:
    """Play the scenario step by step; yields the output of each step."""
    for step in scenario.steps:
        yield tuple(_play_step(scenario, stage, step))


def _check_variant(scenario: Scenario, variant: Variant) -> None:
    """Report a wrong option at the variant's own line."""
    try:
        for key, text in variant.options.items():
            parse_option(key, text)
    except OptionError as error:
        raise ScenarioError(str(error), scenario.path, variant.line, error.hint) from None


def _play_step(scenario: Scenario, stage: Stage, step: Step) -> list[str]:
    output: list[str] = []
    if step.narration and stage.world_or_none:
        stage.world.recorder.emit("said", text=step.narration)
    acting = [one.text for one in step.commands if one.name not in PRINTING]
    if acting and stage.world_or_none:
        stage.world.recorder.emit("step", text=" · ".join(acting))
    for command in step.commands:
        before = len(stage.world.recorder.events) if stage.world_or_none else 0
        _carry_out(scenario, stage, command)
        if stage.shows_trace and stage.world_or_none and command.name != "cluster":
            output.extend(_new_lines(stage, before))
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


def _new_lines(stage: Stage, before: int) -> list[str]:
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
