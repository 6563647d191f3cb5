"""`holdfast chaos` as a user meets it, and its check on runs that were tampered with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.cluster.chaos import Happened, Plan, play
from holdfast.pipeline.audit.findings.findings import Exit
from holdfast.pipeline.chaos_check import check

pytestmark = pytest.mark.slow
COMMAND = (sys.executable, "-m", "holdfast", "chaos")


def chaos(*options: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the JSON, and what was said."""
    done = subprocess.run(
        [*COMMAND, "--json", *options], capture_output=True, text=True, check=False
    )
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def is_good(code: int, report: dict[str, Any], said: str) -> None:
    wrong = {name: report.get(name) for name in ("counts", "problems")}
    assert code == 0, f"{wrong}\n{said}"
    verdict = report["audit"]["verdict"]
    assert verdict["acked"] > 1000, "a run that exercised nothing"
    assert verdict["in_consumed"] == verdict["in_truth"]
    assert sum(report["faults"].values()) > 0


def test_a_minute_of_chaos_loses_nothing(tmp_path: Path) -> None:
    is_good(*chaos("--minutes", "1", "--seed", "2026", "--folder", str(tmp_path / "run")))


@pytest.mark.long
def test_ten_minutes_of_chaos_lose_nothing(tmp_path: Path) -> None:
    """With a seed of its own every time; a failure names it."""
    is_good(*chaos("--minutes", "10", "--folder", str(tmp_path / "run")))


def test_unsafe_settings_lose_and_every_loss_is_explained(tmp_path: Path) -> None:
    code, report, said = chaos(
        "--unsafe", "--minutes", "0.5", "--seed", "3", "--folder", str(tmp_path / "run")
    )
    assert code == Exit.LOSS, said
    assert report["counts"]["lost"] > 0
    assert report["unexplained"] == 0
    lost = [one for one in report["audit"]["findings"] if one["kind"] == "lost"]
    assert all(one["evidence"] for one in lost)


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.Popen(
        [*COMMAND, "--minutes", "5", "--seed", "1"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert run.stderr is not None
        for line in run.stderr:
            if "phase 0" in line:
                break
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=600)
    finally:
        run.kill()
        run.communicate()
    assert run.returncode == 130, said
    assert list(tmp_path.iterdir()) == []
    assert not processes_below(tmp_path)


def processes_below(folder: Path) -> list[str]:
    """Commands that name a file below a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command:
            found.append(command)
    return found


# The check itself.


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Happened:
    """A short run in which nothing was wrong."""
    said: list[str] = []
    happened = play(Plan(folder=tmp_path_factory.mktemp("chaos"), seed=5, seconds=4), said.append)
    checked = check(happened)
    assert checked.exit_code == Exit.GOOD, (checked.counts, checked.problems, said)
    return happened


@pytest.fixture
def copied(calm: Happened, tmp_path: Path) -> Happened:
    logs = {name: tmp_path / name for name in calm.logs}
    for name, folder in logs.items():
        shutil.copytree(calm.logs[name], folder)
    return replace(calm, logs=logs)


def shorten(folder: Path) -> None:
    """Take the last batch of a partition's log."""
    path = max((folder / "once-0").glob("*.log"))
    data = path.read_bytes()
    last = position = 0
    while position < len(data):
        last, position = position, position + 12 + int.from_bytes(data[position + 8 :][:4], "big")
    os.truncate(path, last)


def test_a_tail_that_is_gone_everywhere_is_a_loss_without_a_cause(copied: Happened) -> None:
    for folder in copied.logs.values():
        shorten(folder)
    checked = check(copied)
    assert checked.exit_code == Exit.LOSS
    assert checked.counts["lost"] > 0
    assert checked.unexplained


def test_a_copy_that_differs_is_wrong(copied: Happened) -> None:
    shorten(copied.logs["b2"])
    checked = check(copied)
    assert checked.exit_code == Exit.WRONG
    assert "the bytes of once-0 differ between b1, b3 and b2" in checked.problems


def test_a_problem_on_the_way_is_wrong_though_the_logs_are_good(calm: Happened) -> None:
    checked = check(replace(calm, problems=("broker 2 exited unexpectedly",)))
    assert checked.exit_code == Exit.WRONG
