"""Each way a command can end has its own exit code and at most one line for the person."""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from holdfast.cli import BadInput, LazyCommand, LazyGroup, main

HERE = "tests.unit.cli.test_exit_codes"


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
        ("short-read", "IncompleteReadError: 0 bytes read on a total of 4 expected bytes"),
    ],
)
def test_our_own_bug_is_70_and_leaves_a_report(kind: str, summary: str, reports: Path) -> None:
    done = invoke("fail", kind)
    [report] = reports.iterdir()
    assert done.exit_code == 70
    assert done.stdout == ""
    assert done.stderr == f"holdfast: a bug of ours: {summary} (report: {report})\n"
    text = report.read_text(encoding="utf-8")
    assert "Traceback (most recent call last)" in text
    assert "in fail" in text


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
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
