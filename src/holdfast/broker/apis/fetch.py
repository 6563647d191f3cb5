"""Fetch: finds the session and begins to answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.calls import Call
from holdfast.broker.fetching import ParkedFetch, follower_of
from holdfast.protocol.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from holdfast.broker.node import Broker


def handle(broker: Broker, call: Call) -> None:
    """Answer, or park."""
    request = call.request
    assert isinstance(request, FetchRequest)
    follower, broker_epoch = follower_of(request, call.version)
    session, error = broker.fetch_sessions.find(request, follower)
    if session is None:
        call.answer(FetchResponse(error_code=error, responses=[]))
        return
    session.broker_epoch = broker_epoch
    ParkedFetch(broker, call, session).begin()
