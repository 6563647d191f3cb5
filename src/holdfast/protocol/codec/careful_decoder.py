"""The slow decoder: reads field by field, checks every step and names every failure.

It explains input that the fast decoders refuse. Tests compare both on all other input.
"""

from __future__ import annotations

from struct import Struct as Packer
from typing import Any, NoReturn

from holdfast.protocol.codec.layout import (
    ArrayOf,
    FieldLayout,
    Layout,
    StructOf,
    smallest_element,
)
from holdfast.protocol.codec.types import LONGEST_TEXT, Fixed, Payload, Sized
from holdfast.protocol.codec.varints import decode_unsigned
from holdfast.protocol.errors import MalformedMessage


def read_carefully(layout: Layout, view: memoryview, position: int) -> tuple[Any, int]:
    """The message and the position after it, or a MalformedMessage that says what is wrong."""
    reader = _Reader(layout, view, position)
    message = reader.struct(layout)
    return message, reader.position


class _Reader:
    def __init__(self, layout: Layout, view: memoryview, position: int) -> None:
        self.view = view
        self.position = position
        self._title = layout.cls.__name__
        self._version = layout.version
        self._path: list[str] = []
        self._end = len(view)
        self._start = position

    def fail(self, reason: str) -> NoReturn:
        where = ".".join(self._path).replace(".[", "[")
        raise MalformedMessage(self._title, self._version, where, self._start, reason)

    def struct(self, layout: Layout) -> Any:
        values: dict[str, Any] = {name: spec.default for name, spec in layout.absent}
        values |= {field.name: field.default for field in layout.tagged}
        for field in layout.plain:
            values[field.name] = self.field(field)
        if layout.flexible:
            values |= self.tags(layout)
        return layout.cls(**values)

    def field(self, field: FieldLayout) -> Any:
        self._path.append(field.name)
        self._start = self.position
        match field.wire:
            case Fixed():
                value = self.fixed(field.wire)
            case Sized():
                value = self.sized(field.wire, field)
            case ArrayOf():
                value = self.array(field.wire, field)
            case StructOf():
                absent = field.nullable and self.fixed(Fixed("b", 1)) < 0
                value = None if absent else self.struct(field.wire.layout)
        self._path.pop()
        return value

    def take(self, size: int) -> memoryview:
        left = self._end - self.position
        if size > left:
            self.fail(f"needs {size} bytes, {left} are left")
        self.position += size
        return self.view[self.position - size : self.position]

    def fixed(self, wire: Fixed) -> Any:
        return Packer(f">{wire.code}").unpack(self.take(wire.size))[0]

    def unsigned(self) -> int:
        try:
            value, self.position = decode_unsigned(self.view[: self._end], self.position)
        except IndexError:
            self.fail("a varint is truncated")
        except ValueError as error:
            self.fail(str(error))
        return value

    def length(self, field: FieldLayout, prefix: str) -> int | None:
        if field.compact:
            length = self.unsigned() - 1
        else:
            length = self.fixed(Fixed(prefix, Packer(f">{prefix}").size))
        if length < -1:
            self.fail(f"a length of {length}")
        if length < 0:
            if not field.nullable:
                self.fail("is null, and may not be")
            return None
        return length

    def sized(self, wire: Sized, field: FieldLayout) -> str | Payload | None:
        length = self.length(field, wire.prefix)
        if length is None:
            return None
        if wire.is_text and length > LONGEST_TEXT:
            self.fail(f"{length} bytes of text, {LONGEST_TEXT} are allowed")
        content = self.take(length)
        if not wire.is_text:
            return content
        try:
            return str(content, "utf-8")
        except UnicodeDecodeError as error:
            self.fail(f"is not UTF-8: {error.reason}")

    def array(self, wire: ArrayOf, field: FieldLayout) -> list[Any] | None:
        count = self.length(field, "i")
        if count is None:
            return None
        left = self._end - self.position
        least = count * smallest_element(wire, field.compact)
        if least > left:
            self.fail(f"a count of {count} needs {least} bytes or more, {left} are left")
        # At most as many rounds as there are bytes: see smallest_element.
        return [
            self.field(FieldLayout(f"[{index}]", wire.element, False, field.compact, None, None))
            for index in range(count)
        ]

    def tags(self, layout: Layout) -> dict[str, Any]:
        self._path.append("tags")
        self._start = self.position
        known = {field.tag: field for field in layout.tagged}
        values: dict[str, Any] = {}
        unknown: dict[int, Payload] = {}
        last = -1
        for _ in range(self.unsigned()):  # Each round reads two bytes or more, or fails.
            tag, size = self.unsigned(), self.unsigned()
            if tag <= last:
                self.fail(f"tag {tag} after tag {last}")
            last = tag
            if tag in known:
                values[known[tag].name] = self.tagged(known[tag], size)
            else:
                unknown[tag] = self.take(size)
        self._path.pop()
        return values | ({"unknown_tags": unknown} if unknown else {})

    def tagged(self, field: FieldLayout, size: int) -> Any:
        """A tagged field fills the size that was announced, no less and no more."""
        outer = self._end
        self.take(size)
        self._end = self.position
        self.position -= size
        value = self.field(field)
        if self.position != self._end:
            self.fail(f"tag {field.tag} has {self._end - self.position} bytes too many")
        self._end = outer
        return value
