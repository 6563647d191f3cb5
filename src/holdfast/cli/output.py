"""Prepares the standard streams, however the program was started.

A closed descriptor (`>&-`) is opened to nowhere, so that no file or socket takes its number. A
terminal that cannot show a character gets a similar one: output is for people, and a missing arrow
is no reason to fail.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
from typing import Final

PLAIN: Final = "holdfast-plain"
_ASCII: Final = {
    "→": "->",
    "←": "<-",
    "↔": "<->",
    "…": "...",
    "–": "-",
    "—": "-",
    "·": ".",
    "×": "x",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "•": "*",
    "●": "*",
    "✓": "+",
    "✗": "x",
    "─": "-",
    "━": "=",
    "│": "|",
    "┃": "|",
}


def prepare() -> None:
    """Call this before a command prints anything."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # open(2) gives the lowest free number, which is this one.
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    codecs.register_error(PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Codecs call this for characters that the terminal's encoding lacks."""
    assert isinstance(error, UnicodeEncodeError), "only output is replaced"
    lacking = error.object[error.start : error.end]
    return "".join(map(_letter, lacking)), error.end


def _letter(one: str) -> str:
    if one in _ASCII:
        return _ASCII[one]
    without_marks = unicodedata.normalize("NFKD", one).encode("ascii", "ignore").decode()
    return without_marks or "?"
