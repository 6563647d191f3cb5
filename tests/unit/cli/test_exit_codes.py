"""Each way a command can end has its own exit code and at most one line for the person."""

import asyncio
import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from holdfast.cli import BadInput, LazyCommand, LazyGroup, main

HERE = "tests.unit.cli.test_exit_codes"
ANOTHER_PATH = "name another path, or look at its permissions"


@click.command()
@click.option("--count", type=int)
@click.pass_context
def verdict(ctx: click.Context, count: int | None) -> None:
    ctx.exit(count or 0)


@click.command()
@click.argument("kind")
def fail(kind: str) -> None:
    raise {
        "bug": ZeroDivisionError("division by zero\nin two lines"),
        "invariant": AssertionError(),
        "interrupt": KeyboardInterrupt(),
        "socket": BrokenPipeError(32, "Broken pipe"),
        "short-read": asyncio.IncompleteReadError(b"", 4),
        "module": ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow.parquet"),
        "no-permission": PermissionError(errno.EACCES, "Permission denied", "/forbidden/x"),
        "not-a-directory": NotADirectoryError(errno.ENOTDIR, "Not a directory", "a-file/x"),
        "a-directory": IsADirectoryError(errno.EISDIR, "Is a directory", "a-folder"),
        "disk-full": OSError(errno.ENOSPC, "No space left on device", "ledger.parquet"),
        "socket-refused": PermissionError(errno.EACCES, "Permission denied"),
        "missing-file": click.FileError("ledger.jsonl", "no such file"),
        "bad-input": BadInput("no topic 'orders'.", hint="try 'holdfast topics'"),
    }[kind]


GROUP = LazyGroup(
    "holdfast",
    lazy={
        "verdict": LazyCommand(f"{HERE}:verdict", "End with a code."),
        "fail": LazyCommand(f"{HERE}:fail", "End badly."),
    },
)


@pytest.fixture(autouse=True)
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(GROUP, arguments, prog_name="holdfast")


@pytest.mark.parametrize("code", [0, 1, 4])
def test_a_verdict_is_passed_on(code: int) -> None:
    done = invoke("verdict", "--count", str(code))
    assert (done.exit_code, done.output) == (code, "")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["fail", "bug", "--x"],
            "holdfast: No such option '--x' (try 'holdfast fail --help')",
        ),
        (
            ["verdit"],
            "holdfast: No such command 'verdit'. Did you mean 'verdict'? (try 'holdfast --help')",
        ),
        (
            ["fail"],
            "holdfast: Missing argument 'KIND' (try 'holdfast fail --help')",
        ),
        (["fail", "bad-input"], "holdfast: no topic 'orders' (try 'holdfast topics')"),
        (
            ["fail", "missing-file"],
            "holdfast: Could not open file 'ledger.jsonl': no such file",
        ),
        (
            ["fail", "no-permission"],
            f"holdfast: /forbidden/x: Permission denied ({ANOTHER_PATH})",
        ),
        (
            ["fail", "not-a-directory"],
            f"holdfast: a-file/x: Not a directory ({ANOTHER_PATH})",
        ),
        (
            ["fail", "a-directory"],
            f"holdfast: a-folder: Is a directory ({ANOTHER_PATH})",
        ),
        (
            ["fail", "module"],
            (
                "holdfast: this needs pyarrow "
                "(pip install 'holdfast[ledger]', or everything: 'holdfast[all]')"
            ),
        ),
    ],
)
def test_bad_input_is_64_and_one_line(arguments: list[str], line: str) -> None:
    done = invoke(*arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (64, "", f"{line}\n")


def test_no_command_at_all_shows_the_help_and_is_bad_input() -> None:
    done = invoke()
    assert done.exit_code == 64
    assert done.stdout == ""
    assert "verdict  End with a code." in done.stderr


def test_an_interrupt_is_130() -> None:
    done = invoke("fail", "interrupt")
    assert done.exit_code == 130
    assert done.stderr.strip() == "holdfast: interrupted"


@pytest.mark.parametrize(
    ("kind", "summary"),
    [
        ("bug", "ZeroDivisionError: division by zero in two lines"),
        ("invariant", "AssertionError"),
        ("socket", "BrokenPipeError: [Errno 32] Broken pipe"),
        ("socket-refused", "PermissionError: [Errno 13] Permission denied"),
        ("short-read", "IncompleteReadError: 0 bytes read on a total of 4 expected bytes"),
    ],
)
def test_our_own_bug_is_70_and_leaves_a_report(kind: str, summary: str, reports: Path) -> None:
    done = invoke("fail", kind)
    [report] = reports.iterdir()
    assert done.exit_code == 70
    assert done.stdout == ""
    assert done.stderr == f"holdfast: a bug in Holdfast: {summary} (report: {report})\n"
    text = report.read_text(encoding="utf-8")
    assert "Traceback (most recent call last)" in text
    assert "in fail" in text


def test_a_full_disk_is_the_machine_s_and_not_a_bug(reports: Path) -> None:
    done = invoke("fail", "disk-full")
    assert (done.exit_code, done.stdout) == (74, "")
    assert done.stderr == "holdfast: ledger.parquet: No space left on device\n"
    assert not list(reports.iterdir())


def test_a_bug_is_shown_in_full_when_no_report_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    done = invoke("fail", "bug")
    assert done.exit_code == 70
    assert "Traceback (most recent call last)" in done.stderr
    assert "no report file" in done.stderr


def test_the_real_program_ends_with_these_codes() -> None:
    done = CliRunner().invoke(main, ["--no-such-option"], prog_name="holdfast")
    assert done.exit_code == 64


def test_a_reader_that_leaves_early_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)  # the reader is gone before the first byte: no race
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "--help"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", *arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, text=True, timeout=300, check=False, **options)


STEP = ("lab", "step", "loss-restart-truncation")


def test_a_closed_output_leads_nowhere() -> None:
    """No file may get its number, and no code looks for what is not there."""
    done = run(*STEP, preexec_fn=lambda: os.close(1))  # no threads here
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_an_output_on_a_full_disk_is_no_bug() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123  # a device
        done = run("lab", "list", stdout=full)
    assert (done.returncode, done.stderr) == (74, "holdfast: No space left on device\n")


def test_a_terminal_without_our_letters_gets_others() -> None:
    done = run(*STEP, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "->" in done.stdout


def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("")
    done = run("lab", "step", STEP[2], "--html", str(tmp_path / "a-file" / "page.html"))
    assert done.returncode == 64, done.stderr
    assert "a-file" in done.stderr
    assert "a bug in Holdfast" not in done.stderr
