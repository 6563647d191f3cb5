"""The addresses a broker binds and advertises: `listeners` and `advertised.listeners`.

For now one listener, in plain text. A server.properties of a KRaft cluster also names a listener of
its controller: that one is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.%]*\]|[^:/\[\]]*):(?P<port>[0-9]+)")
_LISTENER = re.compile(rf"(?P<name>[A-Za-z0-9_]+)://{_ADDRESS.pattern}")


class Endpoint(NamedTuple):
    """A host and a port."""

    host: str
    """Empty: every address of this machine; if advertised, the machine's canonical name."""
    port: int
    """0: any free port; if advertised, the bound port."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Endpoint:
    """A host and a port without a listener's name; ValueError names the problem."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not of the form host:port")
    return _endpoint(text, match)


def _endpoint(text: str, match: re.Match[str]) -> Endpoint:
    port = int(match["port"])
    if port > 65_535:
        raise ValueError(f"'{text}': a port is at most 65535")
    return Endpoint(match["host"].strip("[]"), port)


def parse_listener(entries: Sequence[str], controllers: Sequence[str]) -> tuple[str, Endpoint]:
    """The name and address of the only listener that is not a controller's; ValueError names the
    problem.
    """
    found = []
    for entry in entries:
        match = _LISTENER.fullmatch(entry)
        if match is None:
            raise ValueError(f"'{entry}' is not of the form PLAINTEXT://host:port")
        if match["name"] in controllers:
            continue
        name = match["name"].upper()
        if name != "PLAINTEXT":
            raise ValueError(f"'{entry}': only PLAINTEXT is supported so far")
        found.append((name, _endpoint(entry, match)))
    if len(found) != 1:
        raise ValueError(f"one PLAINTEXT listener is needed, not {len(found)}")
    return found[0]


def advertised(
    entries: Sequence[str] | None, controllers: Sequence[str], own: Endpoint
) -> Endpoint:
    """The advertised address; ValueError if clients could not use it."""
    public = own if entries is None else parse_listener(entries, controllers)[1]
    if public.host in ("0.0.0.0", "::"):  # noqa: S104  # refused, not bound
        raise ValueError(f"clients cannot connect to {public.host}; advertise a name or an address")
    return public
