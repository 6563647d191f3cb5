"""Options that several commands of `holdfast lab` share."""

from __future__ import annotations

from collections.abc import Sequence

import click

from holdfast.cli.errors import BadInput
from holdfast.lab.options import OptionError, parse_option
from holdfast.lab.scenario import normal

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


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
    """What --set and --without ask for, as a story's options; BadInput if it cannot be."""
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
