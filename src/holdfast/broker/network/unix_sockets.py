"""Unix sockets at paths of any length.

The system accepts about a hundred bytes; a test's temporary folder easily has more. A short
symbolic link to the folder makes any path short, and after bind or connect the link is not needed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LONGEST: Final = 100
"""Linux takes 107 bytes, BSD 103."""


@contextlib.contextmanager
def short(path: Path) -> Iterator[str]:
    """A short name for this path, valid within the context."""
    if len(os.fsencode(path)) <= LONGEST:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="hf-") as folder:
        link = Path(folder) / "d"
        link.symlink_to(path.parent.resolve(), target_is_directory=True)
        yield str(link / path.name)


def listen(path: Path) -> socket.socket:
    """A socket that only this user may connect to. Replaces the socket of a dead process."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short(path) as name:
            listener.bind(name)
        path.chmod(0o600)
        listener.listen(16)
    except OSError:
        listener.close()
        raise
    return listener


def connect(path: Path, timeout_s: float) -> socket.socket:
    """Connect, or raise an OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        with short(path) as name:
            connection.connect(name)
    except OSError:
        connection.close()
        raise
    return connection
