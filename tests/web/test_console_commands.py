"""`holdfast up --console` and `holdfast console` as programs."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

pytestmark = pytest.mark.slow

HOLDFAST = [sys.executable, "-m", "holdfast"]
URL = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=[\w-]{20,}")


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*HOLDFAST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def port_in(lines: IO[str] | None) -> int:
    """The port of the address that a program prints; the end of its output fails the test."""
    assert lines is not None
    for line in lines:
        if found := URL.search(line):
            return int(found[1])
    pytest.fail("no address was printed")


def status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", "/")
    code = connection.getresponse().status
    connection.close()
    return code


def ended(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=600)
    return process.returncode


def test_a_cluster_and_its_console_start_and_end_together(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    up = started("up", "--console", "--brokers", "1", "--data-dir", str(folder))
    try:
        own = port_in(up.stderr)
        assert status(own) == 200
        second = started("console", "--data-dir", str(folder))
        other = port_in(second.stdout)
        assert status(other) == 200
        taken = run("console", "--data-dir", str(folder), "--port", str(own))
        assert (taken.returncode, "choose another --port" in taken.stderr) == (64, True)
        assert ended(second) == 0
        assert list((folder / "traces").glob("*.trace")), "the console implies a trace"
    finally:
        assert ended(up) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", own), 60)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HOLDFAST, *arguments], capture_output=True, text=True, check=False, timeout=600
    )


def test_a_cluster_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    done = run("console", "--data-dir", str(tmp_path))
    assert (done.returncode, "there is no cluster" in done.stderr) == (64, True)
    done = run("console", "-b", "nonsense")
    assert (done.returncode, "'nonsense' is not HOST:PORT" in done.stderr) == (64, True)
