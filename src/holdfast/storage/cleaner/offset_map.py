"""The cleaner's memory: the last offset of every key, within a bound.

Kafka keeps 16 bytes of digest and an offset a key in a buffer of log.cleaner.dedupe.buffer.size.
Here it is a dict under the same bound. A long key is kept as its digest, so that memory does not
depend on what clients use for keys; two keys of one digest would be a collision of BLAKE2.
"""

from __future__ import annotations

from hashlib import blake2b

DIGEST_BYTES = 16
ENTRY_BYTES = 192
"""What an entry takes: 64 for the key, 32 for the offset, and its part of the table, for which
there have to be two at the moment when it grows."""


def _identity(key: bytes | memoryview) -> bytes:
    # Shorter keys stand for themselves: no digest is as short.
    return bytes(key) if len(key) < DIGEST_BYTES else blake2b(key, digest_size=16).digest()


class KeyMap:
    """Takes keys until it is full; then `put` still works, so that a batch can be finished."""

    __slots__ = ("_most", "_offsets")

    def __init__(self, most_bytes: int) -> None:
        self._most = max(1, most_bytes // ENTRY_BYTES)
        self._offsets: dict[bytes, int] = {}

    @property
    def is_full(self) -> bool:
        """Whether to stop."""
        return len(self._offsets) >= self._most

    def put(self, key: bytes | memoryview, offset: int) -> None:
        """Offsets rise."""
        self._offsets[_identity(key)] = offset

    def last_offset(self, key: bytes | memoryview) -> int:
        """-1 for a key that was not put."""
        return self._offsets.get(_identity(key), -1)
