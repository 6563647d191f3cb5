"""The client of control sockets: a user without permission gets an error."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.cluster.testserver import line_client

NOBODY = 65_534


@contextmanager
def without_rights() -> Iterator[None]:
    """Root may do everything, so for a moment we are somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_socket_of_another_user_is_named_and_not_taken_for_silence() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "control"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            path.chmod(0o000)
            with (
                without_rights(),
                pytest.raises(line_client.ForbiddenError, match="Permission denied") as caught,
            ):
                line_client.ask(path, {"call": "status"}, 5.0)
    assert "user who started the cluster" in str(caught.value.hint)
