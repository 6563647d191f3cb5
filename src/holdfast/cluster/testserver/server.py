"""Clusters over a socket: one line of JSON per request and answer, one thread per connection.

It has two users. `holdfast up` serves its one cluster on a Unix socket in the data directory, for
`holdfast fault`. `holdfast testserver` serves tests in any language on loopback TCP; a cluster
belongs to the connection that started it and ends with it, so a test that crashes leaves nothing
behind.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from holdfast.broker.network import unix_sockets
from holdfast.cluster.client.acknowledged_records import AckedLossError
from holdfast.cluster.cluster import Cluster
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.settings_for_tests import TEST_CONFIG
from holdfast.cluster.testserver import line_client
from holdfast.cluster.testserver.operations import NUMBER, TABLE, TEXT, run, taken

OWNER_SOCKET: Final = "control"
LONGEST_LINE: Final = 16 * 1024 * 1024
START: Final = {
    "brokers": NUMBER.default_to(3),
    "config": TABLE,
    "store": TEXT.default_to("embedded"),
}
"""The fields of `start-cluster`."""


class LineServer:
    """Accepts connections until it is closed."""

    def __init__(self, listener: socket.socket, serve: Callable[[], Session]) -> None:
        self._listener = listener
        self._serve = serve
        self._talks: dict[socket.socket, threading.Thread] = {}
        self._thread = threading.Thread(target=self._accept, name="server", daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            talk = threading.Thread(target=self._talk, args=(connection,), daemon=True)
            self._talks[connection] = talk
            talk.start()

    def _talk(self, connection: socket.socket) -> None:
        session = self._serve()
        try:
            with connection, connection.makefile("rb") as lines:
                while line := lines.readline(LONGEST_LINE):
                    connection.sendall(json.dumps(answer(session, line)).encode() + b"\n")
        except OSError:
            pass  # the client has disconnected
        finally:
            session.close()
            self._talks.pop(connection, None)

    def close(self) -> None:
        """Close all connections; returns when every session has ended."""
        talks = tuple(self._talks.items())
        for each in (self._listener, *(connection for connection, _ in talks)):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for _, talk in talks:
            talk.join()


class Session:
    """One connection that uses a cluster which it does not own."""

    def __init__(self, cluster: Cluster | None) -> None:
        self._cluster = cluster

    def call(self, call: str, fields: dict[str, Any]) -> Any:
        """Carry out one call."""
        if self._cluster is None:
            raise ClusterError("there is no cluster")
        return run(self._cluster, call, fields)

    def close(self) -> None:
        """End the session: the connection is closed."""


class TestSession(Session):
    """One connection that may start clusters of its own."""

    __test__ = False  # for pytest: not a test

    def __init__(self) -> None:
        super().__init__(None)
        self._clusters: dict[str, Cluster] = {}
        self._next = 1

    def call(self, call: str, fields: dict[str, Any]) -> Any:
        match call:
            case "start-cluster":
                return self._start(**taken(call, fields, START))
            case "stop-cluster":
                name = self._named(fields)
                taken(call, fields, {})
                self._clusters.pop(name).close(clean=False)
                return None
            case _:
                return run(self._clusters[self._named(fields)], call, fields)

    def _named(self, fields: dict[str, Any]) -> str:
        """The cluster that the request names; the name is optional if there is only one."""
        name = fields.pop("cluster", None)
        if name is None and len(self._clusters) == 1:
            return next(iter(self._clusters))
        if name not in self._clusters:
            known = ", ".join(self._clusters) or "none"
            raise ClusterError(f"there is no cluster {name!r} here", hint=f"there is {known}")
        return str(name)

    def _start(self, brokers: int, config: dict[str, str], store: str) -> dict[str, Any]:
        cluster = Cluster(
            brokers=brokers, config={**TEST_CONFIG, **config}, store=store, trace=True
        )
        cluster.start()
        name, self._next = f"cluster-{self._next}", self._next + 1
        self._clusters[name] = cluster
        info: dict[str, Any] = run(cluster, "info", {})
        return {"cluster": name, **info}

    def close(self) -> None:
        for cluster in self._clusters.values():
            cluster.close(clean=False)
        self._clusters.clear()


def answer(session: Session, line: bytes) -> dict[str, Any]:
    """The answer to one request; any error becomes an error answer."""
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise ClusterError("a request is a JSON object")
        call = request.pop("call", None)
        if not isinstance(call, str):
            raise ClusterError("request: call is text")
        return {"answer": session.call(call, request)}
    except (ValueError, RecursionError) as error:
        return {"error": f"a request is one line of JSON ({error})"}
    except ClusterError as error:
        return {"error": error.message, "hint": error.hint}
    except AckedLossError as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001  # a bug in Holdfast must not look like a hang
        return {"error": f"{type(error).__name__}: {error}"}


def serve_owner(cluster: Cluster) -> LineServer:
    """Let `holdfast fault` reach a cluster by its data directory."""
    listener = unix_sockets.listen(cluster.data_dir / OWNER_SOCKET)
    return LineServer(listener, lambda: Session(cluster))


def ask_owner(folder: Path, call: str, fields: Mapping[str, Any], timeout_s: float) -> Any:
    """Send a request from another process to the owner of the cluster in this directory."""
    from holdfast.cluster.processes import manifest

    known = manifest.load(folder)
    owner = known.owner
    if owner is None or not owner.is_alive():
        raise ClusterError(
            f"the cluster in {folder} is not running",
            hint=f"start it with 'holdfast up --data-dir {folder}'",
        )
    try:
        return line_client.ask(folder / OWNER_SOCKET, {"call": call, **fields}, timeout_s)
    except line_client.NoAnswerError as error:
        raise ClusterError(f"the cluster in {folder} does not answer: {error.message}") from None
