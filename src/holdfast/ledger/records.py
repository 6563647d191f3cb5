"""The ledger's record of a key or value: its checksum and length, not its content."""

from __future__ import annotations

from google_crc32c import extend

from holdfast.ledger.columns import NONE


def measured(data: str | bytes | None) -> tuple[int, int]:
    """CRC-32C and length of the serialized bytes; (0, -1) for None."""
    if data is None:
        return 0, NONE
    octets = data.encode() if isinstance(data, str) else bytes(memoryview(data))
    return extend(0, octets), len(octets)
