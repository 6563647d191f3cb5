"""Reads single keys from a terminal, and restores the terminal afterwards.

`decode` turns bytes into names of keys and can be tested without a terminal.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_SEQUENCES: Mapping[bytes, str] = {
    b"\x1b[C": "right", b"\x1bOC": "right", b"\x1b[D": "left", b"\x1bOD": "left",
    b"\x1b[A": "up", b"\x1bOA": "up", b"\x1b[B": "down", b"\x1bOB": "down",
    b"\x1b[5~": "page-up", b"\x1b[6~": "page-down",
    b"\x1b[H": "home", b"\x1bOH": "home", b"\x1b[1~": "home", b"\x1b[7~": "home",
    b"\x1b[F": "end", b"\x1bOF": "end", b"\x1b[4~": "end", b"\x1b[8~": "end",
    b"\r": "enter", b"\n": "enter", b"\x7f": "backspace", b"\x08": "backspace",
}  # fmt: skip
_LONGEST = max(map(len, _SEQUENCES))


class Keys:
    """The keys of one terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, timeout_s: float) -> list[str]:
        """The keys pressed within the time; empty if there were none."""
        if not self._waits(timeout_s):
            return []
        data = os.read(self._fd, 1024)
        # A sequence may arrive in two pieces; the rest is then already on its way.
        while data.endswith((b"\x1b", b"\x1b[", b"\x1bO")) and self._waits(0.05):
            data += os.read(self._fd, 1024)
        return decode(data)

    def _waits(self, timeout_s: float) -> bool:
        return bool(select.select([self._fd], [], [], timeout_s)[0])


def decode(data: bytes) -> list[str]:
    """Special keys by name, other characters as they are. Unknown sequences are dropped."""
    keys: list[str] = []
    # Every round consumes at least one byte.
    while data:
        length = _known_prefix(data)
        if length:
            keys.append(_SEQUENCES[data[:length]])
        elif data[:1] == b"\x1b":
            length = _unknown_sequence(data)
        else:
            length = 1
            keys.append(chr(data[0]))
        data = data[length:]
    return keys


def _known_prefix(data: bytes) -> int:
    for length in range(min(_LONGEST, len(data)), 0, -1):
        if data[:length] in _SEQUENCES:
            return length
    return 0


def _unknown_sequence(data: bytes) -> int:
    """The length of an unknown escape sequence: up to its final letter or tilde."""
    if data[1:2] not in (b"[", b"O"):
        return 1
    for place in range(2, len(data)):
        if 0x40 <= data[place] <= 0x7E:
            return place + 1
    return len(data)


@contextmanager
def raw_keys(fd: int) -> Iterator[Keys]:
    """Single keys without echo until the block ends, however it ends. Ctrl-C still interrupts."""
    # Imported here: Windows has neither, and needs them only here.
    import termios
    import tty

    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)
        yield Keys(fd)
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
