"""Runs `holdfast lab` in this process, as a person would type it."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from holdfast.cli import main


def lab(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["lab", *map(str, arguments)], prog_name="holdfast")


def lab_json(*arguments: object, code: int = 0) -> dict[str, Any]:
    """What a command prints with --json."""
    done = lab(*arguments, "--json")
    assert done.exit_code == code, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return data
