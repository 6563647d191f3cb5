"""Builds the source of a function: indented lines, unique names, and constants by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.protocol.codec.structs import run


class Source:
    """The text of a generated module, and the objects that its names stand for."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._depth = 0
        self._fresh = 0
        self._constants: dict[tuple[str, Any], str] = {}

    def emit(self, line: str) -> None:
        """A line at the present depth."""
        self.lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A line that ends in a colon, and what belongs to it."""
        self.emit(head)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def apart(self) -> Iterator[None]:
        """A function that the present one calls: its lines go before those written so far."""
        before, depth = self.lines, self._depth
        self.lines, self._depth = [], 0
        yield
        self.lines, self._depth = self.lines + before, depth

    def fresh(self, stem: str) -> str:
        """A local name that is used nowhere else."""
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def constant(self, stem: str, key: Any, value: Any) -> str:
        """A global name for an object; the same key gives the same name."""
        name = self._constants.get((stem, key))
        if name is None:
            name = self._constants[stem, key] = f"{stem}_{len(self._constants)}"
            self.names[name] = value
        return name

    def compile(self, function: str) -> Any:
        """The finished function."""
        return run(self.lines, self.names, self.title)[function]


def repeated(code: str, count: int) -> str:
    """A format code of `struct`, repeated: a number before "16s" would change its size."""
    return code * count if len(code) > 1 else f"{count}{code}"
