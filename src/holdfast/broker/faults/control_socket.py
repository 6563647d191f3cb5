"""The control socket: injects faults into one broker, and inspects it.

A Unix socket beside the broker's files. One request per line, one answer per line, in order:

    {"call": "ping"}                                  {"answer": "pong"}
    {"call": "links", "do": "cut", "to": [2, null]}   {"answer": {}}
    {"call": "links", "do": "fly"}                    {"error": "links: do is one of cut, ..."}

All input is untrusted: a line has a maximum length, every field a type and a range, and a request
that cannot be carried out gets an error and changes nothing. The socket exists only where the
setting `holdfast.control` asks for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from holdfast.broker.faults.faulty_disk import KINDS, DiskFault, FaultyDisk
from holdfast.broker.faults.link_faults import Links
from holdfast.broker.log_lines import LogLines
from holdfast.broker.network import unix_sockets

LONGEST_LINE: Final = 65_536
LONGEST_DELAY_S: Final = 3600.0

Answer = Any
Handler = Callable[[Mapping[str, Any]], Awaitable[Answer]]


class BadRequestError(Exception):
    """A request that cannot be carried out; the message goes back to the client."""


class Controllable(Protocol):
    """The operations of a broker for the control socket."""

    @property
    def links(self) -> Links:
        """The links to brokers and clients."""

    @property
    def disks(self) -> Sequence[FaultyDisk]:
        """The disks of its log directories."""

    def status(self) -> dict[str, Any]:
        """The broker's identity and partitions, ready for JSON."""

    def disconnect_store(self) -> None:
        """Make the coordination store unreachable."""

    def reconnect_store(self) -> None:
        """Make the coordination store reachable again."""

    async def expire_session(self) -> None:
        """End the session as if it had expired."""

    def flush(self) -> None:
        """Force every log to the disk."""

    def flush_trace(self) -> None:
        """Write every event so far, if there is a trace."""

    def begin_stop(self) -> None:
        """Start a controlled shutdown; returns immediately."""


