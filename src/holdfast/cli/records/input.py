"""What `produce` reads: records between delimiters, or whole files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

PIECE: Final = 64 * 1024
STDIN: Final = Path("-")


class Input(NamedTuple):
    """One record to send."""

    key: bytes | None
    value: bytes | None
    place: str
    """Where it was read, for a sentence about its error."""


def lines(paths: Sequence[Path], delimiter: bytes) -> Iterator[tuple[bytes, str]]:
    """The pieces of files, or of stdin where none is named, and their places."""
    for path in paths or [STDIN]:
        name = "stdin" if path == STDIN else str(path)
        if path == STDIN:
            yield from _numbered(sys.stdin.buffer, delimiter, name)
        else:
            with path.open("rb") as file:
                yield from _numbered(file, delimiter, name)


def files(paths: Sequence[Path]) -> Iterator[tuple[bytes, str]]:
    """Each file is one record."""
    for path in paths:
        yield path.read_bytes(), str(path)


def record(piece: bytes, place: str, key_delimiter: bytes | None, *, empty_is_null: bool) -> Input:
    """Key and value; without the delimiter all of it is the value."""
    key: bytes | None = None
    value: bytes | None = piece
    if key_delimiter is not None:
        before, found, after = piece.partition(key_delimiter)
        if found:
            key, value = before, after
    if empty_is_null:
        key, value = key or None, value or None
    return Input(key, value, place)


def _numbered(file: BinaryIO, delimiter: bytes, name: str) -> Iterator[tuple[bytes, str]]:
    for number, piece in enumerate(_pieces(file, delimiter), 1):
        yield piece, f"{name}:{number}"


def _pieces(file: BinaryIO, delimiter: bytes) -> Iterator[bytes]:
    """Each as soon as its delimiter is there; the last one may do without."""
    rest = b""
    read = getattr(file, "read1", file.read)
    while piece := read(PIECE):
        *whole, rest = (rest + piece).split(delimiter)
        yield from whole
    if rest:
        yield rest
