"""`holdfast --help` is cheap: it prints from the table and imports no room."""

import os
import subprocess
import sys

import pytest

from holdfast import __version__
from holdfast.cli import COMMANDS

PROBE = """
import sys
from holdfast.cli import main
try:
    main(sys.argv[1:], prog_name="holdfast")
finally:
    print("loaded:", *sorted(sys.modules), file=sys.stderr)
"""

ROOMS_THAT_HELP_NEEDS = (
    "holdfast.cli",
    "holdfast.cli.errors",
    "holdfast.cli.exit_codes",
    "holdfast.cli.lazy",
    "holdfast.cli.output",
)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, **environment},
    )


def test_help_lists_every_command_with_its_line() -> None:
    done = run("-m", "holdfast", "--help", COLUMNS="200")
    assert done.returncode == 0
    for name, command in COMMANDS.items():
        assert f"  {name}" in done.stdout
        assert command.help in done.stdout


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_nothing_heavy(argument: str) -> None:
    done = run("-c", PROBE, argument)
    assert done.returncode == 0, done.stderr
    loaded = done.stderr.split("loaded:")[1].split()
    ours = [name for name in loaded if name.startswith("holdfast.")]
    assert ours == sorted(ROOMS_THAT_HELP_NEEDS)
    heavy = {"rich", "asyncio", "pyspark", "starlette", "sqlite3", "multiprocessing"}
    assert heavy.isdisjoint(loaded)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("holdfast to", ["topics"]),
        ("holdfast topics de", ["delete", "describe"]),
        ("holdfast topics list --com", ["--command-config"]),
    ],
)
def test_a_shell_completes_commands_and_options(words: str, found: list[str]) -> None:
    typed = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = run("-m", "holdfast", _HOLDFAST_COMPLETE="bash_complete", **typed)
    assert done.stdout.splitlines() == [f"plain,{word}" for word in found]


def test_version_names_the_program_and_the_version() -> None:
    assert run("-m", "holdfast", "--version").stdout == f"holdfast {__version__}\n"


@pytest.mark.parametrize(("options", "environment"), [(["-O"], {}), ([], {"PYTHONOPTIMIZE": "1"})])
def test_running_without_asserts_is_refused(
    options: list[str], environment: dict[str, str]
) -> None:
    done = run(*options, "-m", "holdfast", "--version", **environment)
    assert done.returncode == 64
    assert done.stdout == ""
    assert "python -O" in done.stderr
    assert "Traceback" not in done.stderr
