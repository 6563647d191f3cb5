"""Serves the console on loopback, in a thread of its own."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Final

import uvicorn

from holdfast.cluster.client.client import addresses
from holdfast.cluster.processes import manifest
from holdfast.web.console.actions import Actions
from holdfast.web.console.app import Parts, application
from holdfast.web.console.guard import Guard, new_token
from holdfast.web.console.hub import Hub
from holdfast.web.console.watcher import Watcher

HOST: Final = "127.0.0.1"
GRACE_S: Final = 1
"""How long the end waits for open pages: their streams never end by themselves."""


class ConsoleError(Exception):
    """The console cannot start; the message says why."""


class Console:
    """A running console. `url` has the token, which allows to break the cluster."""

    def __init__(
        self,
        *,
        bootstrap: str = "",
        folder: Path | None = None,
        port: int = 0,
        reports: Path | None = None,
    ) -> None:
        """`folder`: the data directory of a cluster of `holdfast up`; else `bootstrap`.

        ClusterError if there is no such cluster, or an address is malformed.
        """
        if folder is not None:
            known = manifest.load(folder)
            bootstrap = ",".join(entry.address for entry in known.brokers)
        self.hub = Hub()
        self.watcher = Watcher(addresses(bootstrap), folder, self.hub)
        actions = Actions(folder, self.hub) if folder is not None else None
        if actions is not None:
            self.watcher.listeners.append(actions.observed)
        self.token = new_token()
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        app = Guard(application(Parts(self.watcher, actions, reports)), self.port, self.token)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="console", daemon=True
        )

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/"

    @property
    def url(self) -> str:
        """With the token after the #, which browsers send to nobody."""
        return f"{self.address}#token={self.token}"

    def start(self) -> None:
        self.watcher.observe()
        self.watcher.start()
        self._thread.start()

    def close(self) -> None:
        """Returns when both the server and the observer have ended."""
        self._server.should_exit = True
        self._thread.join()
        self.watcher.close()
        self._socket.close()


def _listening(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConsoleError(f"cannot listen on {HOST}:{port}: {error.strerror}") from None
    return listener
