"""DeleteGroups: deletes groups that have no members, with their committed offsets."""

from __future__ import annotations

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.network.calls import Call
from holdfast.core.groups import AnswerDelete, Effects, Groups
from holdfast.model import ErrorCode
from holdfast.protocol.messages.group_admin import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(coordinator: GroupCoordinator, call: Call) -> None:
    """Answers when the tombstones of all groups are committed."""
    request: DeleteGroupsRequest = call.request
    _Deletion(coordinator, call, request).begin()


class _Deletion:
    """One request, and its groups without a result."""

    def __init__(
        self, coordinator: GroupCoordinator, call: Call, request: DeleteGroupsRequest
    ) -> None:
        self._coordinator = coordinator
        self._call = call
        # A repeated name is one group.
        self._errors: dict[str, ErrorCode | None] = dict.fromkeys(request.groups_names)

    def begin(self) -> None:
        for group_id in tuple(self._errors):
            self._ask(group_id)
        if not self._errors:
            self._maybe_answer()

    def _ask(self, group_id: str) -> None:
        def deleted(effect: AnswerDelete) -> None:
            self._errors[group_id] = effect.error
            self._maybe_answer()

        def delete(groups: Groups, now_ms: int) -> Effects:
            return groups.delete_group(group_id, deleted, now_ms)

        self._coordinator.ask(group_id, delete)

    def _maybe_answer(self) -> None:
        results = [
            DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id, error in self._errors.items()
            if error is not None
        ]
        if len(results) == len(self._errors):
            self._call.answer(DeleteGroupsResponse(results=results))
