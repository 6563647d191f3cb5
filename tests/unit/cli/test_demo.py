"""The demo waits for progress, not for time, and says why it failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.demo.driver import Driver
from holdfast.cli.demo.patience import Patience
from holdfast.cli.errors import Failed
from tests.support.load import busy_machine
from tests.support.ports import held_port
from tests.support.waiting import wait_until

pytest.importorskip("pyspark")


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_what_grows_is_waited_for_however_slow_it_is() -> None:
    clock, rows = Clock(), [0]
    patience = Patience(lambda: len(rows), idle_s=100.0, clock=clock)
    for _ in range(50):
        clock.now_s += 99.0
        rows.append(1)
        assert not patience.is_over
    for _ in range(10):
        clock.now_s += 10.0
        assert not patience.is_over
    clock.now_s += 10.0
    assert patience.is_over


def test_a_spark_that_only_complains_makes_no_progress(tmp_path: Path) -> None:
    """A consumer that reaches no broker writes a warning every second, for ever."""
    driver = Driver("127.0.0.1:1", tmp_path, goes_on_after_loss=False)
    before = driver.progress()
    (tmp_path / "spark" / "x").mkdir()
    (tmp_path / "spark" / "x" / "spark.log").write_text("WARN: no broker\n", encoding="utf-8")
    (tmp_path / "ingest.txt").write_text("still 0 rows\n", encoding="utf-8")
    assert driver.progress() == before
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "part-0.parquet").touch()
    assert driver.progress() != before


@pytest.mark.slow
def test_an_ingest_that_ends_by_itself_is_a_failure_with_its_last_lines(tmp_path: Path) -> None:
    with held_port() as port:
        driver = Driver(f"127.0.0.1:{port}", tmp_path, goes_on_after_loss=False)
        with driver:
            wait_until(lambda: _has_ended(driver), "the ingest ends", 300.0)
            with pytest.raises(Failed, match="exit code 69") as caught:
                driver.check()
    assert caught.value.exit_code == 1
    assert any("the brokers cannot be asked" in line for line in driver.last_lines())


def _has_ended(driver: Driver) -> bool:
    try:
        driver.check()
    except Failed:
        return True
    return False


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("more", [(), ("--unsafe",)], ids=["safe", "unsafe"])
def test_the_demo_passes_on_a_busy_machine(tmp_path: Path, more: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "holdfast", "demo", "--folder", str(tmp_path / "demo"), *more]
    with busy_machine():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "demo" / "report.html").exists()
