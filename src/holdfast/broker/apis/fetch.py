"""Fetch: finds the fetch session and starts the answer."""

from __future__ import annotations

from holdfast.broker.fetch.parked_fetch import ParkedFetch
from holdfast.broker.fetch.serving import FetchParts
from holdfast.broker.fetch.tool_fetch import DEBUGGING_REPLICA, answer
from holdfast.broker.network.calls import Call
from holdfast.model import BrokerEpoch, BrokerId
from holdfast.protocol.messages.fetch import FetchRequest, FetchResponse


def handle(parts: FetchParts, call: Call) -> None:
    """Answer or park the request."""
    request = call.request
    assert isinstance(request, FetchRequest)
    if request.replica_id == DEBUGGING_REPLICA:
        most = min(request.max_bytes, parts.configs.settings.fetch_max_bytes)
        call.answer(answer(request, parts.find, call.connection.room_for(max(0, most))))
        return
    follower, broker_epoch = _follower_of(request, call.version)
    session, error = parts.sessions.find(request.session_id, request.session_epoch, follower)
    if session is None:
        call.answer(FetchResponse(error_code=error, responses=[]))
        return
    ParkedFetch(parts, call, session).begin(broker_epoch)


def _follower_of(request: FetchRequest, version: int) -> tuple[BrokerId | None, BrokerEpoch]:
    """The broker that fetches and its broker epoch; None for a consumer."""
    state = request.replica_state
    if version >= 15 and state is not None:
        follower, epoch = state.replica_id, state.replica_epoch
    else:
        follower, epoch = request.replica_id, -1
    return (BrokerId(follower) if follower >= 0 else None), BrokerEpoch(epoch)
