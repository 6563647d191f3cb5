"""Ports for programs that tests start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.cluster.processes.ports import Port


@contextmanager
def held_port() -> Iterator[int]:
    """A loopback port that no other program gets by chance until the block ends."""
    port = Port()
    try:
        yield port.number
    finally:
        port.release()
