"""The base of message definitions: slotted classes whose fields have a type and versions.

A class body is the whole definition. `leader_epoch: Int32 = field("9+", default=-1)` is an int32
that exists from version 9 on and is -1 in older ones. A field without a default must be given.
Nothing is generated at import: layouts, `__init__` and codecs are created on first use, because a
process uses about twenty of six hundred message versions.
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, dataclass_transform

from holdfast.protocol.codec.types import Payload


class _Required:
    """The mark of a field without a default."""

    __slots__ = ()


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True)
class Spec:
    """The options of a field, besides its type. Version ranges are as written."""

    versions: str = "0+"
    nullable: str = "0+"
    tag: int | None = None
    default: Any = REQUIRED
    ignorable: bool = False
    never_compact: bool = False


_PLAIN: Final = Spec()


def field(
    versions: str = "0+",
    *,
    nullable: str = "0+",
    tag: int | None = None,
    default: Any = REQUIRED,
    ignorable: bool = False,
    never_compact: bool = False,
) -> Any:
    """A field that is not simply "there in every version and always given".

    `versions` and `nullable` are ranges such as "3", "3+" or "0-2"; `nullable` matters only to a
    type that allows None. A field with a `tag` is sent only if it differs from its default; a
    tagged struct is sent unless it is None. An `ignorable` field is dropped in silence by versions
    that do not have it. `never_compact` keeps the old string form (KIP-511: the client id of a
    header must be readable before the version is known).
    """
    return Spec(versions, nullable, tag, default, ignorable, never_compact)


@dataclass_transform(kw_only_default=True, eq_default=True, field_specifiers=(field,))
class StructType(type):
    """Turns a class body of annotations into slots and specs."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **keywords: Any
    ) -> StructType:
        """Annotations stay text here; `holdfast.protocol.codec.layout` reads them when needed."""
        names = [
            each
            for each, type_ in body.get("__annotations__", {}).items()
            if "ClassVar" not in type_
        ]
        body["SPECS"] = {each: _spec(body.pop(each, _PLAIN)) for each in names}
        body["__slots__"] = tuple(names)
        return super().__new__(mcs, name, bases, body, **keywords)


def _spec(value: Any) -> Spec:
    return value if isinstance(value, Spec) else Spec(default=value)


class Struct(metaclass=StructType):
    """A part of a message: plain data, compared by value. Build it with keywords only."""

    SPECS: ClassVar[Mapping[str, Spec]]
    """The class's own fields, in wire order."""

    unknown_tags: Mapping[int, Payload] | None = None
    """Tagged fields of a newer peer, by tag: kept, so that passing a message on loses nothing.

    A version without tagged fields drops them.
    """

    def __init__(self, **values: object) -> None:
        """Replace this method, on the first use of the class, by one made for its fields."""
        cls = type(self)
        cls.__init__ = _make_init(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in _names(type(self)))

    __hash__ = None  # type: ignore[assignment]  # mutable, and compared by value

    def __repr__(self) -> str:
        """Every field that does not hold its default."""
        specs = {**Struct.SPECS, **self.SPECS}
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name in _names(type(self))
            if not _same(getattr(self, name), specs[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _names(cls: type[Struct]) -> tuple[str, ...]:
    return (*cls.SPECS, "unknown_tags")


def _same(one: object, other: object) -> bool:
    """Equal, where a list and a tuple of equal things are equal: both are arrays."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _make_init(cls: type[Struct]) -> Any:
    """An `__init__` with one keyword per field: a wrong or a missing name is a TypeError."""
    specs = {**cls.SPECS, "unknown_tags": Struct.SPECS["unknown_tags"]}
    defaults = {f"_{name}": spec.default for name, spec in specs.items()}
    arguments = [
        name if spec.default is REQUIRED else f"{name}=_{name}" for name, spec in specs.items()
    ]
    lines = [f"def __init__(self, *, {', '.join(arguments)}):"]
    lines += [f"    self.{name} = {name}" for name in specs]
    return run(lines, defaults, f"{cls.__name__}.__init__")["__init__"]


def run(lines: Sequence[str], names: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Execute generated source and return what it defined. A traceback shows its lines.

    The text comes from our own definitions only, never from received data.
    """
    scope = dict(names)
    name = f"<holdfast {title}>"
    source = [f"{line}\n" for line in lines]
    exec(compile("".join(source), name, "exec"), scope)  # noqa: S102
    # Generated code has no file: without this a traceback could not show its lines.
    linecache.cache[name] = (sum(map(len, source)), None, source, name)
    return scope
