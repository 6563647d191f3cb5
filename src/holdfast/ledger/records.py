"""A key or value as the ledger knows it: checksum and length, not content."""

from __future__ import annotations

from google_crc32c import extend

from holdfast.ledger.columns import NONE


def measured(data: str | bytes | None) -> tuple[int, int]:
    """CRC-32C and length of what goes over the wire; (0, -1) for none."""
    if data is None:
        return 0, NONE
    octets = data.encode() if isinstance(data, str) else bytes(memoryview(data))
    return extend(0, octets), len(octets)
