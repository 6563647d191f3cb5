"""`holdfast up --detach`: the cluster in a process of its own, which outlives the terminal.

The parent waits for the child's output, so that it prints the address of a cluster that runs, or
exits with the child's exit code. Until the cluster runs, the child's stderr is the terminal's.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final

from holdfast.cli import exit_codes

LOG: Final = "up.log"
"""In the data directory: what `up` would have said in a terminal."""


def fork() -> bool:
    """True in the child. The parent does not return: it exits when the cluster runs, or does not.

    There is one thread, and no file of a cluster is open yet.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        sys.exit(_outcome(child, reading))
    os.close(reading)
    os.setsid()
    os.dup2(writing, 1)
    os.close(writing)
    return True


def leave_terminal(data_dir: Path) -> None:
    """The parent sees the end of our output, and exits."""
    sys.stdout.flush()
    sys.stderr.flush()
    nothing = os.open(os.devnull, os.O_RDWR)
    log = os.open(data_dir / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor, target in ((0, nothing), (1, nothing), (2, log)):
        os.dup2(target, descriptor)
    os.close(nothing)
    os.close(log)


def _outcome(child: int, reading: int) -> int:
    try:
        with os.fdopen(reading, "rb") as output:
            said = output.read()
    except KeyboardInterrupt:
        os.kill(child, signal.SIGINT)
        os.waitpid(child, 0)
        raise
    if said:
        sys.stdout.buffer.write(said)
        sys.stdout.buffer.flush()
        return exit_codes.GOOD
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else exit_codes.OWN_BUG
