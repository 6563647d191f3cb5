"""SyncGroup: the group's leader sends all assignments; each member receives its own."""

from __future__ import annotations

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.network.calls import Call
from holdfast.core.groups import AnswerSync, Caller, Sync
from holdfast.protocol.messages.groups import SyncGroupRequest, SyncGroupResponse


def handle(coordinator: GroupCoordinator, call: Call) -> None:
    """Answers when the assignments are committed."""
    request: SyncGroupRequest = call.request
    sync = Sync(
        Caller(
            request.group_id, request.member_id, request.generation_id, request.group_instance_id
        ),
        tuple((each.member_id, bytes(each.assignment)) for each in request.assignments),
        request.protocol_type,
        request.protocol_name,
    )

    def answer(effect: AnswerSync) -> None:
        call.answer(
            SyncGroupResponse(
                error_code=effect.error,
                protocol_type=effect.protocol_type,
                protocol_name=effect.protocol_name,
                assignment=effect.assignment,
            )
        )

    coordinator.ask(request.group_id, lambda groups, now_ms: groups.sync(sync, answer, now_ms))
