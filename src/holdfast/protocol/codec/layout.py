"""The layout of a struct in one version: its fields, their order and their form.

A definition covers all versions; a layout covers one. The encoder and both decoders are generated
from layouts alone, so they cannot disagree about a version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from holdfast.protocol.codec.structs import REQUIRED, Spec, Struct
from holdfast.protocol.codec.types import Fixed, Sized

HIGHEST = 32767
"""A version is an int16."""


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """A count, then as many elements. Elements are never null and never arrays themselves."""

    element: Fixed | Sized | StructOf


@dataclass(frozen=True, slots=True)
class StructOf:
    """A struct in the form that it has in the version at hand."""

    cls: type[Struct]
    version: int
    flexible: bool

    @property
    def layout(self) -> Layout:
        """Its fields."""
        return layout_of(self.cls, self.version, self.flexible)


Wire: TypeAlias = Fixed | Sized | ArrayOf | StructOf


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """A field that exists in the version at hand."""

    name: str
    wire: Wire
    nullable: bool
    compact: bool
    tag: int | None
    default: Any


@dataclass(frozen=True, slots=True)
class Layout:
    """A struct in one version."""

    cls: type[Struct]
    version: int
    flexible: bool
    plain: tuple[FieldLayout, ...]
    """Untagged fields, in wire order."""
    tagged: tuple[FieldLayout, ...]
    """Tagged fields, by tag."""
    absent: tuple[tuple[str, Spec], ...]
    """Fields of other versions: they hold their default when read."""

    @property
    def smallest(self) -> int:
        """The least size of this struct in bytes, which limits the count of an array of it."""
        return sum(smallest(field) for field in self.plain) + self.flexible

    @property
    def is_fixed(self) -> bool:
        """Whether it always has the same size, but for tagged fields."""
        return all(isinstance(field.wire, Fixed) for field in self.plain) and bool(self.plain)


def parse_range(text: str) -> range:
    """The versions in "3", "3+", "0-2" or "none"."""
    if text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), HIGHEST + 1)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


@cache
def layout_of(cls: type[Struct], version: int, flexible: bool) -> Layout:
    """Computed once per struct and version."""
    plain: list[FieldLayout] = []
    tagged: list[FieldLayout] = []
    absent: list[tuple[str, Spec]] = []
    hints = _hints(cls)
    for name, spec in cls.SPECS.items():
        if version not in parse_range(spec.versions):
            assert spec.default is not REQUIRED, f"{cls.__name__}.{name} may be absent: default?"
            absent.append((name, spec))
            continue
        field = _field_layout(name, spec, hints[name], version, flexible)
        (plain if spec.tag is None else tagged).append(field)
    tagged.sort(key=lambda field: field.tag or 0)
    assert flexible or not tagged, f"{cls.__name__} v{version}: tags need a flexible version"
    return Layout(cls, version, flexible, tuple(plain), tuple(tagged), tuple(absent))


@cache
def _hints(cls: type[Struct]) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _field_layout(name: str, spec: Spec, hint: Any, version: int, flexible: bool) -> FieldLayout:
    hint, optional = strip_none(hint)
    wire = wire_of(hint, version, flexible)
    left_out = isinstance(wire, StructOf) and spec.tag is not None
    nullable = optional and not left_out and version in parse_range(spec.nullable)
    compact = flexible and not spec.never_compact
    return FieldLayout(name, wire, nullable, compact, spec.tag, spec.default)


def strip_none(hint: Any) -> tuple[Any, bool]:
    """The type without `| None`, and whether that was there."""
    if get_origin(hint) in (Union, UnionType):
        rest = [each for each in get_args(hint) if each is not NoneType]
        assert len(rest) == 1, f"{hint}: only a single type, or it and None, can be sent"
        return rest[0], True
    return hint, False


def wire_of(hint: Any, version: int, flexible: bool) -> Wire:
    """How a type annotation is sent."""
    origin = get_origin(hint)
    if origin is Annotated:
        wire = get_args(hint)[1]
        assert isinstance(wire, Fixed | Sized)
        return wire
    if origin is Sequence:
        element = wire_of(get_args(hint)[0], version, flexible)
        assert not isinstance(element, ArrayOf)
        return ArrayOf(element)
    assert isinstance(hint, type), f"{hint} is not a type of the wire"
    assert issubclass(hint, Struct), f"{hint} is not a type of the wire"
    return StructOf(hint, version, flexible)


def smallest(field: FieldLayout) -> int:
    """The fewest bytes a field can take."""
    match field.wire:
        case Fixed(size=size):
            return size
        case Sized(prefix=prefix):
            return 1 if field.compact else _PREFIX_SIZE[prefix]
        case ArrayOf():
            return 1 if field.compact else _PREFIX_SIZE["i"]
        case StructOf(cls, version, flexible):
            return 1 if field.nullable else layout_of(cls, version, flexible).smallest


_PREFIX_SIZE = {"h": 2, "i": 4}


def smallest_element(array: ArrayOf, compact: bool) -> int:
    """The fewest bytes an array's element can take; at least one, so that counts are bounded."""
    size = smallest(FieldLayout("", array.element, False, compact, None, None))
    assert size > 0, f"{array} has elements without a byte: a count would be unbounded"
    return size
