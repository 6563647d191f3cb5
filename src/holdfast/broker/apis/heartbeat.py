"""Heartbeat: a member shows that it is alive, and learns whether it must join again."""

from __future__ import annotations

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.network.calls import Call
from holdfast.core.groups import Caller
from holdfast.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse


def handle(coordinator: GroupCoordinator, call: Call) -> None:
    """Answers immediately."""
    request: HeartbeatRequest = call.request
    caller = Caller(
        request.group_id, request.member_id, request.generation_id, request.group_instance_id
    )
    call.answer(HeartbeatResponse(error_code=coordinator.heartbeat(caller)))
