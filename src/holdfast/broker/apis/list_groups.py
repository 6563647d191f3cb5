"""ListGroups: the groups that this broker coordinates, all or by state and type."""

from __future__ import annotations

from typing import Final

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.network.calls import Call
from holdfast.core.groups import Phase
from holdfast.model import ErrorCode
from holdfast.protocol.messages.group_admin import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

CLASSIC: Final = "classic"


def handle(coordinator: GroupCoordinator, call: Call) -> None:
    """While a partition loads, its groups are missing and the answer has an error."""
    request: ListGroupsRequest = call.request
    states = [state.lower() for state in request.states_filter]
    types = [kind.lower() for kind in request.types_filter]
    error = ErrorCode.NONE
    listed: list[ListedGroup] = []
    for groups in coordinator.states():
        if groups.phase is Phase.LOADING:
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            continue
        if types and CLASSIC not in types:
            continue
        listed += [
            ListedGroup(
                group_id=one.group_id,
                protocol_type=one.protocol_type,
                group_state=one.state.value,
                group_type=CLASSIC,
            )
            for one in groups.list_groups()
            if not states or one.state.value.lower() in states
        ]
    call.answer(ListGroupsResponse(error_code=error, groups=listed))
