"""What a broker says to people: one line an event, `key=value`, to stderr.

A retry loop, or a client that sends the same bad request again and again, must not fill the disk
that holds the log lines. A warning or an error that repeats is written once in `REPEAT_S`, and the
next line says how many were left out. An info line is always written: it reports a change.

Not structlog, which takes a third of a broker's start to import.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import time
import traceback
from collections.abc import Callable
from typing import Final, TextIO

REPEAT_S: Final = 10.0
"""How often the same warning is written."""
REMEMBERED_LINES: Final = 1_000
"""Warnings that may be recognised as repeated; beyond that the oldest is forgotten."""

_Key = tuple[str, ...]


class _Recent:
    """A line that was written lately."""

    __slots__ = ("left_out", "written_s")

    def __init__(self, written_s: float) -> None:
        self.written_s = written_s
        self.left_out = 0


class LogLines:
    """Writes lines; values with spaces or quotes are quoted as JSON does it."""

    def __init__(
        self,
        broker: int,
        stream: TextIO | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker = broker
        self._stream = sys.stderr if stream is None else stream
        self._now_s = now_s
        self._recent: dict[_Key, _Recent] = {}

    def info(self, event: str, **fields: object) -> None:
        """Something worth knowing happened."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Something is not as it should be; we go on."""
        self._write_unless_recent("warning", event, fields, _whole(event, fields))

    def client_warning(self, event: str, client: str, **fields: object) -> None:
        """A client did something wrong; its other mistakes of this kind count as the same line."""
        fields = {"client": client, **fields}
        self._write_unless_recent("warning", event, fields, (event, client))

    def error(self, event: str, **fields: object) -> None:
        """Something failed."""
        self._write_unless_recent("error", event, fields, _whole(event, fields))

    def bug(self, event: str, error: BaseException, **fields: object) -> None:
        """A bug of ours, with where it was."""
        fields = {**fields, "error": repr(error)}
        if self._write_unless_recent("error", event, fields, _whole(event, fields)):
            self._stream.write("".join(traceback.format_exception(error)))
            self._stream.flush()

    def _write_unless_recent(
        self, level: str, event: str, fields: dict[str, object], key: _Key
    ) -> bool:
        now_s = self._now_s()
        known = self._recent.get(key)
        if known is not None:
            if now_s - known.written_s < REPEAT_S:
                known.left_out += 1
                return False
            if known.left_out:
                fields["repeated"] = known.left_out
            del self._recent[key]
        self._recent[key] = _Recent(now_s)
        if len(self._recent) > REMEMBERED_LINES:
            del self._recent[next(iter(self._recent))]
        self._write(level, event, fields)
        return True

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        shown = {"broker": self._broker, "event": event, **fields}
        pairs = " ".join(f"{key}={_quoted(value)}" for key, value in shown.items())
        self._stream.write(f"{now} {level} {pairs}\n")
        self._stream.flush()


def _whole(event: str, fields: dict[str, object]) -> _Key:
    return (event, *(f"{name}={value}" for name, value in fields.items()))


def _quoted(value: object) -> str:
    text = str(value)
    if text and all(character.isprintable() and character not in ' "=' for character in text):
        return text
    return json.dumps(text, ensure_ascii=False)
