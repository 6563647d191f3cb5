"""Requests and responses: structs with an API key, versions, and codecs created on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar

from holdfast.protocol.codec.careful_decoder import read_carefully
from holdfast.protocol.codec.decoder import FAILURES, Decoder, make_decoder
from holdfast.protocol.codec.encoder import Encoder, make_encoder
from holdfast.protocol.codec.layout import Layout, layout_of, parse_range
from holdfast.protocol.codec.structs import Struct
from holdfast.protocol.codec.types import Payload
from holdfast.protocol.errors import MalformedMessage, UnsupportedVersionError

_Codec = TypeVar("_Codec")


class _Codecs(dict[int, _Codec], Generic[_Codec]):
    """The codecs of a message by version, created on the first use of a version."""

    def __init__(self, cls: type[Message], make: Callable[[Layout], _Codec]) -> None:
        super().__init__()
        self._cls = cls
        self._make = make

    def __missing__(self, version: int) -> _Codec:
        codec = self[version] = self._make(self._cls.layout(version))
        return codec


class Message(Struct):
    """A message. A subclass sets its versions and the first flexible one."""

    VERSIONS: ClassVar[range]
    FLEXIBLE_FROM: ClassVar[int | None]
    _encoders: ClassVar[_Codecs[Encoder]]
    _decoders: ClassVar[_Codecs[Decoder]]

    def __init_subclass__(cls, *, versions: str = "none", flexible: int | None = None) -> None:
        super().__init_subclass__()
        cls.VERSIONS = parse_range(versions)
        cls.FLEXIBLE_FROM = flexible
        cls._encoders = _Codecs(cls, make_encoder)
        cls._decoders = _Codecs(cls, make_decoder)

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Whether the version has compact lengths and tagged fields (KIP-482)."""
        return cls.FLEXIBLE_FROM is not None and version >= cls.FLEXIBLE_FROM

    @classmethod
    def layout(cls, version: int) -> Layout:
        """The fields of one version; UnsupportedVersionError if there is none such."""
        if version not in cls.VERSIONS:
            raise UnsupportedVersionError(cls.__name__, version)
        return layout_of(cls, version, cls.is_flexible(version))

    def encode(self, version: int) -> bytes:
        """The message without header or frame."""
        return b"".join(self._encoders[version](self))

    def encode_parts(self, version: int) -> list[Payload]:
        """The same in pieces, for a scattering write: payloads are in it as they are, uncopied."""
        return self._encoders[version](self)

    @classmethod
    def decode(cls, buffer: Payload, version: int) -> Self:
        """The message that fills the buffer exactly. Payloads in it are views of the buffer.

        Raises MalformedMessage, whatever the bytes; UnsupportedVersionError, whatever the bytes,
        if there is no such version.
        """
        view = memoryview(buffer)
        try:
            message, end = cls._decoders[version](view, 0)
        except FAILURES:
            cls._explain(view, version, 0)
        if end != len(view):
            reason = f"{len(view) - end} bytes after the end"
            raise MalformedMessage(cls.__name__, version, "message", end, reason)
        decoded: Self = message
        return decoded

    @classmethod
    def decode_from(cls, buffer: Payload, version: int, position: int = 0) -> tuple[Self, int]:
        """The message at a position, and the position after it. Payloads are views, not copies."""
        view = memoryview(buffer)
        try:
            decoded: tuple[Self, int] = cls._decoders[version](view, position)
        except FAILURES:
            cls._explain(view, version, position)
        return decoded

    @classmethod
    def _explain(cls, view: memoryview, version: int, position: int) -> NoReturn:
        """Explain what is wrong with input that the fast decoder refused."""
        layout = cls.layout(version)
        read_carefully(layout, view, position)
        raise AssertionError(f"{cls.__name__} v{version}: refused and accepted: {bytes(view)!r}")


class _ApiMessage(Message):
    """A message that belongs to an API."""

    API_KEY: ClassVar[int]

    def __init_subclass__(cls, *, api_key: int = -1, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.API_KEY = api_key


class Request(_ApiMessage):
    """A request of a client or of another broker."""


class Response(_ApiMessage):
    """The response to a request."""
