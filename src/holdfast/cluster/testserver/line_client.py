"""A client of JSON control sockets: one line per request, one line per answer."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from holdfast.broker.network import unix_sockets
from holdfast.cluster.errors import ClusterError


class NoAnswerError(ClusterError):
    """Nothing listens on the socket, or it does not answer."""


class ForbiddenError(ClusterError):
    """The socket belongs to another user."""


class RefusedError(ClusterError):
    """The server refuses the request, and says why."""


def ask(path: Path, request: dict[str, Any], timeout_s: float) -> Any:
    """Send one request to a Unix socket."""
    try:
        with unix_sockets.connect(path, timeout_s) as connection:
            return exchange(connection, request)
    except PermissionError as error:
        raise ForbiddenError(
            f"{path}: {error.strerror}", hint="only the user who started the cluster may ask it"
        ) from None
    except OSError as error:
        raise NoAnswerError(f"no answer at {path}: {error}") from None


def exchange(connection: socket.socket, request: dict[str, Any]) -> Any:
    """Send one request on an open connection; OSError if the connection breaks."""
    connection.sendall(json.dumps(request).encode() + b"\n")
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = connection.recv(65_536)
        if not piece:
            raise ConnectionError("hung up before an answer came")
        line += piece
    answer = json.loads(line)
    if "error" in answer:
        raise RefusedError(str(answer["error"]), hint=answer.get("hint"))
    return answer.get("answer")
