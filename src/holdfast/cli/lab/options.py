"""Options that several commands of `holdfast lab` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from holdfast.cli.errors import BadInput
from holdfast.lab.scenarios.options import OptionError, parse_option
from holdfast.lab.scenarios.scenario import near_or_known, normal
from holdfast.lab.seeds.rng import FAULTS

MOST_DIGITS = 18
"""The default limits of a seed."""
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
limit_option = click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="N|TIME|MEMORY",
    help="Stop after this many states (1000000), this time (60s, 5m) or memory (2GiB). May be "
    "given for each of them.",
)


def rule_options(command: click.decorators.FC) -> click.decorators.FC:
    """Options that change the rules of a run."""
    command = click.option(
        "--without",
        "without",
        multiple=True,
        metavar="GUARD",
        help="Take a guard out, for the lab only.",
    )(command)
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change a switch or setting, e.g. truncation=high-watermark.",
    )(command)


def overrides_of(settings: Sequence[str], without: Sequence[str]) -> dict[str, str]:
    """The scenario options that --set and --without ask for; BadInput if one is unknown."""
    overrides: dict[str, str] = {}
    for one in settings:
        key, equals, value = one.partition("=")
        if not equals or not value:
            raise BadInput(f"--set {one!r} is not KEY=VALUE", hint="try --set acks=all")
        overrides[normal(key)] = value
    if without:
        overrides["without"] = f"({','.join(without)})"
    try:
        for key, value in overrides.items():
            parse_option(key, value)
    except OptionError as error:
        raise BadInput(str(error), hint=error.hint or None) from None
    return overrides


def seed_range(text: str) -> tuple[int, int]:
    """A..B, or one seed; BadInput if it is neither."""
    first, dots, last = text.partition("..")
    ends = [first, last if dots else first]
    good = all(one.isdecimal() and len(one) <= MOST_DIGITS for one in ends)
    if not good or int(ends[0]) > int(ends[1]):
        raise BadInput(f"--seeds {text!r} is no range", hint="try --seeds 0..199")
    return int(ends[0]), int(ends[1])


def plan_options(command: click.decorators.FC) -> click.decorators.FC:
    """Options that override a seed's decisions, as a minimised run needs them."""
    for option in (
        click.option("--faults", metavar="A,B|none", help="Only these classes of faults."),
        click.option(
            "--duration",
            "duration_ms",
            type=click.IntRange(1),
            metavar="MS",
            help="How long faults occur.",
        ),
        click.option(
            "--send-every",
            "send_every_ms",
            type=click.IntRange(1),
            metavar="MS",
            help="How often a record is sent.",
        ),
    ):
        command = option(command)
    return command


def split_plan(
    given: Mapping[str, Any], known: Sequence[str] = FAULTS
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The changes of a plan, and the other options; BadInput for an unknown fault."""
    names = ("faults", "duration_ms", "send_every_ms")
    changes = {name: given[name] for name in names if given[name] is not None}
    if "faults" in changes:
        wanted = [one for one in changes["faults"].split(",") if one and one != "none"]
        for one in wanted:
            if one not in known:
                raise BadInput(f"no fault is called {one!r}", hint=near_or_known(one, known))
        changes["faults"] = tuple(one for one in known if one in wanted)
    return changes, {name: value for name, value in given.items() if name not in names}


def plan_words(changes: Mapping[str, Any]) -> str:
    """The options that ask for these changes."""
    words = ""
    if "faults" in changes:
        words += f" --faults {','.join(changes['faults']) or 'none'}"
    if "duration_ms" in changes:
        words += f" --duration {changes['duration_ms']}"
    if "send_every_ms" in changes:
        words += f" --send-every {changes['send_every_ms']}"
    return words
