"""ApiVersions: exactly what this broker answers, and Produce from 0 as clients expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.calls import Call
from holdfast.protocol import APIS
from holdfast.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

if TYPE_CHECKING:
    from holdfast.broker.node import Broker


def handle(broker: Broker, call: Call) -> None:
    """The range of every API that has a handler."""
    keys = [
        ApiVersion(
            api_key=key,
            min_version=APIS[key].lowest_advertised,
            max_version=APIS[key].highest_advertised,
        )
        for key in broker.listener.handled
    ]
    call.answer(ApiVersionsResponse(error_code=0, api_keys=keys))
