"""Generates decoders from layouts: one straight-line function per message and version.

A fast decoder checks counts before it allocates. The other checks need no code: `struct` and
indexing raise past the end, and a slice past the end shows in the final position. A fast decoder
does not track its field. When it fails, `careful_decoder` decodes again from the start and reports
what is wrong and where, so only broken input pays for good errors.

A message takes memory in proportion to its bytes: a view costs nothing, and an element of an array
no more than 64 bytes of memory for each byte that it must at least have on the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Packer
from struct import error as struct_error
from typing import Any, Final

from holdfast.protocol.codec.layout import (
    ArrayOf,
    FieldLayout,
    Layout,
    StructOf,
    Wire,
    smallest_element,
)
from holdfast.protocol.codec.source_builder import Source, repeated
from holdfast.protocol.codec.structs import Struct
from holdfast.protocol.codec.types import LONGEST_TEXT, STRING, Fixed, Payload, Sized
from holdfast.protocol.codec.varints import decode_unsigned

Decoder = Callable[[memoryview, int], tuple[Any, int]]
"""From a buffer and a position to the message and the position after it."""

FAILURES: Final = (struct_error, IndexError, ValueError)
"""What a fast decoder raises on malformed input."""


def make_decoder(layout: Layout) -> Decoder:
    """A fast decoder for one message in one version. Raises one of FAILURES on bad input."""
    source = Source(f"{layout.cls.__name__} v{layout.version} decoder")
    source.names.update(new=object.__new__, varint=decode_unsigned, read_tags=read_tags)
    with source.block("def decode(view, pos):"):
        # Slicing text out of bytes is faster than out of a view, but payloads must not be copied.
        source.emit("buf = view" if _has_payload(layout) else "buf = bytes(view)")
        source.emit("size = len(buf)")
        _StructReader(source, layout, "m", payload=_has_payload(layout)).read()
        with source.block("if pos > size:"):
            source.emit("raise ValueError('truncated')")
        source.emit("return m, pos")
    decoder: Decoder = source.compile("decode")
    return decoder


def _has_payload(layout: Layout) -> bool:
    return any(_holds_payload(field.wire) for field in (*layout.plain, *layout.tagged))


def _holds_payload(wire: Wire) -> bool:
    match wire:
        case Sized(is_text=is_text):
            return not is_text
        case ArrayOf(element=element):
            return _holds_payload(element)
        case StructOf():
            return _has_payload(wire.layout)
        case _:
            return False


class _StructReader:
    """Writes the lines that decode one struct into the local name `me`."""

    def __init__(self, source: Source, layout: Layout, me: str, *, payload: bool) -> None:
        self.source = source
        self.layout = layout
        self.me = me
        self.payload = payload
        self.run: list[tuple[str, str]] = []

    def read(self) -> None:
        self.begin()
        for field in self.layout.plain:
            self._field(field, f"{self.me}.{field.name}")
        if self.layout.flexible:
            self._tags()
        self._flush()

    def begin(self) -> None:
        """An object with the defaults of the fields that this version lacks."""
        cls = self.source.constant("cls", self.layout.cls, self.layout.cls)
        self.source.emit(f"{self.me} = new({cls})")
        by_value: dict[str, list[str]] = {"None": ["unknown_tags"]}
        missing = [(name, spec.default) for name, spec in self.layout.absent]
        missing += [(field.name, field.default) for field in self.layout.tagged]
        for name, default in missing:
            by_value.setdefault(repr(default), []).append(name)
        for value, names in by_value.items():
            targets = " = ".join(f"{self.me}.{name}" for name in names)
            self.source.emit(f"{targets} = {value}")

    def _flush(self) -> None:
        """Read the run of fixed-size values so far with one call."""
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        packer = Packer(">" + codes)
        if codes == "B":
            self.source.emit(f"{targets} = buf[pos]")
        else:
            unpack = self.source.constant("unpack", codes, packer.unpack_from)
            comma = "," if len(self.run) == 1 else ""
            self.source.emit(f"{targets}{comma} = {unpack}(buf, pos)")
        self.source.emit(f"pos += {packer.size}")
        self.run = []

    def _field(self, field: FieldLayout, target: str) -> None:
        match field.wire:
            case Fixed(code=code):
                self.run.append((code, target))
            case Sized(prefix=prefix):
                self._counted(field, target, prefix, self._sized)
            case ArrayOf():
                self._counted(field, target, "i", self._array)
            case StructOf() if field.nullable:
                self._nullable_struct(field.wire, target)
            case StructOf():
                self._struct(field.wire, target)

    def _counted(
        self,
        field: FieldLayout,
        target: str,
        prefix: str,
        body: Callable[[Any, str, str, bool], None],
    ) -> None:
        """A length or count, joined to the run before it, then what it announces."""
        count = self.source.fresh("n")
        if field.compact:
            self.run.append(("B", count))
            self._flush()
            with self.source.block(f"if {count} > 127:"):
                self.source.emit(f"{count}, pos = varint(buf, pos - 1)")
                if field.wire == STRING:
                    with self.source.block(f"if {count} > {LONGEST_TEXT + 1}:"):
                        self.source.emit("raise ValueError('too long')")
            null, amount = f"not {count}", f"{count} - 1"
        else:
            self.run.append((prefix, count))
            self._flush()
            null, amount = f"{count} < 0", count
        with self.source.block(f"if {null}:"):
            if field.nullable:
                if not field.compact:
                    with self.source.block(f"if {count} < -1:"):
                        self.source.emit("raise ValueError('negative length')")
                self.source.emit(f"{target} = None")
            else:
                self.source.emit("raise ValueError('null')")
        if field.nullable:
            with self.source.block("else:"):
                body(field.wire, target, amount, field.compact)
        else:
            body(field.wire, target, amount, field.compact)

    def _sized(self, wire: Sized, target: str, amount: str, _compact: bool) -> None:
        end = self.source.fresh("end")
        self.source.emit(f"{end} = pos + {amount}")
        if not wire.is_text:
            self.source.emit(f"{target} = buf[pos:{end}]")
        elif self.payload:
            self.source.emit(f"{target} = str(buf[pos:{end}], 'utf-8')")
        else:
            self.source.emit(f"{target} = buf[pos:{end}].decode()")
        self.source.emit(f"pos = {end}")

    def _array(self, wire: ArrayOf, target: str, amount: str, compact: bool) -> None:
        count = self.source.fresh("n")
        self.source.emit(f"{count} = {amount}")
        if isinstance(wire.element, Fixed):
            unpack = self.source.constant("array", wire.element.code, _UNPACK[wire.element.code])
            with self.source.block(f"if {count} * {wire.element.size} > size - pos:"):
                self.source.emit("raise ValueError('count')")
            self.source.emit(f"{target} = {unpack}[{count}](buf, pos)")
            self.source.emit(f"pos += {count} * {wire.element.size}")
            return
        smallest = smallest_element(wire, compact)
        with self.source.block(f"if {count} * {smallest} > size - pos:"):
            self.source.emit("raise ValueError('count')")
        items, each = self.source.fresh("items"), self.source.fresh("e")
        self.source.emit(f"{target} = {items} = []")
        if isinstance(wire.element, StructOf) and wire.element.layout.is_fixed:
            self._fixed_elements(wire.element.layout, items, each, count)
            return
        with self.source.block(f"for _ in range({count}):"):
            self._element(wire, each, compact)
            self.source.emit(f"{items}.append({each})")

    def _fixed_elements(self, layout: Layout, items: str, each: str, count: str) -> None:
        """Read structs of one size in one call, unless one of them has tagged fields.

        If the tag count of each is zero, all of them are at the expected positions.
        """
        end, size = self.source.fresh("end"), layout.smallest
        self.source.emit(f"{end} = pos + {count} * {size}")
        if layout.flexible:
            marks = f"bytes(buf[pos + {size - 1}:{end}:{size}])"
            with self.source.block(f"if {marks}.strip(b'\\0'):"):
                with self.source.block(f"for _ in range({count}):"):
                    _StructReader(self.source, layout, each, payload=self.payload).read()
                    self.source.emit(f"{items}.append({each})")
                self.source.emit(f"{end} = pos")
        codes = "".join(field.wire.code for field in layout.plain if isinstance(field.wire, Fixed))
        codes += "x" * layout.flexible
        sweep = self.source.constant("sweep", codes, Packer(f">{codes}").iter_unpack)
        locals_ = [self.source.fresh("f") for _ in layout.plain]
        with self.source.block(f"for {', '.join(locals_)}, in {sweep}(buf[pos:{end}]):"):
            reader = _StructReader(self.source, layout, each, payload=self.payload)
            reader.begin()
            for field, local in zip(layout.plain, locals_, strict=True):
                self.source.emit(f"{each}.{field.name} = {local}")
            self.source.emit(f"{items}.append({each})")
        self.source.emit(f"pos = {end}")

    def _element(self, wire: ArrayOf, each: str, compact: bool) -> None:
        if isinstance(wire.element, StructOf):
            layout = wire.element.layout
            _StructReader(self.source, layout, each, payload=self.payload).read()
        else:
            self._field(FieldLayout(each, wire.element, False, compact, None, None), each)
            self._flush()

    def _struct(self, wire: StructOf, target: str) -> None:
        self._flush()
        name = self.source.fresh("m")
        _StructReader(self.source, wire.layout, name, payload=self.payload).read()
        self.source.emit(f"{target} = {name}")

    def _nullable_struct(self, wire: StructOf, target: str) -> None:
        """KIP-893: a byte of 1 before a present struct, or of -1 for null."""
        mark = self.source.fresh("n")
        self.run.append(("b", mark))
        self._flush()
        with self.source.block(f"if {mark} < 0:"):
            self.source.emit(f"{target} = None")
        with self.source.block("else:"):
            self._struct(wire, target)

    def _tags(self) -> None:
        """Nearly always a zero byte; a slower function reads anything else."""
        count = self.source.fresh("n")
        self.run.append(("B", count))
        self._flush()
        known = self._known_tags() if self.layout.tagged else "None"
        with self.source.block(f"if {count}:"):
            self.source.emit(f"pos = read_tags({self.me}, buf, pos - 1, size, {known})")

    def _known_tags(self) -> str:
        """A function that reads one known tagged field and returns its end."""
        function = self.source.fresh("read_tag_")
        with self.source.apart(), self.source.block(f"def {function}(m, tag, buf, pos, size):"):
            for field in self.layout.tagged:
                with self.source.block(f"if tag == {field.tag}:"):
                    reader = _StructReader(self.source, self.layout, "m", payload=self.payload)
                    reader._field(field, f"m.{field.name}")
                    reader._flush()
                    self.source.emit("return pos")
            self.source.emit("return -1")
        return function


def read_tags(
    message: Struct,
    buffer: Payload,
    position: int,
    size: int,
    known: Callable[[Struct, int, Payload, int, int], int] | None,
) -> int:
    """Read the tagged fields, keep those that `known` does not read, and return the end."""
    unknown: dict[int, Payload] = {}
    count, position = decode_unsigned(buffer, position)
    last = -1
    for _ in range(count):
        tag, position = decode_unsigned(buffer, position)
        length, position = decode_unsigned(buffer, position)
        end = position + length
        if tag <= last or end > size:
            raise ValueError("tag")
        last = tag
        after = known(message, tag, buffer, position, end) if known else -1
        if after < 0:
            unknown[tag] = buffer[position:end]
        elif after != end:
            raise ValueError("tag size")
        position = end
    if unknown:
        message.unknown_tags = unknown
    return position


class _Unpackers(dict[int, Callable[[Payload, int], tuple[Any, ...]]]):
    """A reader of n values, by n. Large ones are not kept: a peer chooses how many there are."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, count: int) -> Callable[[Payload, int], tuple[Any, ...]]:
        unpack = Packer(">" + repeated(self._code, count)).unpack_from
        if count < 256:
            self[count] = unpack
        return unpack


_UNPACK = {code: _Unpackers(code) for code in ("?", "b", "h", "i", "q", "H", "I", "d", "16s")}
