"""The cleaner's map of the last offset of every key, with a memory bound.

Kafka keeps 16 bytes of digest and an offset per key in a buffer of log.cleaner.dedupe.buffer.size.
Here it is a dict under the same bound. A long key is kept as its digest, so memory does not depend
on the clients' keys; two keys with one digest would be a collision of BLAKE2.
"""

from __future__ import annotations

from hashlib import blake2b

DIGEST_BYTES = 16
ENTRY_BYTES = 192
"""The memory of an entry: 64 for the key, 32 for the offset, and its share of the hash table, which
exists twice while it grows."""


def _identity(key: bytes | memoryview) -> bytes:
    # A shorter key is its own identity: no digest is that short.
    return bytes(key) if len(key) < DIGEST_BYTES else blake2b(key, digest_size=16).digest()


class KeyMap:
    """Maps keys to offsets. `put` also works when it is full, so that a batch can be finished."""

    __slots__ = ("_most", "_offsets")

    def __init__(self, most_bytes: int) -> None:
        self._most = max(1, most_bytes // ENTRY_BYTES)
        self._offsets: dict[bytes, int] = {}

    @property
    def is_full(self) -> bool:
        """Whether the caller should stop."""
        return len(self._offsets) >= self._most

    def put(self, key: bytes | memoryview, offset: int) -> None:
        """Set the last offset of a key. Offsets must rise."""
        self._offsets[_identity(key)] = offset

    def last_offset(self, key: bytes | memoryview) -> int:
        """-1 for a key that was not put."""
        return self._offsets.get(_identity(key), -1)
