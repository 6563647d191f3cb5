"""Writes a violation as a minimal scenario file, with its output.

`holdfast lab run FILE` plays the file in the ordinary world, where it fails in the same way. If a
violation is a broken invariant, the scenario continues, if possible, to the loss that follows: all
other brokers die, and the one that then leads lacks a record.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.lab.judge.verdict import INVALID, Verdict
from holdfast.lab.scenarios.rewrite import rewritten
from holdfast.lab.scenarios.run import Run, run_scenario
from holdfast.lab.scenarios.scenario import ScenarioError, parse
from holdfast.lab.world.world import World
from holdfast.search.explore import STUCK, Found
from holdfast.search.liveness import REST_MS
from holdfast.search.question import Question
from holdfast.search.scenario.script import Line, Script

_COLUMNS = 98
_FACTS = {
    "lost": "lost",
    "exposed-lost": "exposed_lost",
    "diverged": "diverged",
    "skipped": "skipped",
}
"""The field of a verdict for each outcome."""
_BOUND_TO_HAPPEN = "The possible loss becomes real: every broker but {name} dies."


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenScenario:
    """A scenario file that reproduces a violation."""

    text: str
    outcome: str
    lines: tuple[Line, ...]
    """The events up to the violation."""
    run: Run


class NotReplayedError(Exception):
    """The ordinary world does not reproduce the violation: a bug of the search."""


def write_scenario(found: Found, command: str) -> WrittenScenario:
    """Write the scenario of a violation. `command` is the command line of the search."""
    assert found.violation is not None
    script = Script(found.question)
    script.play(found.path)
    writer = _Writer(found, command, script.opening)
    if found.violation.outcome == STUCK:
        lines, ending = script.lines, writer.end_faults(script.stage.world)
    else:
        lines = writer.minimised(script.lines)
        ending = writer.ending(lines)
    scenario = parse(writer.text(lines, ending), "search.scenario")
    scenario = parse(rewritten(scenario), "search.scenario")
    run = run_scenario(scenario, scenario.variants[0])
    verdict = run.verdict
    outcome = found.violation.outcome
    if verdict.verdict == INVALID and not _shows(verdict, outcome):
        outcome = verdict.outcome
    return WrittenScenario(
        text="\n".join(scenario.lines) + "\n",
        outcome=outcome,
        lines=(*lines, *ending),
        run=run,
    )


def _shows(verdict: Verdict, outcome: str) -> bool:
    return outcome in _FACTS and bool(getattr(verdict, _FACTS[outcome]))


class _Writer:
    """Writes and plays candidates until the smallest is found."""

    def __init__(self, found: Found, command: str, opening: Sequence[str]) -> None:
        assert found.violation is not None
        self._found = found
        self._violation = found.violation
        self._command = command
        self._opening = opening
        names = range(1, found.question.bounds.replicas + 1)
        self._names = [f"b{place}" for place in names]

    def minimised(self, lines: list[Line]) -> list[Line]:
        """The lines that are needed: each line is removed in turn, until none can be."""
        if not self._goes_wrong(lines):
            raise NotReplayedError(self.text(lines, ()))
        kept = lines
        shorter = True
        while shorter:  # Ends: every round but the last leaves a line out.
            shorter = False
            for place in reversed(range(len(kept))):
                for fewer in _fewer(kept, place):
                    if self._goes_wrong(fewer):
                        kept, shorter = fewer, True
                        break
        return kept

    def _goes_wrong(self, lines: Sequence[Line]) -> bool:
        run = self._play(lines, ())
        if run is None:
            return False
        name = self._violation.outcome
        judged = self._counts(run.verdict) and _shows(run.verdict, name)
        return judged or any(one.startswith(f"broken: {name}:") for one in run.outputs[-2])

    def _counts(self, verdict: Verdict) -> bool:
        return verdict.verdict == INVALID or (
            self._found.question.strict and _shows(verdict, self._violation.outcome)
        )

    def _play(self, lines: Sequence[Line], ending: Sequence[Line]) -> Run | None:
        scenario = parse(self.text(lines, ending), "search.scenario")
        try:
            return run_scenario(scenario, scenario.variants[0])
        except (ScenarioError, AssertionError):
            return None

    def ending(self, lines: Sequence[Line]) -> list[Line]:
        """The lines that turn a broken invariant into a loss: none, or all other brokers die."""
        run = self._play(lines, ())
        assert run is not None
        if self._counts(run.verdict):
            return []
        for name in self._names:
            ending = self._deaths(lines, name)
            played = self._play(lines, ending)
            if played and played.verdict.verdict == INVALID:
                return ending
        return []

    def _deaths(self, lines: Sequence[Line], name: str) -> list[Line]:
        alive = dict.fromkeys(self._names)
        for line in lines:
            for command in line.commands:
                verb, _, rest = command.partition(" ")
                who = rest.split(" ")[0]
                if verb in ("crash", "stop"):
                    alive.pop(who, None)
                elif verb == "restart":
                    alive[who] = None
        others = [one for one in self._names if one != name]
        dying = [one for one in others if one in alive]
        commands = [f"crash {' '.join(dying)}"] if dying else []
        commands.append(f"expire {' '.join(others)}")
        if name not in alive:
            commands.append(f"restart {name}")
        commands.append(f"settle {name} controller")
        back = [f"trace off\nrestart {' '.join(others)}", "run 2000\ntrace on"]
        return [
            Line(_BOUND_TO_HAPPEN.format(name=name), commands),
            Line("They come back, and everything comes to rest.", back),
        ]

    def end_faults(self, world: World) -> list[Line]:
        """The lines that end all faults; the cluster still does not come to rest."""
        commands = ["heal"]
        dead = [name for name, one in world.brokers.items() if not one.alive]
        commands.extend(f"disk {name} works" for name in self._names)
        commands.extend(f"release registrations {name}" for name in world.slow_sessions)
        if world.holds_settings:
            commands.append("release settings")
        commands.extend(f"restart {name}" for name in dead)
        for name, one in world.brokers.items():
            if one.alive and one.id not in world.store.sessions:
                commands.append(f"rejoin {name}")
        commands.extend(f"release expansions {name}" for name in self._names)
        commands.extend(("trace off", f"run {REST_MS}", "trace on"))
        return [Line("All faults stop, and a minute passes.", commands)]

    # The text.

    def text(self, lines: Sequence[Line], ending: Sequence[Line]) -> str:
        """A scenario file without expectations."""
        blocks = [self._header(), "\n".join(self._opening)]
        blocks.extend(_steps([*lines, *ending]))
        blocks.extend(("logs\nisr", "invariants", "verdict"))
        return "\n\n".join(blocks) + "\n"

    def _header(self) -> str:
        question = self._found.question
        claim = f"{_removed(question)}{self._violation.text}."
        origin = (
            f"Found by a search ({self._command}): one of the shortest ways there. What is broken "
            f"first: {self._violation.outcome}."
        )
        return "\n".join((*_comment(claim[0].upper() + claim[1:]), "#", *_comment(origin)))


def _fewer(lines: list[Line], place: int) -> Iterator[list[Line]]:
    """The lines without one of them, or without one of its commands."""
    before, line, after = lines[:place], lines[place], lines[place + 1 :]
    yield [*before, *after]
    if len(line.commands) > 1:
        for index in range(len(line.commands)):
            commands = [*line.commands[:index], *line.commands[index + 1 :]]
            yield [*before, Line(line.words, commands), *after]


def _removed(question: Question) -> str:
    changed = [
        one
        for one in (
            question.options.get("without", "").strip("()").replace(",", " and "),
            *(f"{key}={value}" for key, value in question.options.items() if key != "without"),
        )
        if one
    ]
    if not changed:
        return ""
    word = "Without" if question.options.get("without") else "With"
    return f"{word} {', '.join(changed)}: "


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _COLUMNS)]


def _steps(lines: Sequence[Line]) -> Iterator[str]:
    """The steps: each event with the messages that flow after it."""
    words: list[str] = []
    commands: list[str] = []
    for line in lines:
        if line.words and commands:
            yield "\n".join((*_comment(" ".join(words)), *commands))
            words, commands = [], []
        if line.words:
            words.append(line.words)
        commands.extend(line.commands)
    if commands:
        yield "\n".join((*_comment(" ".join(words)), *commands))
