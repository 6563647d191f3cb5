"""SASL authentication. The mechanism defines the content of `auth_bytes`."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import field
from holdfast.protocol.codec.types import Bytes, Int16, Int64, String
from holdfast.protocol.message import Request, Response


class SaslHandshakeRequest(Request, api_key=17, versions="0-1"):
    """Choose a mechanism. Its tokens follow bare after version 0, in SaslAuthenticate after 1."""

    mechanism: String


class SaslHandshakeResponse(Response, api_key=17, versions="0-1"):
    """Whether the broker supports the mechanism, and which ones it supports."""

    error_code: Int16
    mechanisms: Sequence[String]


class SaslAuthenticateRequest(Request, api_key=36, versions="0-2", flexible=2):
    """One token of the client's side of the exchange."""

    auth_bytes: Bytes


class SaslAuthenticateResponse(Response, api_key=36, versions="0-2", flexible=2):
    """One token of the broker's side. Version 1 has the session lifetime (KIP-368)."""

    error_code: Int16
    error_message: String | None
    auth_bytes: Bytes
    session_lifetime_ms: Int64 = field("1+", default=0, ignorable=True)