class ControlSocket:
    """Listens until it is closed."""

    def __init__(self, broker: Controllable, path: Path, log: LogLines) -> None:
        self._broker = broker
        self._path = path
        self._log = log
        self._server: asyncio.AbstractServer | None = None
        self._writers: dict[asyncio.StreamWriter, None] = {}
        self._handlers: dict[str, Handler] = {
            "ping": self._ping,
            "status": self._status,
            "links": self._links,
            "store": self._store,
            "disk": self._disk,
            "expire-session": self._expire_session,
            "flush": self._flush,
            "flush-trace": self._flush_trace,
            "stop": self._stop,
        }

    async def open(self) -> None:
        """Listen. OSError if the path cannot be used."""
        listener = unix_sockets.listen(self._path)
        self._server = await asyncio.start_unix_server(
            self._serve, sock=listener, limit=LONGEST_LINE
        )

    def close(self) -> None:
        """Close all connections."""
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers[writer] = None
        try:
            while True:
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.LimitOverrunError:
                    _send(writer, {"error": f"a line has at most {LONGEST_LINE} bytes"})
                    break
                _send(writer, await self.answer(line))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.pop(writer, None)
            writer.close()

    async def answer(self, line: bytes) -> dict[str, Any]:
        """Carry out one request."""
        try:
            request = _request(line)
            handler = self._handlers.get(str(request.get("call")))
            if handler is None:
                known = ", ".join(self._handlers)
                raise BadRequestError(f"call is one of {known}")
            return {"answer": await handler(request)}
        except BadRequestError as error:
            return {"error": str(error)}
        except Exception as error:  # noqa: BLE001
            # Our own bug: the client should see it without reading the broker's log.
            self._log.bug("control request failed", error)
            return {"error": f"{type(error).__name__}: {error}"}

    # The calls.

    async def _ping(self, _: Mapping[str, Any]) -> Answer:
        return "pong"

    async def _status(self, _: Mapping[str, Any]) -> Answer:
        broker = self._broker
        faults = [
            {**fault._asdict(), "directory": disk.root}
            for disk in broker.disks
            for fault in disk.faults
        ]
        return {**broker.status(), "links": broker.links.faults(), "disk_faults": faults}

    async def _links(self, request: Mapping[str, Any]) -> Answer:
        links = self._broker.links
        what = _choice(request, "links", ("cut", "delay", "drop", "heal"))
        if what == "heal":
            links.clear_faults()
            return {}
        targets = _targets(request)
        match what:
            case "cut":
                both_ways = _flag(request, "both_ways")
                for target in targets:
                    links.disconnect(target, both_ways=both_ways)
            case "delay":
                delay_s = _number(request, "seconds", LONGEST_DELAY_S)
                for target in targets:
                    links.delay(target, delay_s)
            case _:
                probability = _number(request, "probability", 1.0)
                for target in targets:
                    links.drop(target, probability)
        return {}

    async def _store(self, request: Mapping[str, Any]) -> Answer:
        if _choice(request, "store", ("cut", "heal")) == "cut":
            self._broker.disconnect_store()
        else:
            self._broker.reconnect_store()
        return {}

    async def _disk(self, request: Mapping[str, Any]) -> Answer:
        what = _choice(request, "disk", (*KINDS, "mend"))
        below = request.get("partition", "")
        if not isinstance(below, str) or "/" in below or below.startswith("."):
            raise BadRequestError('disk: partition is a name such as "topic-0", or missing')
        wanted = request.get("directory", "")
        disks = [disk for disk in self._broker.disks if wanted in ("", disk.root)]
        if not disks:
            known = ", ".join(disk.root for disk in self._broker.disks)
            raise BadRequestError(f"disk: directory is one of log.dirs ({known}), or missing")
        for disk in disks:
            if what == "mend":
                disk.clear_faults()
            else:
                disk.fail(DiskFault(what, below))
        return {}

    async def _expire_session(self, _: Mapping[str, Any]) -> Answer:
        await self._broker.expire_session()
        return {}

    async def _flush(self, _: Mapping[str, Any]) -> Answer:
        self._broker.flush()
        return {}

    async def _flush_trace(self, _: Mapping[str, Any]) -> Answer:
        self._broker.flush_trace()
        return {}

    async def _stop(self, _: Mapping[str, Any]) -> Answer:
        self._broker.begin_stop()
        return {}


def _send(writer: asyncio.StreamWriter, answer: dict[str, Any]) -> None:
    writer.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")


def _request(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        raise BadRequestError("a request is one line of JSON") from None
    if not isinstance(request, dict):
        raise BadRequestError("a request is a JSON object")
    return request


def _choice(request: Mapping[str, Any], call: str, choices: Sequence[str]) -> str:
    chosen = request.get("do")
    if chosen not in choices:
        raise BadRequestError(f"{call}: do is one of {', '.join(choices)}")
    return str(chosen)


def _targets(request: Mapping[str, Any]) -> list[int | None]:
    """Broker ids; null stands for all clients."""
    targets = request.get("to")
    good = isinstance(targets, list) and all(
        one is None or (type(one) is int and 0 <= one < 2**31) for one in targets
    )
    if not good:
        raise BadRequestError("links: to is a list of broker ids; null stands for clients")
    assert isinstance(targets, list)
    return targets


def _flag(request: Mapping[str, Any], name: str) -> bool:
    value = request.get(name, False)
    if type(value) is not bool:
        raise BadRequestError(f"{name} is true or false")
    return value


def _number(request: Mapping[str, Any], name: str, most: float) -> float:
    value = request.get(name)
    if isinstance(value, int | float) and type(value) is not bool and 0 <= value <= most:
        return float(value)
    raise BadRequestError(f"{name} is a number from 0 to {most:g}")
