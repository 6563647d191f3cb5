"""Generates encoders from layouts: one straight-line function per message and version.

An encoder returns the pieces of a message in a list. The caller joins them or passes them to a
socket one by one, so that record batches are never copied. One call of a prepared `struct.Struct`
writes a run of fixed-size fields, the length after it, or an array of integers, because calls are
most of the cost of encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct as Packer
from typing import Any, Final, NoReturn

from holdfast.protocol.codec.layout import ArrayOf, FieldLayout, Layout, StructOf, Wire
from holdfast.protocol.codec.source_builder import Source, repeated
from holdfast.protocol.codec.structs import Spec, Struct
from holdfast.protocol.codec.types import LONGEST_TEXT, Fixed, Payload, Sized
from holdfast.protocol.codec.varints import UNSIGNED, Kept
from holdfast.protocol.errors import UnsupportedFieldError

Encoder = Callable[[Struct], list[Payload]]

ONE_BYTE: Final = 128
"""The first length whose unsigned varint needs a second byte."""


def make_encoder(layout: Layout) -> Encoder:
    """An encoder for one message in one version."""
    source = Source(f"{layout.cls.__name__} v{layout.version} encoder")
    source.names.update(varint=UNSIGNED, text_length=_TEXT_LENGTH)
    source.names.update(write_tags=write_tags, refuse=_refuse)
    with source.block("def encode(m):"):
        source.emit("out = []")
        source.emit("add = out.append")
        _StructWriter(source, layout, "m").write()
        source.emit("return out")
    encoder: Encoder = source.compile("encode")
    return encoder


class Run:
    """Values that go into one call of `pack`. Arrays of integers belong to it, whatever their size.

    The format of a run with arrays depends on their sizes; `_Packers` keeps one packer for each.
    """

    def __init__(self) -> None:
        self.formats: list[str] = []
        self.values: list[str] = []
        self.sizes: list[str] = []

    def fixed(self, code: str, value: str) -> None:
        """One value of a fixed size."""
        self.formats.append(code)
        self.values.append(value)

    def integers(self, code: str, values: str, size: str, compact: bool) -> None:
        """A count and as many values."""
        self.formats.append(f"{'*' if compact else '#'}{code}")
        self.values += [f"varint[{size} + 1]" if compact else size, f"*{values}"]
        self.sizes.append(size)

    def call(self, source: Source, *more: tuple[str, str]) -> str:
        """An expression for the packed bytes, with a few more values at the end."""
        formats = [*self.formats, *(code for code, _ in more)]
        values = [*self.values, *(value for _, value in more)]
        if all(value.lstrip("-").isdigit() for value in values):
            return repr(Packer(">" + "".join(formats)).pack(*map(int, values)))
        key = " ".join(formats)
        if self.sizes:
            packers = source.constant("packers", key, _Packers(tuple(formats)))
            return f"{packers}[{', '.join(self.sizes)}]({', '.join(values)})"
        pack = source.constant("pack", key, Packer(">" + "".join(formats)).pack)
        return f"{pack}({', '.join(values)})"


class _Packers(dict[Any, Callable[..., bytes]]):
    """A packer for each combination of array sizes that was met; a bounded number is kept."""

    def __init__(self, formats: tuple[str, ...]) -> None:
        super().__init__()
        self._formats = formats

    def __missing__(self, key: int | tuple[int, ...]) -> Callable[..., bytes]:
        sizes = iter(key if isinstance(key, tuple) else (key,))
        text = ">"
        for code in self._formats:
            if code[0] in "*#":
                size = next(sizes)
                text += f"{len(UNSIGNED[size + 1])}s" if code[0] == "*" else "i"
                text += repeated(code[1:], size)
            else:
                text += code
        pack = Packer(text).pack
        if len(self) < 1024:
            self[key] = pack
        return pack


class _StructWriter:
    """Writes the lines that encode one struct, held by the local name `me`."""

    def __init__(self, source: Source, layout: Layout, me: str) -> None:
        self.source = source
        self.layout = layout
        self.me = me
        self.run = Run()

    def write(self) -> None:
        self._refuse_lost_values()
        for field in self.layout.plain:
            self._field(field)
        if self.layout.flexible:
            self._tags()
        self._flush()

    def _flush(self, *more: tuple[str, str]) -> None:
        if self.run.values or more:
            self.source.emit(f"add({self.run.call(self.source, *more)})")
        self.run = Run()

    def _refuse_lost_values(self) -> None:
        """A value that this version has no place for is refused, unless it is ignorable."""
        lost = [(name, spec) for name, spec in self.layout.absent if not spec.ignorable]
        if lost:
            tests = " or ".join(self._differs(f"{self.me}.{name}", spec) for name, spec in lost)
            table = self.source.constant("lost", self.layout.cls, dict(lost))
            with self.source.block(f"if {tests}:"):
                self.source.emit(f"refuse({self.me}, {table}, {self.layout.version})")

    def _differs(self, value: str, spec: Spec | FieldLayout) -> str:
        default = spec.default
        if default is None:
            return f"{value} is not None"
        if default == ():
            return value
        if default is True or default is False:
            return f"{value} is not {default}"
        return f"{value} != {default!r}"

    def _field(self, field: FieldLayout) -> None:
        value = f"{self.me}.{field.name}"
        if not field.nullable:
            self._value(field.wire, value, field.compact)
        else:
            name = self.source.fresh("v")
            self.source.emit(f"{name} = {value}")
            before = self.run
            with self.source.block(f"if {name} is None:"):
                self._flush(_null(field))
            self.run = before
            with self.source.block("else:"):
                if isinstance(field.wire, StructOf):
                    self.run.fixed("b", "1")
                self._value(field.wire, name, field.compact)
                self._flush()

    def _value(self, wire: Wire, value: str, compact: bool) -> None:
        match wire:
            case Fixed(code=code):
                self.run.fixed(code, value)
            case Sized():
                self._sized(wire, value, compact)
            case ArrayOf(element=Fixed(code=code)):
                name, size = self.source.fresh("v"), self.source.fresh("n")
                self.source.emit(f"{name} = {value}")
                self.source.emit(f"{size} = len({name})")
                self.run.integers(code, name, size, compact)
            case ArrayOf():
                self._array(wire, value, compact)
            case StructOf():
                self._struct(wire, value)

    def _sized(self, wire: Sized, value: str, compact: bool) -> None:
        name = self.source.fresh("v")
        self.source.emit(f"{name} = {value}.encode()" if wire.is_text else f"{name} = {value}")
        table = "text_length" if wire.is_text else "varint"
        self._length(f"len({name})", wire.prefix, compact, table)
        self.source.emit(f"add({name})")

    def _length(self, length: str, prefix: str, compact: bool, table: str = "varint") -> None:
        """The length of what follows, joined to the run before it."""
        if not compact:
            self._flush((prefix, length))
            return
        size = self.source.fresh("n")
        self.source.emit(f"{size} = {length} + 1")
        if self.run.values:
            short = self.run.call(self.source, ("B", size))
            long = f"{self.run.call(self.source)} + {table}[{size}]"
            self.source.emit(f"add({short} if {size} < {ONE_BYTE} else {long})")
        else:
            self.source.emit(f"add({table}[{size}])")
        self.run = Run()

    def _array(self, wire: ArrayOf, value: str, compact: bool) -> None:
        name, each = self.source.fresh("v"), self.source.fresh("e")
        self.source.emit(f"{name} = {value}")
        self._length(f"len({name})", "i", compact)
        with self.source.block(f"for {each} in {name}:"):
            if isinstance(wire.element, StructOf):
                _StructWriter(self.source, wire.element.layout, each).write()
            else:
                self._value(wire.element, each, compact)
                self._flush()

    def _struct(self, wire: StructOf, value: str) -> None:
        name = self.source.fresh("m")
        self.source.emit(f"{name} = {value}")
        self._flush()
        _StructWriter(self.source, wire.layout, name).write()

    def _tags(self) -> None:
        """Nearly always there is nothing to tag: then one zero byte ends the run."""
        tests = [self._tag_is_sent(self.me, field) for field in self.layout.tagged]
        before = self.run
        with self.source.block(f"if {' or '.join([*tests, f'{self.me}.unknown_tags'])}:"):
            self._flush()
            known = f"{self._known_tags()}({self.me})" if tests else "{}"
            self.source.emit(f"write_tags(add, {known}, {self.me}.unknown_tags)")
        self.run = before
        with self.source.block("else:"):
            self._flush(("B", "0"))

    def _tag_is_sent(self, me: str, field: FieldLayout) -> str:
        if isinstance(field.wire, StructOf):
            return f"{me}.{field.name} is not None"
        return self._differs(f"{me}.{field.name}", field)

    def _known_tags(self) -> str:
        """A function that returns the encoded tagged fields by tag."""
        function = self.source.fresh("tags_of_")
        with self.source.apart(), self.source.block(f"def {function}(m):"):
            self.source.emit("found = {}")
            for field in self.layout.tagged:
                with self.source.block(f"if {self._tag_is_sent('m', field)}:"):
                    self.source.emit("out = []")
                    self.source.emit("add = out.append")
                    writer = _StructWriter(self.source, self.layout, "m")
                    writer._field(field)
                    writer._flush()
                    self.source.emit(f"found[{field.tag}] = b''.join(out)")
            self.source.emit("return found")
        return function


def _null(field: FieldLayout) -> tuple[str, str]:
    """How a null is sent."""
    match field.wire:
        case StructOf():
            return "b", "-1"
        case _ if field.compact:
            return "B", "0"
        case Sized(prefix=prefix):
            return prefix, "-1"
        case _:
            return "i", "-1"


def _text_length(length_and_one: int) -> bytes:
    if length_and_one > LONGEST_TEXT + 1:
        what = f"{length_and_one - 1} bytes of text, {LONGEST_TEXT} are allowed"
        raise UnsupportedFieldError(what)
    return UNSIGNED[length_and_one]


_TEXT_LENGTH: Final = Kept(_text_length)


def write_tags(
    add: Callable[[Payload], None],
    known: Mapping[int, Payload],
    unknown: Mapping[int, Payload] | None,
) -> None:
    """The tagged fields of a struct, in the order of their tags, as KIP-482 asks."""
    tags = {**(unknown or {}), **known}
    add(UNSIGNED[len(tags)])
    for tag in sorted(tags):
        add(UNSIGNED[tag])
        add(UNSIGNED[len(tags[tag])])
        add(tags[tag])


def _refuse(message: Struct, lost: Mapping[str, Spec], version: int) -> NoReturn:
    """Name every field whose value would be lost."""
    values = {name: getattr(message, name) for name in lost}
    kept = [f"{name}={value!r}" for name, value in values.items() if value != lost[name].default]
    what = f"{type(message).__name__} v{version} has no place for {', '.join(kept)}"
    raise UnsupportedFieldError(what)
