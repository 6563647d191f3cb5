"""The way of every request to its handler: the listeners of a broker share this one place.

What holds for all APIs belongs here: which requests are refused before their handler sees them,
how another broker is recognized, and what happens if a handler fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Final

from holdfast.broker.network.calls import Call
from holdfast.broker.network.connection import Connection
from holdfast.broker.network.request_counts import RequestCounts
from holdfast.protocol import encode_unsupported_api_versions, request_start
from holdfast.protocol.messages.api_versions import ApiVersionsRequest
from holdfast.protocol.messages.control import GetReplicaLogInfoRequest

BROKER_CLIENT_ID: Final = "holdfast-broker-"
"""The client id of a broker, before its broker id."""
LONGEST_ID: Final = 10
"""Digits of a broker's id."""

_API_VERSIONS: Final = ApiVersionsRequest.API_KEY
_LOG_INFO_KEY: Final = GetReplicaLogInfoRequest.API_KEY.to_bytes(2, "big")
_EARLIER_KEY: Final = (93).to_bytes(2, "big")
"""The key of GetReplicaLogInfo in release 0.1, whose controller uses it in a rolling upgrade.
Kafka 4.4 gave the number to another API."""

Handler = Callable[[Call], None]


class Requests:
    """Decodes requests and gives them to the handlers, one for each API key."""

    def __init__(
        self, handlers: Mapping[int, Handler], counts: RequestCounts | None = None
    ) -> None:
        self._handlers = handlers
        self._counts = counts

    def decode(self, connection: Connection, frame: bytearray) -> Call:
        """Decode a request. An unsupported version is an error, except for ApiVersions."""
        if connection.broker is not None and frame.startswith(_EARLIER_KEY):
            frame[:2] = _LOG_INFO_KEY
        api, version, correlation_id, client_id, position = request_start(frame)
        if connection.broker is None and client_id and client_id.startswith(BROKER_CLIENT_ID):
            number = client_id.removeprefix(BROKER_CLIENT_ID)
            is_id = number.isdecimal() and len(number) <= LONGEST_ID
            connection.broker = int(number) if is_id else None
        if api.key == _API_VERSIONS and version not in api.versions:
            asked = ApiVersionsRequest()
            call = Call(connection, api, 0, correlation_id, client_id, asked, len(frame))
            call.parts = encode_unsupported_api_versions(correlation_id=correlation_id)
            return self._counted(call)
        # Bytes after the end are ignored, as Kafka does: librdkafka's Metadata has some.
        request, _ = api.request.decode_from(frame, version, position)
        call = Call(connection, api, version, correlation_id, client_id, request, len(frame))
        return call if self._counts is None else self._counted(call)

    def _counted(self, call: Call) -> Call:
        if self._counts is not None:
            call.count, call.began_s = self._counts.of(call), perf_counter()
        return call

    def handle(self, call: Call) -> None:
        """Call the API's handler; a bug in it closes the connection, not the broker."""
        if call.is_answered:
            call.connection.answered(call)
            return
        try:
            self._handlers[call.api.key](call)
        except Exception as error:  # noqa: BLE001  # whatever happens, others are served
            call.fail(error)
