"""Answers the page's questions: plays a case, explains a record, writes a scenario file.

An answer depends on the question alone: every question plays its case from the beginning. That
takes milliseconds, and there is no state that could differ from what the page's address says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.lab import (
    Frame,
    Scenario,
    ScenarioError,
    Stage,
    UnknownScenarioError,
    Variant,
    explain_with_remedies,
    fold,
    new_stage,
    play,
    rewritten,
)
from holdfast.web.playground.case import Case, acts, played
from holdfast.web.playground.controls import controls_of
from holdfast.web.stepper_page import scenario_data


def answer(question: str) -> str:
    """The answer to a question of the page, both in JSON."""
    asked = json.loads(question)
    try:
        answered = _ANSWERS[asked["ask"]](Case.of(asked["case"]), asked)
    except (ScenarioError, UnknownScenarioError) as error:
        answered = {"error": _readable(error)}
    except (KeyError, TypeError, ValueError):
        answered = {"error": "The address of this page is no case."}
    return json.dumps(answered, ensure_ascii=False)


class _Played(NamedTuple):
    """A case as far as it could be played."""

    scenario: Scenario
    variant: Variant
    stage: Stage
    controls: dict[int, dict[str, Any]]
    """What can be done after each step."""
    output: tuple[str, ...]
    """What the last step printed."""
    error: str


def _play(case: Case) -> _Played:
    scenario, variant = played(case)
    stage = new_stage(scenario, variant)
    controls: dict[int, dict[str, Any]] = {}
    output: tuple[str, ...] = ()
    error = ""
    count = -1
    try:
        for step, printed in zip(scenario.steps, play(scenario, stage), strict=True):
            # The step that creates the cluster is the start, the others count from 1.
            count += acts(step)
            output = printed
            controls[max(0, count)] = controls_of(stage)
    except ScenarioError as problem:
        if stage.world_or_none is None:
            raise
        error = _readable(problem)
    return _Played(scenario, variant, stage, controls, output, error)


def _on_play(case: Case, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The frames of a case; with `command`, of the case with this command after `step`."""
    if "command" in asked:
        return _on_command(case, int(asked["step"]), str(asked["command"]).strip())
    return _shown(case, _play(case))


def _on_command(case: Case, step: int, command: str) -> dict[str, Any]:
    longer = case.then(step, command)
    result = _play(longer)
    if result.error:
        return {"error": result.error}
    own = result.scenario.steps[-2]
    if acts(own):
        return _shown(longer, result)
    # The command only prints: the case stays as it is.
    stage = new_stage(result.scenario, result.variant)
    return {"output": list(list(play(result.scenario, stage))[-2])}


def _shown(case: Case, result: _Played) -> dict[str, Any]:
    world = result.stage.world
    frames = _frames(result)
    return {
        "case": case.to_dict(),
        "title": result.scenario.title,
        "about": result.scenario.header,
        "variant": result.variant.name,
        "data": scenario_data(result.scenario.id, frames),
        "last": _last_action(frames),
        "controls": result.controls,
        "verdict": _verdict(result),
        "error": result.error,
        "off": list(world.rules.guards.removed()),
        "records": list(
            dict.fromkeys(one.label for one in world.history.acknowledgements.values())
        ),
    }


def _frames(result: _Played) -> list[Frame]:
    frames = fold(result.stage.world.recorder.events)
    # Without commands the lab numbers the frames, but all of them are the start of this case.
    at_start = len(result.controls) == 1
    return [replace(one, step=0) for one in frames] if at_start else frames


def _last_action(frames: list[Frame]) -> int:
    """The last frame that is no verdict."""
    return max(place for place, one in enumerate(frames) if one.kind != "verdict" or place == 0)


def _verdict(result: _Played) -> dict[str, Any] | None:
    judged = result.stage.verdict
    if judged is None:
        return None
    lines = list(result.output)
    begins = next(place for place, line in enumerate(lines) if line.startswith("outcome: "))
    return {
        "verdict": judged.verdict,
        "outcome": judged.outcome,
        "lost": list(judged.lost),
        "lines": lines[begins:],
    }


def _on_explain(case: Case, asked: Mapping[str, Any]) -> dict[str, Any]:
    """As `holdfast lab explain` prints it."""
    result = _play(case)
    events = result.stage.world.recorder.events
    about: int | str = asked["about"]
    explanation = explain_with_remedies(result.scenario, result.variant, events, about)
    return {"text": explanation.to_text()}


def _on_file(case: Case, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The case as a scenario file, with the output that it has."""
    del asked
    scenario, _ = played(case)
    return {"name": scenario.path.rpartition("/")[2], "text": rewritten(scenario)}


_ANSWERS: Mapping[str, Callable[[Case, Mapping[str, Any]], dict[str, Any]]] = {
    "play": _on_play,
    "explain": _on_explain,
    "file": _on_file,
}


def _readable(error: ScenarioError | UnknownScenarioError) -> str:
    """The message without the place in a file that the reader does not see, and its hint."""
    words = str(error)
    if isinstance(error, ScenarioError):
        words = words.partition(": ")[2]
    return f"{words} ({error.hint})" if error.hint else words
