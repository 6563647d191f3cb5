"""What a broker says to people: one line an event, `key=value`, to stderr.

Not structlog, which takes a third of a broker's start to import.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import traceback
from typing import TextIO


class LogLines:
    """Writes lines; values with spaces or quotes are quoted as JSON does it."""

    def __init__(self, broker: int, stream: TextIO | None = None) -> None:
        self._broker = broker
        self._stream = sys.stderr if stream is None else stream

    def info(self, event: str, **fields: object) -> None:
        """Something worth knowing happened."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Something is not as it should be; we go on."""
        self._write("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Something failed."""
        self._write("error", event, fields)

    def bug(self, event: str, error: BaseException, **fields: object) -> None:
        """A bug of ours, with where it was."""
        self._write("error", event, {**fields, "error": repr(error)})
        self._stream.write("".join(traceback.format_exception(error)))
        self._stream.flush()

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        shown = {"broker": self._broker, "event": event, **fields}
        pairs = " ".join(f"{key}={_quoted(value)}" for key, value in shown.items())
        self._stream.write(f"{now} {level} {pairs}\n")
        self._stream.flush()


def _quoted(value: object) -> str:
    text = str(value)
    if text and all(character.isprintable() and character not in ' "=' for character in text):
        return text
    return json.dumps(text, ensure_ascii=False)
