"""The log of a broker for people: one line per event, `key=value`, to stderr.

A retry loop, or a client that repeats a bad request, must not fill the disk that holds the log
lines. A warning or an error that repeats is written once in `REPEAT_S`, and the next line says how
many were left out. Of warnings that differ only in their fields no more than `MOST_ALIKE` are
written in that time. An info line is always written: it reports a change.

Not structlog, which takes a third of a broker's start to import.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Final, TextIO

REPEAT_S: Final = 10.0
"""How often the same warning is written."""
MOST_ALIKE: Final = 100
"""Warnings of one event in `REPEAT_S`: a client can invent any number of topic names."""
REMEMBERED_LINES: Final = 1_000
"""Warnings that are remembered to detect repetition; beyond that the oldest is forgotten."""

Sender = Mapping[str, object]
"""The sender of a request; `client` is its address."""
_Key = tuple[str, ...]


class _Recent:
    """A recently written line, or the lines of one event."""

    __slots__ = ("left_out", "since_s", "written")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.written = 0
        self.left_out = 0

    def takes(self, now_s: float, most: int, fields: dict[str, object]) -> bool:
        """Whether to write one more line, which then names the number of lines left out."""
        if now_s - self.since_s >= REPEAT_S:
            if self.left_out:
                fields["repeated"] = self.left_out
            self.since_s, self.written, self.left_out = now_s, 0, 0
        if self.written >= most:
            self.left_out += 1
            return False
        self.written += 1
        return True


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
        self._alike: dict[str, _Recent] = {}
        """By event: as many as there are in the code."""

    def info(self, event: str, **fields: object) -> None:
        """A normal change."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """A problem that the broker handles."""
        self._write_unless_recent("warning", event, fields, _whole(event, fields))

    def client_warning(self, event: str, sender: Sender, **fields: object) -> None:
        """A client's mistake; its other mistakes of this kind count as the same line."""
        key = (event, str(sender["client"]))
        self._write_unless_recent("warning", event, {**sender, **fields}, key)

    def error(self, event: str, **fields: object) -> None:
        """A failure."""
        self._write_unless_recent("error", event, fields, _whole(event, fields))

    def bug(
        self, event: str, error: BaseException, sender: Sender | None = None, /, **fields: object
    ) -> None:
        """Our own bug, with its traceback. Another sender of the request is the same line."""
        fields["error"] = repr(error)
        key = _whole(event, fields)
        if self._write_unless_recent("error", event, {**(sender or {}), **fields}, key):
            self._stream.write("".join(traceback.format_exception(error)))
            self._stream.flush()

    def _write_unless_recent(
        self, level: str, event: str, fields: dict[str, object], key: _Key
    ) -> bool:
        now_s = self._now_s()
        same = self._recent.pop(key, None) or _Recent(now_s)
        self._recent[key] = same
        if len(self._recent) > REMEMBERED_LINES:
            del self._recent[next(iter(self._recent))]
        if not same.takes(now_s, 1, fields):
            return False
        if level == "warning":
            alike = self._alike.setdefault(event, _Recent(now_s))
            if not alike.takes(now_s, MOST_ALIKE, fields):
                return False
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
