"""`holdfast lab search`: what it prints and saves, and how it ends."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.lab_runner import lab, lab_json

KEYS = {
    "schema", "bounds", "without", "options", "symmetry", "distinct", "generated", "depth",
    "verdict", "invariant", "outcome", "steps", "trace", "file", "rested", "seconds",
}  # fmt: skip
SMALL = ("--replicas", 2, "--elections", 1, "--delays", 1)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Violations are saved in the working directory."""
    monkeypatch.chdir(tmp_path)


def test_a_search_that_holds_says_how_much_it_has_seen() -> None:
    done = lab("search", *SMALL, "--rests", 3)
    assert done.exit_code == 0, done.stderr
    assert "holds: replicas 2, records 1, elections 1, delays 1: " in done.stdout
    assert " distinct states (" in done.stdout
    assert "without faults it converges from 3 of these states" in done.stdout


def test_as_json_it_has_stable_keys() -> None:
    found = lab_json("search", *SMALL, "--rests", 0)
    assert set(found) == KEYS
    assert (found["verdict"], found["without"], found["steps"]) == ("holds", [], None)
    assert found["bounds"]["replicas"] == 2
    assert found["distinct"] > 10


def test_a_violation_is_shown_saved_and_run_again(tmp_path: Path) -> None:
    done = lab("search", "--without", "maximal-isr")
    assert done.exit_code == 1, done.stderr
    assert "# A producer sends r0 to b1." in done.stdout
    assert "outcome: lost" in done.stdout
    saved = tmp_path / "without_maximal-isr.scenario"
    assert saved.read_text(encoding="utf-8") in done.stdout
    command = done.stdout.strip().splitlines()[-1].removeprefix("see it again: ")
    program, group, *arguments = shlex.split(command)
    assert (program, group) == ("holdfast", "lab")
    again = lab(*arguments)
    assert again.exit_code == 0
    assert "lost r0 (invalid)" in again.stdout


def test_a_violation_as_json_has_its_trace(tmp_path: Path) -> None:
    path = tmp_path / "found.scenario"
    found = lab_json("search", "--without", "maximal-isr", "--save", path, code=1)
    assert set(found) == KEYS
    assert found["verdict"] == "violated"
    assert found["invariant"] == "isr-holds-what-is-committed"
    assert found["outcome"] == "lost"
    assert found["steps"] >= len(found["trace"]) - 2
    assert found["file"] == str(path)
    assert any("produce b1 acks=all\n  r0" in one["commands"] for one in found["trace"])


def test_a_limit_is_a_verdict_of_its_own() -> None:
    found = lab_json("search", "--elections", 2, "--delays", 2, "--limit", 500, code=2)
    assert found["verdict"] == "limit"
    assert found["distinct"] >= 500


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--limit", "soon"), "'soon' is no limit"),
        (("--without", "luck"), "unknown guard 'luck'"),
        (("--replicas", 2, "--in-sync", 3), "--in-sync is more than --replicas"),
        (("--crashes", "many"), "'many' is not a valid integer"),
        (("--set", "acks=2"), "acks cannot be '2'"),
        (("--seeds", "9..1"), "--seeds '9..1' is no range"),
        (("--seeds", "1..2", "--crashes", 1), "bounds do not go with --seeds"),
        (("--without", "maximal-isr", "--save", "no/such/folder"), "cannot write no/such/folder"),
    ],
)
def test_bad_input_is_refused(arguments: tuple[object, ...], complaint: str) -> None:
    done = lab("search", *arguments)
    assert done.exit_code == 64
    assert complaint in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_an_interrupt_reports_what_was_covered() -> None:
    bounds = ["--records", "2", "--elections", "3", "--delays", "3", "--crashes", "2"]
    running = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "lab", "search", *bounds],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    try:
        assert running.stderr is not None
        assert " states/s" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=600)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 130
    assert stdout == ""
    assert "no violation among them" in stderr


def test_seeds_that_find_nothing_are_counted() -> None:
    found = lab_json("search", "--seeds", "1..3")
    assert (found["verdict"], found["tried"], found["seed"]) == ("holds", 3, None)


@pytest.mark.slow
def test_a_failing_seed_is_made_small_and_can_be_replayed(tmp_path: Path) -> None:
    guard = ("--without", "out-of-range-diverges")
    found = lab_json("search", "--seeds", "0..10", *guard, code=1)
    assert found["verdict"] == "violated"
    whole = lab_json("replay", found["seed"], *guard, code=1)
    assert len(found["faults"]) < len(whole["faults"])
    assert found["steps"] < whole["events"] / 2
    program, group, *arguments = shlex.split(found["replay"])
    assert (program, group) == ("holdfast", "lab")
    again = lab_json(*arguments, code=1)
    assert again["failures"] == found["failures"]
    assert again["events"] == found["steps"]
    assert (tmp_path / found["trace"]).read_text(encoding="utf-8").count("\n") == found["steps"]
