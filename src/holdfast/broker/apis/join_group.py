"""JoinGroup: joins a group, or rejoins for the next generation. Waits for the other members."""

from __future__ import annotations

from functools import partial
from typing import Final

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.network.calls import Call
from holdfast.core.groups import AnswerJoin, Join, MemberProtocol
from holdfast.protocol.messages.groups import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

MEMBER_ID_REQUIRED_FROM: Final = 4
NULL_PROTOCOL_FROM: Final = 7
SKIPS_ASSIGNMENT_FROM: Final = 9


def handle(coordinator: GroupCoordinator, call: Call) -> None:
    """Answers when the rebalance is complete."""
    request: JoinGroupRequest = call.request
    client_id = call.client_id or ""
    join = Join(
        group_id=request.group_id,
        member_id=request.member_id,
        new_member_id=coordinator.new_member_id(request.group_instance_id or client_id),
        client_id=client_id,
        client_host=f"/{call.connection.host}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        # Copies, because the member keeps them longer than the frame exists.
        protocols=tuple(
            MemberProtocol(each.name, bytes(each.metadata)) for each in request.protocols
        ),
        group_instance_id=request.group_instance_id,
        requires_member_id=call.version >= MEMBER_ID_REQUIRED_FROM,
        may_skip_assignment=call.version >= SKIPS_ASSIGNMENT_FROM,
    )
    answer = partial(_answer, call)
    coordinator.ask(request.group_id, lambda groups, now_ms: groups.join(join, answer, now_ms))


def _answer(call: Call, effect: AnswerJoin) -> None:
    answer = effect.answer
    name = answer.protocol_name
    if name is None and call.version < NULL_PROTOCOL_FROM:
        name = ""
    members = [
        JoinGroupResponseMember(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            metadata=each.metadata,
        )
        for each in answer.members
    ]
    call.answer(
        JoinGroupResponse(
            error_code=answer.error,
            generation_id=answer.generation,
            protocol_type=answer.protocol_type,
            protocol_name=name,
            leader=answer.leader,
            skip_assignment=answer.skip_assignment,
            member_id=answer.member_id,
            members=members,
        )
    )
