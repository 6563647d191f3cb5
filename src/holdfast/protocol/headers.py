"""Message headers: the API, version and client of a request, and the correlation id of a response.

A header has its own version, which is not on the wire: it follows from the API and the API version.
Two rules have exceptions, because a peer must read some headers before versions are negotiated:

1. A flexible version has a flexible header (request 2, response 1), others the older one (1 and 0).
   ControlledShutdown 0 has request header 0, from before clients had names.
2. The response to ApiVersions always has header 0: a client reads it to learn what it may send, and
   the broker may have answered in version 0 instead of the one that was asked (KIP-511).
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct as Packer
from typing import Final

from holdfast.model import ErrorCode
from holdfast.protocol.codec.structs import field
from holdfast.protocol.codec.types import Int16, Int32, Payload, String
from holdfast.protocol.errors import MalformedMessage, UnsupportedVersionError
from holdfast.protocol.message import Message, Request, Response
from holdfast.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from holdfast.protocol.registry import APIS, Api

API_VERSIONS: Final = 18
CONTROLLED_SHUTDOWN: Final = 7

_KEY_AND_VERSION: Final = Packer(">hh")
_REQUEST_START: Final = Packer(">hhih")
"""Key, version, correlation id, length of the client's name."""
_CORRELATION_ID: Final = Packer(">i")
_FRAMED_REQUEST: Final = Packer(">ihhi")
_FRAMED_RESPONSE_0: Final = Packer(">ii")
_FRAMED_RESPONSE_1: Final = Packer(">iib")
"""With no tagged fields."""
_UNSUPPORTED_VERSION: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


class RequestHeader(Message, versions="0-2", flexible=2):
    """The API and version that follow, and the correlation id for the response."""

    request_api_key: Int16
    request_api_version: Int16
    correlation_id: Int32
    client_id: String | None = field("1+", default="", ignorable=True, never_compact=True)


class ResponseHeader(Message, versions="0-1", flexible=1):
    """The correlation id of the request."""

    correlation_id: Int32


def request_header_version(api: Api, version: int) -> int:
    """The header version of a request. The API version may be unknown."""
    if api.key == CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if api.request.is_flexible(version) else 1


def response_header_version(api: Api, version: int) -> int:
    """The header version of a response."""
    return 1 if api.response.is_flexible(version) and api.key != API_VERSIONS else 0


def decode_request_header(frame: Payload) -> tuple[RequestHeader, int]:
    """The header at the start of a frame, and where the body begins.

    An unknown API is an UnsupportedVersionError: the rest of the header cannot be read.
    The version is not checked: a broker answers an ApiVersions request of any version.
    """
    if len(frame) < _KEY_AND_VERSION.size:
        reason = f"needs {_KEY_AND_VERSION.size} bytes, {len(frame)} are there"
        raise MalformedMessage(RequestHeader.__name__, 0, "request_api_key", 0, reason)
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    if key not in APIS:
        raise UnsupportedVersionError(f"API {key}", version)
    return RequestHeader.decode_from(frame, request_header_version(APIS[key], version))


def request_start(frame: bytearray) -> tuple[Api, int, int, str | None, int]:
    """API, version, correlation id, client's name and the place of the body.

    A fast path of `decode_request_header` for the fields that every request has. It calls that
    for unusual or malformed headers.
    """
    if len(frame) > _REQUEST_START.size:
        key, version, correlation_id, size = _REQUEST_START.unpack_from(frame)
        api = APIS.get(key)
        end = _REQUEST_START.size + size
        if api is not None and 0 <= size and end < len(frame) and key != CONTROLLED_SHUTDOWN:
            is_flexible = api.request.is_flexible(version)
            name = frame[_REQUEST_START.size : end]
            if name.isascii() and not (is_flexible and frame[end]):
                return api, version, correlation_id, name.decode(), end + is_flexible
    header, position = decode_request_header(frame)
    api = APIS[header.request_api_key]
    return api, header.request_api_version, header.correlation_id, header.client_id, position


def encode_request(
    request: Request, version: int, *, correlation_id: int, client_id: str | None
) -> list[Payload]:
    """A whole request with its frame, in pieces for a scattering write."""
    key = request.API_KEY
    parts = request.encode_parts(version)
    rest = _rest_of_header(client_id, request_header_version(APIS[key], version))
    size = _FRAMED_REQUEST.size - 4 + len(rest) + sum(map(len, parts))
    parts.insert(0, _FRAMED_REQUEST.pack(size, key, version, correlation_id) + rest)
    return parts


@lru_cache(maxsize=64)
def _rest_of_header(client_id: str | None, header_version: int) -> bytes:
    """The header after the correlation id: the same in every request of a broker."""
    header = RequestHeader(
        request_api_key=0, request_api_version=0, correlation_id=0, client_id=client_id
    )
    return header.encode(header_version)[8:]


def encode_response(response: Response, version: int, *, correlation_id: int) -> list[Payload]:
    """A whole response with its frame, in pieces for a scattering write."""
    parts = response.encode_parts(version)
    size = sum(map(len, parts))
    if response.is_flexible(version) and response.API_KEY != API_VERSIONS:
        start = _FRAMED_RESPONSE_1.pack(size + 5, correlation_id, 0)
    else:
        start = _FRAMED_RESPONSE_0.pack(size + 4, correlation_id)
    parts.insert(0, start)
    return parts


def encode_unsupported_api_versions(*, correlation_id: int) -> list[Payload]:
    """The answer to an ApiVersions request of a version that we lack.

    It is sent in version 0, which every client can read, and names the versions of ApiVersions
    alone, so that the client asks again with one of them (KIP-511).
    """
    span = APIS[API_VERSIONS].advertised
    only = ApiVersion(api_key=API_VERSIONS, min_version=span[0], max_version=span[-1])
    answer = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[only])
    return encode_response(answer, 0, correlation_id=correlation_id)


def decode_response(frame: Payload, api: Api, version: int) -> tuple[ResponseHeader, Response]:
    """A whole response; the caller passes the API and version of its request."""
    header_version = response_header_version(api, version)
    if len(frame) > 4 and not (header_version and frame[4]):
        header = ResponseHeader(correlation_id=_CORRELATION_ID.unpack_from(frame)[0])
        position = 4 + header_version
    else:
        header, position = ResponseHeader.decode_from(frame, header_version)
    body = memoryview(frame)[position:]
    if api.key == API_VERSIONS and body[:2] == _UNSUPPORTED_VERSION:
        version = 0
    return header, api.response.decode(body, version)
