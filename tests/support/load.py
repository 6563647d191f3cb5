"""A busy machine: more processes than cores want the processor all the time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SPINNING = "while True: pass"


@contextmanager
def busy_machine(spinning: int = 4) -> Iterator[None]:
    """Keep the machine busy until the block ends."""
    processes = [subprocess.Popen([sys.executable, "-c", SPINNING]) for _ in range(spinning)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
