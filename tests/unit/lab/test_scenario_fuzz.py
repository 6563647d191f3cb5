"""Mutated scenario files run, or raise ScenarioError, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.lab.scenarios.catalogue import paths
from holdfast.lab.scenarios.run import run_scenario
from holdfast.lab.scenarios.scenario import ScenarioError, parse

ODD = "0123456789abmzABC=->(),#. \t\0\f²é"
Edit = Callable[[list[str]], None]


@cache
def texts() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in paths())


@cache
def commands() -> tuple[str, ...]:
    lines = (line for text in texts() for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line[:1].isalpha()))


@cache
def words() -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for line in commands() for word in line.split()))


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    """One small change of a list of lines."""
    kind = draw(st.sampled_from(("drop", "swap", "copy", "command", "character", "word", "cut")))
    place = draw(st.integers(0, 10_000))
    other = draw(st.integers(0, 10_000))
    character = draw(st.sampled_from(ODD))
    word = draw(st.sampled_from(words()))
    command = draw(st.sampled_from(commands()))

    def change(lines: list[str]) -> None:
        first, second = place % len(lines), other % len(lines)
        line = lines[first]
        middle = other % max(1, len(line))
        match kind:
            case "drop":
                lines[first : first + 1] = [] if len(lines) > 1 else [""]
            case "swap":
                lines[first], lines[second] = lines[second], line
            case "copy":
                lines.insert(first, lines[second])
            case "command":
                lines.insert(first, command)
            case "character":
                lines[first] = f"{line[:middle]}{character}{line[middle + 1 :]}"
            case "word":
                parts = line.split(" ")
                parts[other % len(parts)] = word
                lines[first] = " ".join(parts)
            case _:
                lines[first] = line[middle:]

    return change


@st.composite
def mutilated(draw: st.DrawFn) -> str:
    lines = draw(st.sampled_from(texts())).splitlines()
    for change in draw(st.lists(edits(), min_size=1, max_size=6)):
        change(lines)
    return "\n".join(lines)


def play(text: str) -> bool:
    """Whether every variant could run. Any exception but ScenarioError escapes."""
    try:
        scenario = parse(text, "some.scenario")
        for variant in scenario.variants:
            run_scenario(scenario, variant)
    except ScenarioError as error:
        place, line, _ = str(error).split(":", 2)
        assert place == "some.scenario"
        assert 1 <= int(line) <= len(text.splitlines()) + 1
        assert error.hint, error
        return False
    return True


def test_the_unharmed_files_can_be_played() -> None:
    assert all(play(text) for text in texts())


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=mutilated())
def test_a_mutilated_file_is_played_or_refused(text: str) -> None:
    play(text)


@pytest.mark.slow
@settings(max_examples=1_500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=mutilated())
def test_many_mutilated_files_are_played_or_refused(text: str) -> None:
    play(text)


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=200) | st.text(alphabet=f"{ODD}\n#-", max_size=200))
def test_any_text_is_played_or_refused(text: str) -> None:
    play(text)
