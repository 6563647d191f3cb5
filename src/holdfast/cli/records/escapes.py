r"""Escapes in delimiters and formats: \n, \r, \t, \0, \\ and \xHH, as kcat has them."""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_NAMED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}


def unescaped(text: str) -> bytes:
    """The bytes that a text with escapes stands for. An unknown escape stands for itself."""

    def one(found: re.Match[bytes]) -> bytes:
        word = found[1]
        if word[:1] == b"x" and len(word) == 3:
            return bytes.fromhex(word[1:].decode())
        return _NAMED.get(word, found[0])

    return _ESCAPE.sub(one, text.encode())
