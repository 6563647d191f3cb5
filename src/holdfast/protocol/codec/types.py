"""The wire's types, as annotations: a field's type says both what Python holds and what is sent.

`leader_epoch: Int32` is an `int` for mypy and four bytes on the wire. A nullable type is written
`String | None`, an array `Sequence[Int32]`. Whether lengths are compact (unsigned varints) is not
the field's affair: all are in a flexible version of the message, none are before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

Payload: TypeAlias = bytes | bytearray | memoryview
"""Bytes that travel as they are. Reading gives a slice of the buffer read, never a copy."""


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
"""Kafka holds compact strings to the length that the older form can carry, and so do we: what came
in by a new version can then go out by an old one."""

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
Uint32: TypeAlias = Annotated[int, UINT32]
Float64: TypeAlias = Annotated[float, FLOAT64]
String: TypeAlias = Annotated[str, STRING]
Bytes: TypeAlias = Annotated[Payload, BYTES]
Records: TypeAlias = Annotated[Payload, RECORDS]

Uuid: TypeAlias = Annotated[bytes, UUID]
"""Sixteen bytes, not a `uuid.UUID`: ids are compared and looked up, and seldom shown.

Exactly sixteen: `struct` would pad fewer with zeros and cut off more, in silence.
"""

ZERO_UUID: Final = bytes(16)
"""No id."""
