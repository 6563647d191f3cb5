"""Messages with random values, of any API and version.

Values are limited to what all oracles can hold: kio has types for error codes and times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, TypeVar

from holdfast.model import ErrorCode
from holdfast.protocol import APIS, Message, Request, RequestHeader, Response, ResponseHeader
from holdfast.protocol.codec.layout import ArrayOf, FieldLayout, Layout, StructOf, Wire
from holdfast.protocol.codec.types import (
    BOOL,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT16,
    UINT32,
    UUID,
    Fixed,
    Sized,
)

AnyMessage = TypeVar("AnyMessage", bound=Message)

BITS = {INT8: 7, INT16: 15, INT32: 31, INT64: 63, UINT16: 16, UINT32: 32}
TEXTS = ("", "a", "topic-7", "grüße", "日本", "x" * 126, "y" * 127, "z" * 300)
PAYLOADS = (b"", b"\0", b"payload", bytes(range(256)) * 2)


def every_message() -> Iterator[tuple[type[Message], int]]:
    """Every message class with every version of it, headers included."""
    classes: list[type[Message]] = [RequestHeader, ResponseHeader]
    for api in APIS.values():
        classes += [api.request, api.response]
    for cls in classes:
        for version in cls.VERSIONS:
            yield cls, version


def every_api_message() -> Iterator[tuple[type[Request | Response], int]]:
    """The same without headers."""
    for cls, version in every_message():
        if issubclass(cls, Request | Response):
            yield cls, version


def title(value: object) -> str:
    """A name for a parameter of a test."""
    return value.__name__ if isinstance(value, type) else f"v{value}"


class Sampler:
    """Draws messages. With `unknown_tags` some structs have unknown tagged fields.

    A `small` message has at least one element in every array and nothing long: few bytes, and
    every kind of field among them.
    """

    def __init__(self, rng: Random, *, unknown_tags: bool = False, small: bool = False) -> None:
        self.rng = rng
        self.unknown_tags = unknown_tags
        self.counts = (1, 1) if small else (0, 3)
        self.texts = TEXTS[1:4] if small else TEXTS
        self.payloads = PAYLOADS[1:3] if small else PAYLOADS
        self.nulls = 0.1 if small else 0.25

    def message(self, cls: type[AnyMessage], version: int) -> AnyMessage:
        """A message whose fields fit the version; all other fields hold their defaults."""
        message = self.struct(cls.layout(version))
        assert isinstance(message, cls)
        return message

    def struct(self, layout: Layout) -> Any:
        values = {field.name: self.field(field) for field in layout.plain}
        for field in layout.tagged:
            if self.rng.random() < 0.5:
                values[field.name] = self.field(field)
        if layout.flexible and self.unknown_tags and self.rng.random() < 0.3:
            tags = self.rng.sample((100, 101, 127, 128, 70000), self.rng.randint(1, 3))
            values["unknown_tags"] = {tag: self.rng.choice(self.payloads) for tag in tags}
        return layout.cls(**values)

    def field(self, field: FieldLayout) -> Any:
        if field.nullable and self.rng.random() < self.nulls:
            return None
        return self.value(field.wire, field.name)

    def value(self, wire: Wire, name: str) -> Any:
        match wire:
            case Fixed():
                return self.fixed(wire, name)
            case Sized(is_text=True):
                return self.rng.choice(self.texts)
            case Sized():
                return self.rng.choice(self.payloads)
            case ArrayOf(element=element):
                return [self.value(element, name) for _ in range(self.rng.randint(*self.counts))]
            case StructOf():
                return self.struct(wire.layout)

    def fixed(self, wire: Fixed, name: str) -> Any:
        if wire == BOOL:
            return self.rng.random() < 0.5
        if wire == UUID:
            return self.rng.randbytes(16)
        if wire == FLOAT64:
            return self.rng.choice((0.0, -1.5, 1e300))
        if name.endswith("error_code"):
            return int(self.rng.choice(list(ErrorCode)))
        highest = 2 ** BITS[wire] - 1
        if name.endswith("_ms") or "timestamp" in name:
            return self.rng.randint(0, min(highest, 2**31 - 1))
        lowest = 0 if wire in (UINT16, UINT32) else -highest - 1
        return self.rng.choice((lowest, highest, 0, 1, 127, self.rng.randint(lowest, highest)))


def for_each(
    classes: Sequence[type[Message]],
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a check: it runs for each class, and a failure names the class."""

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            for cls in classes:
                try:
                    check(cls)
                except BaseException as problem:
                    problem.add_note(f"with {title(cls)}")
                    raise

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate
