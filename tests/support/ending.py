"""Ends of processes: asked for, waited for, and in the end enforced."""

from __future__ import annotations

import subprocess
import sys

STOP_S = 120.0
"""So long that only something broken reaches it, also on a busy machine."""


def ended(process: subprocess.Popen[bytes], what: str) -> None:
    """Wait until a process that was told to end has ended; one that does not is killed."""
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"{what} has not ended after {STOP_S:g} s: killed\n")
        process.kill()
        process.wait()
