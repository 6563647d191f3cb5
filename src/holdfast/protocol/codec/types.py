"""The wire types as annotations: a field's type gives its Python type and its encoding.

`leader_epoch: Int32` is an `int` for mypy and four bytes on the wire. A nullable type is written
`String | None`, an array `Sequence[Int32]`. Lengths are compact (unsigned varints) in all
fields of a flexible version, and in none before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

Payload: TypeAlias = bytes | bytearray | memoryview
"""Bytes that are sent unchanged. A decoder returns a slice of its buffer, never a copy."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A type whose size never changes, so that a run of them is one call of `struct`."""

    code: str
    """Its letter in the `struct` module's language."""
    size: int


@dataclass(frozen=True, slots=True)
class Sized:
    """A length, then as many bytes."""

    prefix: str
    """The length's letter in `struct` before flexible versions: int16 for text, int32 for bytes."""
    is_text: bool = False


LONGEST_TEXT: Final = 0x7FFF
"""Compact strings have the same limit as the older form, as in Kafka, so that a string received in
a new version can be sent in an old one."""

BOOL: Final = Fixed("?", 1)
INT8: Final = Fixed("b", 1)
INT16: Final = Fixed("h", 2)
INT32: Final = Fixed("i", 4)
INT64: Final = Fixed("q", 8)
UINT16: Final = Fixed("H", 2)
UINT32: Final = Fixed("I", 4)
FLOAT64: Final = Fixed("d", 8)
UUID: Final = Fixed("16s", 16)
STRING: Final = Sized("h", is_text=True)
BYTES: Final = Sized("i")
RECORDS: Final = Sized("i")

Bool: TypeAlias = Annotated[bool, BOOL]
Int8: TypeAlias = Annotated[int, INT8]
Int16: TypeAlias = Annotated[int, INT16]
Int32: TypeAlias = Annotated[int, INT32]
Int64: TypeAlias = Annotated[int, INT64]
Uint16: TypeAlias = Annotated[int, UINT16]
Float64: TypeAlias = Annotated[float, FLOAT64]
String: TypeAlias = Annotated[str, STRING]
Bytes: TypeAlias = Annotated[Payload, BYTES]
Records: TypeAlias = Annotated[Payload, RECORDS]

Uuid: TypeAlias = Annotated[bytes, UUID]
"""Sixteen bytes, not a `uuid.UUID`: ids are compared and looked up, and seldom shown.

Exactly sixteen: `struct` would silently pad fewer with zeros and drop the rest of more.
"""

ZERO_UUID: Final = bytes(16)
"""No id."""
