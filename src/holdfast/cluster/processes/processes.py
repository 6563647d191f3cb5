"""Starts broker processes so that they end with this process, and identifies them.

The system reuses process ids, so a process is identified by its id and its start time. One thread
starts all processes and runs as long as this process: the kernel kills a broker when the thread
that started it ends (see `broker.parent_watch`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.broker.parent_watch import PIPE_VARIABLE
from holdfast.cluster.errors import ClusterError

_STAT_AFTER_NAME: Final = 2
_STAT_STATE: Final = 0
_STAT_BEGAN: Final = 19
LAST_BYTES: Final = 4096


class ProcessId(NamedTuple):
    """A process, not only its number."""

    pid: int
    began: str
    """Its start time, in the system's format."""

    def is_alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        stat = _stat(self.pid)
        return stat is not None and stat[1] == self.began and stat[0] not in "ZX"

    def is_paused(self) -> bool:
        """Whether SIGSTOP has stopped it: all its threads, which stop one after the other."""
        stat = _stat(self.pid)
        if stat is None or stat[1] != self.began:
            return False
        threads = list(Path(f"/proc/{self.pid}/task").glob("*"))
        stats = [_stat_in(thread / "stat") for thread in threads] if threads else [stat]
        return all(one is None or one[0] in "Tt" for one in stats)

    def signal(self, number: int) -> bool:
        """False if the process no longer exists."""
        if not self.is_alive():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def identify(pid: int) -> ProcessId | None:
    """The process that has this number now."""
    stat = _stat(pid)
    return None if stat is None else ProcessId(pid, stat[1])


def _stat(pid: int) -> tuple[str, str] | None:
    """State letter and start time of a process."""
    if not Path("/proc/self/stat").exists():
        return _stat_by_ps(pid)
    return _stat_in(Path(f"/proc/{pid}/stat"))


def _stat_in(path: Path) -> tuple[str, str] | None:
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name is in brackets and may hold anything, brackets too.
    fields = text[text.rindex(")") + _STAT_AFTER_NAME :].split()
    return fields[_STAT_STATE], fields[_STAT_BEGAN]


def _stat_by_ps(pid: int) -> tuple[str, str] | None:
    command = ["ps", "-o", "state=,lstart=", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    state, _, began = done.stdout.strip().partition(" ")
    return (state[:1], began.strip()) if state else None


@cache
def _spawner() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="holdfast-spawner")


class BrokerProcess:
    """A broker process that we started."""

    def __init__(self, command: list[str], output: Path) -> None:
        """Start it; its output goes to the file."""
        self.output = output
        self._pipe, self._process = _spawner().submit(_start, command, output).result()
        found = identify(self._process.pid)
        # It is our child and not yet waited for: even if it has died already, its entry exists.
        assert found is not None
        self.id = found

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal."""
        return self._process.poll()

    def signal(self, number: int) -> None:
        """Nothing if it has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self.wait(None)

    def wait(self, timeout_s: float | None) -> bool:
        """Whether it ended in time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        return True

    def last_words(self) -> str:
        """The last lines of its output, for an error message."""
        try:
            with self.output.open("rb") as file:
                file.seek(max(0, self.output.stat().st_size - LAST_BYTES))
                lines = file.read().decode(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-5:])


def _start(command: list[str], output: Path) -> tuple[int, subprocess.Popen[bytes]]:
    reading, writing = os.pipe()
    environment = {**os.environ, PIPE_VARIABLE: str(reading)}
    try:
        with output.open("ab") as file:
            process = subprocess.Popen(  # noqa: S603  # our own interpreter
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=environment,
                pass_fds=(reading,),
                start_new_session=True,  # Ctrl-C is for us; brokers are stopped in their order
            )
    except OSError as error:
        os.close(writing)
        raise ClusterError(f"cannot start a broker: {error}") from None
    finally:
        os.close(reading)
    return writing, process


def broker_command(properties: Path) -> list[str]:
    """The command that starts a broker."""
    return [sys.executable, "-m", "holdfast", "server", "start", str(properties)]


STOP: Final = signal.SIGTERM
KILL: Final = signal.SIGKILL
PAUSE: Final = signal.SIGSTOP
RESUME: Final = signal.SIGCONT
