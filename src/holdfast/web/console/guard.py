"""Who may ask what: every request is checked here before a handler sees it.

The console listens on loopback, but any page in the user's browser can send requests there. So the
Host header must name this server (else a page could reach it through a DNS name of its own), and a
request that changes something must come from this page (Origin) and carry the token that was
printed at the start. The token travels in a header that no form can send, never in a cookie: no
other page can make the browser send it.
"""

from __future__ import annotations

import secrets
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER: Final = "x-holdfast-token"  # noqa: S105  # the header's name
READING: Final = ("GET", "HEAD")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-src 'self'; frame-ancestors 'self'; base-uri 'none'; "
    "form-action 'none'"
)


def new_token() -> str:
    return secrets.token_urlsafe(24)


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app = app
        self._hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]
        self._origins = [f"http://{host}" for host in self._hosts]
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal:
            status, words = refusal
            await JSONResponse({"error": words}, status)(scope, receive, _with_headers(send))
            return
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """Status and reason; None if the request is allowed."""
        if headers.get("host") not in self._hosts:
            return 421, "this is not the host that you asked for"
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            return 403, "a page of another origin may not ask this server"
        if method in READING:
            return None
        if origin is None:
            return 403, "the request does not say which page it comes from (Origin)"
        given = headers.get(TOKEN_HEADER, "").encode()
        if not secrets.compare_digest(given, self._token):
            return 403, "the token is missing or wrong: open the address printed at the start"
        if headers.get("content-type") != "application/json":
            return 415, "a request has JSON"
        return None


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("content-security-policy", POLICY)
            headers.setdefault("cache-control", "no-store")
            headers["x-content-type-options"] = "nosniff"
            headers["referrer-policy"] = "no-referrer"
            headers["cross-origin-resource-policy"] = "same-origin"
        await send(message)

    return sending
