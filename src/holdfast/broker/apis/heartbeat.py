"""Heartbeat: a member shows that it is alive, and learns whether it must join again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.network.calls import Call
from holdfast.core.groups import Caller
from holdfast.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from holdfast.broker.node import Broker


def handle(broker: Broker, call: Call) -> None:
    """Answers immediately."""
    request = call.request
    assert isinstance(request, HeartbeatRequest)
    caller = Caller(
        request.group_id, request.member_id, request.generation_id, request.group_instance_id
    )
    call.answer(HeartbeatResponse(error_code=broker.groups.heartbeat(caller)))
