"""`holdfast …` as a script, with Ctrl-C at the worst moment: within `submit` of a pool of threads.

The main thread has just taken the lock of the pool's semaphore and cannot release it yet. Ctrl-C
lands there by chance in about one of a hundred runs, if it comes while calls are submitted.
"""

from __future__ import annotations

import signal
import sys
import threading
from itertools import count
from types import FrameType

from holdfast.cli import main

SUBMITTED = 12
"""Some results are there, and calls are under way."""
times = count(1)


def interrupt_at_lock(frame: FrameType, event: str, _argument: object) -> None:
    if event != "c_return" or frame.f_code is not threading.Condition.__enter__.__code__:
        return
    is_of_pool = frame.f_back and frame.f_back.f_code is threading.Semaphore.acquire.__code__
    if is_of_pool and next(times) == SUBMITTED:
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.setprofile(interrupt_at_lock)
    main(sys.argv[1:])
