"""Waits for processes to end, and kills them after a deadline."""

from __future__ import annotations

import subprocess
import sys

STOP_S = 120.0
"""So long that only something broken reaches it, also on a busy machine."""


def ended(process: subprocess.Popen[bytes], what: str) -> None:
    """Wait until a process that was asked to end has ended; kill it if it does not."""
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"{what} has not ended after {STOP_S:g} s: killed\n")
        process.kill()
        process.wait()
