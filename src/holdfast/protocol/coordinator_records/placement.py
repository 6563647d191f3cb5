"""The partition of `__consumer_offsets` of a group; its leader is the group's coordinator.

It is Java's hash of the group id without the sign, as in Kafka, so that all brokers agree.
"""

from __future__ import annotations

from typing import Final

_SMALLEST: Final = -(2**31)


def java_hash(text: str) -> int:
    """String.hashCode: an int32 over the UTF-16 code units, two per letter beyond the BMP."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for place in range(0, len(units), 2):
        value = (31 * value + (units[place] << 8 | units[place + 1])) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def partition_for(group_id: str, partitions: int) -> int:
    """The group's partition out of `partitions`. The least int32 counts as 0."""
    value = java_hash(group_id)
    return (0 if value == _SMALLEST else abs(value)) % partitions
