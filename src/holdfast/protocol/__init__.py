"""Typed messages to bytes and back: every API and version of Kafka's clients and brokers.

This package only encodes and decodes; it does no IO and makes no decisions. A message is a plain
object without a version until it is encoded for one. Import messages from their family's module
(`from holdfast.protocol.messages import fetch`), record batches, which need the compression codecs,
from `holdfast.protocol.records`, and everything else from here.
"""

from holdfast.protocol.codec.structs import Struct
from holdfast.protocol.codec.types import ZERO_UUID, Payload
from holdfast.protocol.errors import (
    MalformedMessage,
    UnsupportedFieldError,
    UnsupportedVersionError,
)
from holdfast.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    encode_unsupported_api_versions,
    request_header_version,
    request_start,
    response_header_version,
)
from holdfast.protocol.message import Message, Request, Response
from holdfast.protocol.registry import APIS, Api

__all__ = [
    "APIS",
    "ZERO_UUID",
    "Api",
    "MalformedMessage",
    "Message",
    "Payload",
    "Request",
    "RequestHeader",
    "Response",
    "ResponseHeader",
    "Struct",
    "UnsupportedFieldError",
    "UnsupportedVersionError",
    "decode_request_header",
    "decode_response",
    "encode_request",
    "encode_response",
    "encode_unsupported_api_versions",
    "request_header_version",
    "request_start",
    "response_header_version",
]
