"""One thing has one name in every command, and every command can answer a program."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from holdfast.cli import main
from holdfast.cli.exit_codes import MEANINGS

PEOPLE_ONLY = ("console", "server start", "testserver", "lab tour")
"""A broker's log, a socket whose first line is JSON already, and pages to read."""
NAMES = {
    "bootstrap": ("-b", "--bootstrap"),
    "topic": ("-t", "--topic"),
    "topics": ("-t", "--topic"),
    "group": ("-G", "--group"),
    "data_dir": ("--data-dir",),
    "command_config": ("--command-config",),
    "overrides": ("--config",),
}
"""The parameter of a command, and what a person types."""


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


ALL = dict(commands(main))


def options(command: click.Command) -> dict[str, click.Option]:
    return {one.name: one for one in command.params if isinstance(one, click.Option) and one.name}


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_json(name: str) -> None:
    is_for_programs = any("--json" in one.opts for one in options(ALL[name]).values())
    assert is_for_programs != (name in PEOPLE_ONLY)


@pytest.mark.parametrize("name", ALL)
def test_one_thing_has_one_name(name: str) -> None:
    for parameter, option in options(ALL[name]).items():
        assert tuple(option.opts) == NAMES.get(parameter, tuple(option.opts)), parameter
        if "--config" in option.opts or "--set" in option.opts:
            assert option.multiple


@pytest.mark.parametrize("name", ALL)
def test_the_exit_codes_in_its_help_are_in_the_table(name: str) -> None:
    epilog = ALL[name].epilog or ""
    assert epilog.startswith("Exit codes: 0 ") or name.startswith("lab "), epilog
    listed = {int(code) for code in re.findall(r"(?:[:;,] )(\d+) ", epilog)}
    assert listed <= set(MEANINGS)


def test_old_names_work_and_are_not_shown() -> None:
    for name, old in (("chaos", "--folder"), ("demo", "--folder"), ("server config", "--topic ")):
        text = ALL[name].get_help(click.Context(ALL[name]))
        assert old not in text
    assert "--folder" in options(ALL["chaos"])["folder"].opts
    assert "--topic" in options(ALL["server config"])["of_topic"].opts
