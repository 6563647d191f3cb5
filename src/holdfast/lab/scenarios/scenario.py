"""Reads scenario files: plain text, one scenario per file.

    # The first line is the claim. The next lines say what could go wrong and cite the bug.
    #
    # More of the header, up to the first empty line.

    variant before truncation=high-watermark
    variant after

    # Narration of this step.
    command argument key=value
      input, indented
    ---- before
    the output under the variant "before"
    ---- after
    the output under the variant "after"

A paragraph is one step: narration, commands at the margin, the input of each command indented under
it, then `----` and the expected output. A bare `----` holds for every variant without its own
block. A step without `----` must print nothing. Without `variant` lines there is one variant,
`default`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

RULE = "----"


class ScenarioError(Exception):
    """A scenario file that cannot be read or run; gives the place and a hint."""

    def __init__(self, message: str, path: str, line: int, hint: str = "") -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a scenario."""

    line: int
    text: str
    name: str
    words: tuple[str, ...]
    options: Mapping[str, str]
    data: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One paragraph of a scenario file."""

    line: int
    last_line: int
    narration: str
    commands: tuple[Command, ...]
    expected: Mapping[str, tuple[str, ...]]
    """By variant; the empty name holds for every variant without its own block."""
    rule_line: int
    """The line of the first `----`, or 0."""

    def expects(self, variant: str) -> tuple[str, ...]:
        """The expected output of this step under a variant."""
        return self.expected.get(variant, self.expected.get("", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The settings and rules of one run of a scenario."""

    name: str
    options: Mapping[str, str]
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A parsed scenario file."""

    id: str
    path: str
    title: str
    header: str
    variants: tuple[Variant, ...]
    steps: tuple[Step, ...]
    lines: tuple[str, ...] = field(repr=False)

    def variant(self, name: str) -> Variant:
        """A variant by name; KeyError if there is none."""
        for one in self.variants:
            if one.name == name:
                return one
        raise KeyError(name)


def suggestion(word: str, known: Iterable[str]) -> str:
    """The nearest known word, as a hint; empty if none is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else ""


def near_or_known(word: str, known: Iterable[str]) -> str:
    """The nearest known word as a hint; if none is near, all of them."""
    names = list(known)
    return suggestion(word, names) or f"known: {', '.join(names)}"


def parse(text: str, path: str) -> Scenario:
    """Read a scenario file's text."""
    lines = text.splitlines()
    paragraphs = list(_paragraphs(lines))
    if not paragraphs:
        raise ScenarioError("the file is empty", path, 1, "begin with '# What the scenario shows.'")
    first_line, header = paragraphs[0]
    if not all(line.startswith("#") for line in header):
        raise ScenarioError(
            "the file must open with a '#' header", path, first_line, "say what could go wrong"
        )
    words = [line.lstrip("#").strip() for line in header]
    if not words[0]:
        hint = "begin with '# What the scenario shows.'"
        raise ScenarioError("the header's first line is empty", path, first_line, hint)
    variants: list[Variant] = []
    steps: list[Step] = []
    for number, paragraph in paragraphs[1:]:
        step = _step(number, paragraph, path)
        for one in step.commands:
            if one.name == "variant":
                variants.append(_variant(one, path, variants))
        acts = any(command.name != "variant" for command in step.commands)
        if step.rule_line and not acts:
            hint = "a block follows its commands without an empty line in between"
            raise ScenarioError("a block without a command above it", path, step.rule_line, hint)
        if acts or step.narration:
            steps.append(step)
    if not variants:
        variants.append(Variant(name="default", options={}))
    scenario = Scenario(
        id=Path(path).stem.replace("_", "-"),
        path=path,
        title=words[0],
        header=" ".join(words[1:]).strip(),
        variants=tuple(variants),
        steps=tuple(steps),
        lines=tuple(lines),
    )
    _check_blocks(scenario)
    return scenario


def _paragraphs(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    start = 0
    current: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            if not current:
                start = number
            current.append(line.rstrip())
        elif current:
            yield start, current
            current = []
    if current:
        yield start, current


def _step(number: int, paragraph: list[str], path: str) -> Step:
    narration: list[str] = []
    commands: list[Command] = []
    expected: dict[str, tuple[str, ...]] = {}
    rule_line = 0
    block: list[str] | None = None
    for place, line in enumerate(paragraph, number):
        if line == RULE or line.startswith(f"{RULE} "):
            rule_line = rule_line or place
            name = line[len(RULE) :].strip()
            if name in expected:
                raise ScenarioError(
                    f"a second block for {name or 'all'!r}", path, place, "one block per variant"
                )
            block = []
            expected[name] = ()
        elif block is not None:
            block.append(line)
            expected[next(reversed(expected))] = tuple(block)
        elif line.startswith("#"):
            narration.append(line.lstrip("#").strip())
        elif line[0].isspace():
            if not commands:
                raise ScenarioError(
                    "input without a command above it", path, place, "commands start at the margin"
                )
            command = commands[-1]
            commands[-1] = replace(command, data=(*command.data, line.strip()))
        else:
            commands.append(_command(line, place, path))
    return Step(
        line=number,
        last_line=number + len(paragraph) - 1,
        narration=" ".join(narration),
        commands=tuple(commands),
        expected=expected,
        rule_line=rule_line,
    )


def _command(line: str, number: int, path: str) -> Command:
    name, *rest = line.split()
    words: list[str] = []
    options: dict[str, str] = {}
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals:
            words.append(word)
            continue
        key = normal(key)
        if not key or not value:
            raise ScenarioError(f"{word!r} is not key=value", path, number, "no spaces around '='")
        if key in options:
            raise ScenarioError(f"{key!r} is given twice", path, number, "give it once")
        options[key] = value
    return Command(line=number, text=line, name=name, words=tuple(words), options=options, data=())


def normal(key: str) -> str:
    """The key with underscores: users may write dots or dashes."""
    return key.replace("-", "_").replace(".", "_")


def _variant(command: Command, path: str, others: Iterable[Variant]) -> Variant:
    if len(command.words) != 1 or command.data:
        hint = "usage: variant NAME [key=value …]"
        raise ScenarioError("a variant has one name", path, command.line, hint)
    name = command.words[0]
    if any(one.name == name for one in others):
        hint = "give it another name"
        raise ScenarioError(f"a second variant is called {name!r}", path, command.line, hint)
    return Variant(name=name, options=command.options, line=command.line)


def _check_blocks(scenario: Scenario) -> None:
    names = [one.name for one in scenario.variants]
    for step in scenario.steps:
        for name in step.expected:
            if name and name not in names:
                rules = enumerate(scenario.lines[step.rule_line - 1 :], step.rule_line)
                line = next(place for place, text in rules if text.split() == [RULE, *name.split()])
                raise ScenarioError(
                    f"no variant is called {name!r}",
                    scenario.path,
                    line,
                    near_or_known(name, names),
                )
