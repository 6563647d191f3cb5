"""Reserves ports while a broker is down.

A socket that is bound but does not listen holds the port. The system does not give it to a program
that asks for any free port; a broker that asks for this port and sets SO_REUSEADDR gets it. That
works on Linux; elsewhere the port is only looked up, and another program may take it.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

from holdfast.cluster.errors import ClusterError

HOST: Final = "127.0.0.1"


class Port:
    """A port that is reserved until it is released."""

    def __init__(self, number: int = 0) -> None:
        """0: any that is free. ClusterError if another program listens on it."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, number))
        except OSError as error:
            self._socket.close()
            raise ClusterError(
                f"port {number} cannot be used: {error.strerror}",
                hint="stop the program that uses it, or take another data directory",
            ) from None
        self.number: int = self._socket.getsockname()[1]
        if sys.platform != "linux":
            self._socket.close()

    def release(self) -> None:
        """Release the port."""
        self._socket.close()


def are_free(first: int, count: int) -> bool:
    """Whether no program listens on any of these consecutive ports."""
    held: list[Port] = []
    try:
        held.extend(Port(number) for number in range(first, first + count))
    except ClusterError:
        return False
    finally:
        for port in held:
            port.release()
    return True
