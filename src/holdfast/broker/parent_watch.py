"""Stops a broker when the cluster process that started it exits, for any reason.

Two mechanisms, since neither is enough alone. The kernel kills us when the thread that started us
is gone (Linux only; this also works for a stopped process). And we hold the reading end of a pipe
whose writing end only that process has: when it exits, the pipe ends (everywhere, unless another
process has inherited the writing end).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from typing import Final

PIPE_VARIABLE: Final = "HOLDFAST_PARENT_PIPE"
"""The descriptor's number, in the environment."""
_PR_SET_PDEATHSIG: Final = 1
EXIT_ORPHANED: Final = 75


def end_with_parent() -> bool:
    """Watch the parent, if a cluster process started us."""
    number = os.environ.pop(PIPE_VARIABLE, "")
    if not number.isdecimal():
        return False
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.set_inheritable(int(number), False)
    threading.Thread(target=_watch, args=(int(number),), name="parent", daemon=True).start()
    return True


def _watch(descriptor: int) -> None:
    try:
        while os.read(descriptor, 64):
            pass
    except OSError as error:
        sys.stderr.write(f"the pipe to the parent cannot be read: {error}\n")
        return
    # Not a clean stop: no process waits for it, and a log survives a kill.
    sys.stderr.write("the process that started this broker is gone\n")
    os._exit(EXIT_ORPHANED)
