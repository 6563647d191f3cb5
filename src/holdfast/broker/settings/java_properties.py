r"""Java's .properties files, as a server.properties is one.

Comments begin with # or !; name and value are parted by =, : or a space; a backslash at the end
continues the line; \t, \n, \r, \f and \uXXXX are what they are in Java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.?)", re.DOTALL)
_NAME = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_BETWEEN = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """One entry of a file."""

    name: str
    value: str
    line: int
    """Its first line, from 1."""


class PropertiesError(ValueError):
    """A file that Java would also refuse to read."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


def read_properties(text: str) -> list[Property]:
    """All entries in order, including repeated ones: of those the last one counts."""
    entries = []
    for line, content in _logical_lines(text):
        name = _NAME.match(content)
        assert name is not None
        between = _BETWEEN.match(content, name.end())
        assert between is not None
        entries.append(
            Property(_unescaped(name[0], line), _unescaped(content[between.end() :], line), line)
        )
    return entries


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, without comments and blank ones."""
    started, gathered = 0, ""
    for number, line in enumerate(_LINE_END.split(text), start=1):
        content = line.lstrip(_BLANKS)
        if not started and (not content or content[0] in "#!"):
            continue
        started = started or number
        gathered += content
        backslashes = len(content) - len(content.rstrip("\\"))
        if backslashes % 2:
            gathered = gathered[:-1]
            continue
        yield started, gathered
        started, gathered = 0, ""
    if started:
        yield started, gathered


def _unescaped(text: str, line: int) -> str:
    def meant(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped == "u":
            raise PropertiesError(line, "\\u needs four hexadecimal digits")
        if len(escaped) > 1:
            return chr(int(escaped[1:], 16))
        return _NAMED.get(escaped, escaped)

    return _ESCAPE.sub(meant, text)
