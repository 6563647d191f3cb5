"""`holdfast lab search --spark`: the same answers as without it, also if an executor is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.search import Bounds, Question, explore
from tests.support import interrupted
from tests.support.spark import SMALL_OPTIONS, SPARKS_SOCKETS, command
from tests.support.spark_cluster import DRIVER, standalone
from tests.support.waiting import wait_until
from tests.unit.cli.lab_runner import lab, lab_json

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000), *SPARKS_SOCKETS]

SPARK = ("--spark", "local[2]", *SMALL_OPTIONS)
LARGE = Bounds(settled=1, crashes=1, restarts=1, elections=1, delays=2)
LARGER = ("--records", "2", "--elections", "3", "--delays", "3", "--crashes", "2")
"""Hours of it."""
SEEDS = ("--seeds", "1..1000000", "--spark", "local[2]")
PATIENCE_S = 600.0


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Violations are saved in the working directory."""
    monkeypatch.chdir(tmp_path)


def both(*arguments: object, code: int = 0) -> list[dict[str, Any]]:
    """What is said without Spark and with it, but for the time it took."""
    found = [lab_json("search", *arguments, *more, code=code) for more in ((), SPARK)]
    for one in found:
        del one["seconds"]
    return found


def test_bounds_that_hold_have_the_same_numbers() -> None:
    without, with_spark = both(
        *("--settled", 1, "--crashes", 1, "--restarts", 1, "--delays", 1, "--rests", 5)
    )
    assert with_spark == without
    assert (without["verdict"], without["rested"]) == ("holds", 5)


def test_a_violation_is_the_same_and_so_is_its_file(tmp_path: Path) -> None:
    saved: list[str] = []
    for more in ((), SPARK):
        done = lab("search", "--without", "maximal-isr", "--in-sync", 2, "--delays", 2, *more)
        assert done.exit_code == 1, done.stderr
        saved.append((tmp_path / "without_maximal-isr.scenario").read_text(encoding="utf-8"))
        assert saved[-1] in done.stdout
    assert saved[0] == saved[1]


def test_without_bounds_the_first_rung_that_finds_something_is_the_answer() -> None:
    without, with_spark = both("--without", "epoch-at-election", code=1)
    assert with_spark == without


def test_seeds_have_the_same_numbers() -> None:
    without, with_spark = both("--seeds", "1..6")
    assert with_spark == without
    assert without["tried"] == 6


@pytest.mark.parametrize("limit", ["2000", "3s"])
def test_a_limit_ends_it(limit: str) -> None:
    found = lab_json("search", *LARGER, "--limit", limit, *SPARK, code=2)
    assert (found["verdict"], found["outcome"], found["trace"]) == ("limit", None, None)
    assert found["distinct"] >= 2_000 if limit == "2000" else found["seconds"] >= 3


def test_a_limit_ends_seeds() -> None:
    found = lab_json("search", "--seeds", "1..1000", "--limit", "4", *SPARK, code=2)
    assert (found["verdict"], found["tried"]) == ("limit", 4)


def test_an_interrupt_reports_what_was_covered(tmp_path: Path) -> None:
    with command("lab", "search", *LARGER, "--spark", "local[2]", cwd=tmp_path) as searching:
        wait_for_progress(searching)
        os.killpg(searching.pid, signal.SIGINT)  # as a terminal does it
        check_interrupted(searching)


def test_an_interrupt_within_submit_ends_it(tmp_path: Path) -> None:
    program = (str(Path(interrupted.__file__)),)
    with command("lab", "search", *SEEDS, cwd=tmp_path, program=program) as searching:
        check_interrupted(searching)


def test_an_interrupt_ends_it_if_java_does_not_answer(tmp_path: Path) -> None:
    with command("lab", "search", *SEEDS, cwd=tmp_path) as searching:
        wait_for_progress(searching)
        (java,) = [one for one in members_of(searching.pid) if "SparkSubmit" in command_of(one)]
        os.kill(java, signal.SIGSTOP)
        os.killpg(searching.pid, signal.SIGINT)
        check_interrupted(searching)


