"""LeaveGroup: a member leaves, or an administrator removes several (KIP-345)."""

from __future__ import annotations

from functools import partial
from typing import Final

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.network.calls import Call
from holdfast.core.groups import AnswerLeave, Leaver
from holdfast.protocol.messages.groups import (
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
)

SEVERAL_FROM: Final = 3


def handle(coordinator: GroupCoordinator, call: Call) -> None:
    """Remove members; the rest of the group rebalances."""
    request: LeaveGroupRequest = call.request
    leavers = [Leaver(each.member_id, each.group_instance_id) for each in request.members]
    if call.version < SEVERAL_FROM:
        leavers = [Leaver(request.member_id)]
    answer = partial(_answer, call)
    coordinator.ask(
        request.group_id,
        lambda groups, now_ms: groups.leave(request.group_id, leavers, answer, now_ms),
    )


def _answer(call: Call, effect: AnswerLeave) -> None:
    if call.version < SEVERAL_FROM:
        error = effect.error or next((each.error for each in effect.members), effect.error)
        call.answer(LeaveGroupResponse(error_code=error))
        return
    members = [
        LeaveGroupMemberResponse(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            error_code=each.error,
        )
        for each in effect.members
    ]
    call.answer(LeaveGroupResponse(error_code=effect.error, members=members))
