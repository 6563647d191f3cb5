"""Spark for tests: a session per module, a silent meter, and whole commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.pipeline.spark import QUICK, running
from holdfast.pipeline.spark.progress import Reading

SPARKS_SOCKETS = (
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
    ),
)
"""pyspark leaves the socket of every collect() to the garbage collector."""
SMALL = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2", **QUICK}
"""For tests' small data: fewer tasks, less waiting."""
SMALL_OPTIONS = tuple(
    word for name, value in SMALL.items() for word in ("--conf", f"{name}={value}")
)
"""The same for a command."""


@contextmanager
def session(app: str) -> Iterator[SparkSession]:
    """Ctrl-C is pyspark's within the block: a test run that is interrupted cancels its jobs."""
    with running(app, master="local[2]", conf=SMALL) as spark:
        yield spark


class Silent:
    """A meter that shows nothing."""

    def show(self, reading: Reading) -> None:
        pass

    def close(self) -> None:
        pass


@contextmanager
def command(
    *args: str, cwd: Path, program: Sequence[str] = ("-m", "holdfast")
) -> Iterator[subprocess.Popen[str]]:
    """`holdfast …` in a process group of its own, which ends with the block."""
    process = subprocess.Popen(
        [sys.executable, *program, *args, *SMALL_OPTIONS],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        with process:
            try:
                yield process
            finally:
                kill_all(process)
    finally:
        assert process.returncode is not None


def kill_all(process: subprocess.Popen[str]) -> None:
    """SIGKILL, also to the Java process that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
