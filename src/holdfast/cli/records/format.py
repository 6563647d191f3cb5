"""How `consume` prints a record: kcat's format string, or JSON."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Message

from holdfast.cli.errors import BadInput
from holdfast.cli.records.escapes import unescaped

Render = Callable[[Message], bytes]

_TIMESTAMPS: Final = {1: "create", 2: "logappend"}
_TOKEN: Final = re.compile(rb"%(.?)", re.DOTALL)
HELP: Final = (
    "%s value, %S its size, %R the same as 4 bytes, %k key, %K its size, %T timestamp, "
    "%h headers, %t topic, %p partition, %o offset, %e leader epoch, %% percent"
)


def renderer(text: str, null: bytes) -> Render:
    """A function that prints a record; BadInput for a token that does not exist."""
    tokens = _tokens(null)
    parts: list[bytes | Render] = []
    pieces = _TOKEN.split(unescaped(text))
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            parts.append(piece)
        elif piece in tokens:
            parts.append(tokens[piece])
        else:
            raise BadInput(f"-f: %{piece.decode(errors='replace')} is no token", hint=HELP)

    def render(message: Message) -> bytes:
        return b"".join(part if isinstance(part, bytes) else part(message) for part in parts)

    return render


def _tokens(null: bytes) -> dict[bytes, Render]:
    def text(value: object) -> bytes:
        return str(value).encode()

    def content(value: bytes | None) -> bytes:
        return null if value is None else value

    return {
        b"s": lambda one: content(_bytes(one.value())),
        b"S": lambda one: text(_size(one.value())),
        b"R": lambda one: _size(one.value()).to_bytes(4, "big", signed=True),
        b"k": lambda one: content(_bytes(one.key())),
        b"K": lambda one: text(_size(one.key())),
        b"T": lambda one: text(one.timestamp()[1]),
        b"h": lambda one: b",".join(name + b"=" + content(value) for name, value in headers(one)),
        b"t": lambda one: text(one.topic()),
        b"p": lambda one: text(one.partition()),
        b"o": lambda one: text(one.offset()),
        b"e": lambda one: text(-1 if one.leader_epoch() is None else one.leader_epoch()),
        b"%": lambda _: b"%",
    }


def headers(message: Message) -> list[tuple[bytes, bytes | None]]:
    """Names and values, in order."""
    found: Any = message.headers() or ()
    return [(name.encode(), _bytes(value)) for name, value in found]


def as_json(message: Message) -> bytes:
    """One line, with kcat's keys. What is not UTF-8 is in base64, with a key that says so."""
    kind, timestamp = message.timestamp()
    row: dict[str, Any] = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "leader_epoch": message.leader_epoch(),
        "tstype": _TIMESTAMPS.get(kind, "unknown"),
        "ts": timestamp,
    }
    if found := headers(message):
        words = [(name.decode(errors="replace"), _text(value)) for name, value in found]
        row["headers"] = [word for pair in words for word in pair]
    row |= _named("key", _bytes(message.key())) | _named("payload", _bytes(message.value()))
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _named(name: str, value: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if value is None else value.decode()}
    except UnicodeDecodeError:
        assert value is not None
        return {f"{name}_base64": base64.b64encode(value).decode()}


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _bytes(value: Any) -> bytes | None:
    """Librdkafka's type says text or bytes; without a deserializer they are bytes."""
    return value.encode() if isinstance(value, str) else value


def _size(value: Any) -> int:
    """-1 for null."""
    return -1 if value is None else len(value)
