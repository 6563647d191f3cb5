"""A request in progress, and its place in the order of its connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.protocol import Api, Payload, Request, Response, encode_response

if TYPE_CHECKING:
    from holdfast.broker.network.connection import Connection
    from holdfast.broker.network.request_counts import RequestCount


class KafkaPrincipal(NamedTuple):
    """Who sends the requests of a connection, by Kafka's type and name."""

    principal_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


ANONYMOUS: Final = KafkaPrincipal("User", "ANONYMOUS")
"""The principal of a connection without authentication."""


class Call:
    """One request. It is answered once, at any time; the connection keeps the order."""

    __slots__ = (
        "answer_size",
        "api",
        "began_s",
        "client_id",
        "closes",
        "connection",
        "correlation_id",
        "count",
        "dropped",
        "parts",
        "request",
        "size",
        "version",
    )

    request: Any
    """The request, of the class that its API has."""
    parts: list[Payload] | None
    """The bytes of the answer, once there is one; empty if none is sent."""
    count: RequestCount | None
    """Counts it; None if the broker serves no metrics."""
    began_s: float
    """When it was decoded, if it is counted."""
    answer_size: int
    """Their total size."""
    closes: bool
    """The connection closes instead of an answer."""
    dropped: Callable[[], None] | None
    """Called if the connection is lost before there is an answer."""

    def __init__(
        self,
        connection: Connection,
        api: Api,
        version: int,
        correlation_id: int,
        client_id: str | None,
        request: Request,
        size: int,
    ) -> None:
        self.connection = connection
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.request = request
        self.size = size
        """Bytes of its frame, which stay in memory until it is answered."""
        self.parts = None
        self.count = None
        self.closes = False
        self.dropped = None

    def answer(self, response: Response) -> None:
        """Send the response as soon as the earlier ones have been sent."""
        self.answer_bytes(
            encode_response(response, self.version, correlation_id=self.correlation_id)
        )

    def answer_bytes(self, parts: list[Payload]) -> None:
        """The same for an encoded response."""
        assert self.parts is None, f"{self.api.name} answered twice"
        self.parts = parts
        self.connection.answered(self)

    def answer_nothing(self) -> None:
        """Produce with acks=0: the client waits for no answer."""
        self.answer_bytes([])

    def answer_by_closing(self) -> None:
        """Produce with acks=0 that failed: only this makes the client refresh its metadata.

        The requests before it are answered first; those after it are not read.
        """
        self.closes = True
        self.connection.stop_taking()
        self.answer_bytes([])

    def fail(self, error: BaseException) -> None:
        """The broker has a bug: log it with the request that shows it, and disconnect."""
        log = self.connection.listener.log
        log.bug("request failed", error, self.sender, api=self.api.name, version=self.version)
        self.connection.close()

    def warn(self, event: str, **fields: object) -> None:
        """Log what the sender did."""
        self.connection.listener.log.client_warning(event, self.sender, **fields)

    @property
    def principal(self) -> KafkaPrincipal:
        """Who sent it."""
        return self.connection.principal

    @property
    def listener(self) -> str:
        """The name of the listener that received it."""
        return self.connection.listener.name

    @property
    def sender(self) -> dict[str, object]:
        """Who sent it and how, for log lines."""
        return self.connection.sender | {"client_id": self.client_id or ""}

    @property
    def is_answered(self) -> bool:
        """Whether an answer has been given, sent or not."""
        return self.parts is not None
