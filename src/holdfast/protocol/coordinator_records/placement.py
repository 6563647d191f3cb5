"""Which partition of `__consumer_offsets` a group belongs to, and so who coordinates it.

All brokers, and Kafka's tools, must agree: it is Java's hash of the group id, without its sign.
"""

from __future__ import annotations

from typing import Final

_SMALLEST: Final = -(2**31)


def java_hash(text: str) -> int:
    """String.hashCode: an int32 over the UTF-16 code units, so beyond the BMP two for a letter."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for place in range(0, len(units), 2):
        value = (31 * value + (units[place] << 8 | units[place + 1])) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def partition_for(group_id: str, partitions: int) -> int:
    """The group's partition, of so many. The one int32 without a positive twin counts as 0."""
    value = java_hash(group_id)
    return (0 if value == _SMALLEST else abs(value)) % partitions
