"""docs/commands.md: every command in it is run, and prints what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.cli import COMMANDS
from holdfast.cli.exit_codes import MEANINGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UP = "$ holdfast up --detach"
PORTS = ("127.0.0.1:9092", "127.0.0.1:9093", "127.0.0.1:9094")


class Step(NamedTuple):
    command: str
    shown: list[str]


def steps() -> list[Step]:
    """The commands of all blocks, in order, each with the lines below it."""
    found: list[Step] = []
    for block in BLOCK.findall(PAGE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Step(line, []))
            else:
                found[-1].shown.append(line)
    return found


class Terminal:
    """A shell in an empty folder, in which `holdfast` is this one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports: dict[str, str] = {}
        program = folder / "bin" / "holdfast"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast "$@"\n')
        program.chmod(0o755)
        path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "COLUMNS": "200"}
        self._home = folder / "home"
        self._home.mkdir()

    def output(self, command: str) -> list[str]:
        """What it prints, as the page shows it."""
        if command == UP:
            # Other tests run beside this one, and need ports, too.
            said = self._run(f"{command[2:]} --port 0")
            addresses = said.splitlines()[-1].split(",")
            self._ports = dict(zip(PORTS, addresses, strict=True))
        else:
            for shown, real in self._ports.items():
                command = command.replace(shown, real)
            said = self._run(command[2:])
        for shown, real in self._ports.items():
            said = said.replace(real, shown)
        return said.replace(str(self._home), "…").splitlines()

    def _run(self, command: str) -> str:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self._home,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        ).stdout


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Leaves no cluster behind."""
    found = Terminal(tmp_path)
    try:
        yield found
    finally:
        found.output("$ holdfast down")


def fits(shown: list[str], printed: list[str]) -> bool:
    """… stands for any text in a line, and alone for any lines. Columns may be wider."""
    lines = [" ".join(line.split()) for line in shown]
    pattern = "".join(
        r"(?:.*\n)*" if line == "…" else re.escape(line).replace("…", r"[^\n]*") + r"\n"
        for line in lines
    )
    text = "".join(" ".join(line.split()) + "\n" for line in printed)
    return re.fullmatch(pattern, text) is not None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="bash")
def test_every_command_of_the_page_prints_what_the_page_shows(terminal: Terminal) -> None:
    commands = steps()
    assert commands[0].command == UP
    for step in commands:
        printed = terminal.output(step.command)
        assert fits(step.shown, printed), "\n".join([step.command, *printed])


def test_the_page_shows_every_everyday_command() -> None:
    shown = {step.command.split("holdfast ")[1].split()[0] for step in steps()}
    everyday = {"up", "down", "topics", "produce", "consume", "groups", "configs", "brokers"}
    assert everyday <= shown & set(COMMANDS)


def test_the_page_has_the_table_of_exit_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert {int(code): words for code, words in rows} == dict(MEANINGS)


def test_a_shown_line_may_leave_out_what_varies() -> None:
    assert fits(["a … c", "…", "d"], ["a bb   c", "x", "y", "d"])
    assert fits(["…"], [])
    assert not fits(["a"], ["b"])
    assert not fits(["a"], ["a", "b"])
