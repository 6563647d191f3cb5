"""DescribeGroups: the state of groups, and each member's subscription and assignment."""

from __future__ import annotations

from typing import Final

from holdfast.broker.authorized_operations import NOT_ASKED, OF_GROUP
from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.network.calls import Call
from holdfast.core.groups import GroupView
from holdfast.model import ErrorCode
from holdfast.protocol.messages.group_admin import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

NAMES_MISSING_GROUP_FROM: Final = 6


def handle(coordinator: GroupCoordinator, call: Call) -> None:
    """Answers immediately."""
    request: DescribeGroupsRequest = call.request
    operations = OF_GROUP if request.include_authorized_operations else NOT_ASKED
    described = [
        _described(coordinator.look(group_id).describe(group_id), operations, call.version)
        for group_id in request.groups
    ]
    call.answer(DescribeGroupsResponse(groups=described))


def _described(view: GroupView, operations: int, version: int) -> DescribedGroup:
    error, message = view.error, None
    if error is ErrorCode.GROUP_ID_NOT_FOUND:
        if version < NAMES_MISSING_GROUP_FROM:
            error = ErrorCode.NONE
        else:
            message = f"Group {view.group_id} not found."
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=view.group_id,
        group_state="" if error and message is None else view.state.value,
        protocol_type=view.protocol_type,
        protocol_data=view.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                member_metadata=each.metadata,
                member_assignment=each.assignment,
            )
            for each in view.members
        ],
        authorized_operations=NOT_ASKED if error else operations,
    )