def wait_for_progress(searching: subprocess.Popen[str]) -> None:
    assert searching.stderr is not None
    assert "/s" in searching.stderr.readline(), "it has begun"


def check_interrupted(searching: subprocess.Popen[str]) -> None:
    output, errors = searching.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not members_of(searching.pid), "Java and its workers are gone")
    assert (searching.returncode, output) == (130, ""), errors
    assert "no violation among them" in errors
    assert errors.splitlines()[-1] == "holdfast: interrupted"


def members_of(group: int) -> list[int]:
    """Processes of a group that have not ended."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(process.name)) == group and command_of(int(process.name)):
                found.append(int(process.name))
        except OSError:
            continue  # It has ended.
    return found


def command_of(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8")


def test_a_setting_of_sparks_needs_spark() -> None:
    done = lab("search", *SMALL_OPTIONS)
    assert done.exit_code == 64
    assert "--conf is for Spark" in done.stderr


def test_a_killed_executor_costs_only_its_tasks(tmp_path: Path) -> None:
    conf = [word for name, value in DRIVER.items() for word in ("--conf", f"{name}={value}")]
    bounds = [
        word
        for name, count in LARGE.to_dict().items()
        for word in (f"--{name.replace('_', '-')}", str(count))
    ]
    with (
        standalone(tmp_path) as master,
        command(
            *("lab", "search", *bounds, "--rests", "0", "--json", "--spark", master, *conf),
            cwd=tmp_path,
        ) as searching,
    ):
        assert searching.stderr is not None
        assert " states" in searching.stderr.readline(), "it has begun"
        at_work: list[int] = []

        def is_at_work() -> bool:
            at_work[:] = computing(tmp_path / "work")
            return bool(at_work)

        wait_until(is_at_work, "an executor at work", PATIENCE_S)
        os.kill(at_work[0], signal.SIGKILL)
        assert searching.poll() is None
        output, errors = searching.communicate(timeout=PATIENCE_S)
        check_that_waiting_is_reported(tmp_path, master, conf)
    assert searching.returncode == 0, errors
    found = json.loads(output)
    coverage = explore(Question(bounds=LARGE)).coverage
    assert found["distinct"] == coverage.distinct
    assert (found["generated"], found["depth"]) == (coverage.generated, coverage.depth)
    first, *_ = sorted((tmp_path / "work").glob("app-*"))
    assert len(list(first.iterdir())) > 2, "two executors, and one in place of the killed"


def check_that_waiting_is_reported(folder: Path, master: str, conf: list[str]) -> None:
    """No worker has room for such an executor."""
    large = ["--conf", "spark.executor.memory=50g"]
    with command(
        "lab", "search", "--seeds", "1..9", "--spark", master, *conf, *large, cwd=folder
    ) as waiting:
        assert waiting.stderr is not None
        said = ""
        while "no free executor" not in said:
            said = waiting.stderr.readline()
            assert said, "it has ended"


def test_the_python_of_the_workers_can_be_named(tmp_path: Path) -> None:
    """As the manual says: --conf spark.pyspark.python."""
    python, mark = tmp_path / "our-python", tmp_path / "used"
    python.write_text(f'#!/bin/sh\ntouch {mark}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = lab("search", "--seeds", "1..2", *SPARK, "--conf", f"spark.pyspark.python={python}")
    assert done.exit_code == 0, done.stderr
    assert mark.exists()


def computing(folder: Path) -> list[int]:
    """Executors that run here and have a Python process that is busy."""
    parents: dict[int, int] = {}
    busy: list[int] = []
    executors: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
            words = (process / "cmdline").read_bytes().decode()
            is_ours = folder in (process / "cwd").readlink().parents
        except OSError:
            continue  # It has ended.
        number = int(process.name)
        parents[number] = int(parent)
        if is_ours and "CoarseGrainedExecutorBackend" in words:
            executors.append(number)
        elif is_ours and "holdfast.pipeline.spark.daemon" in words and state == "R":
            busy.append(number)
    return [one for one in executors if any(one in ancestors(each, parents) for each in busy)]


def ancestors(process: int, parents: dict[int, int]) -> Iterator[int]:
    while process in parents:
        process = parents[process]
        yield process
