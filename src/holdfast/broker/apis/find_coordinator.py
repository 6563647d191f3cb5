"""FindCoordinator: the broker that coordinates a group; from version 4, many groups (KIP-699)."""

from __future__ import annotations

from typing import Final

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.network.calls import Call
from holdfast.model import ErrorCode
from holdfast.protocol.messages.groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP: Final = 0
TRANSACTION: Final = 1
BATCHED_FROM: Final = 4


def handle(coordinator: GroupCoordinator, call: Call) -> None:
    """One coordinator for each key."""
    request: FindCoordinatorRequest = call.request
    if call.version >= BATCHED_FROM:
        found = [_find(coordinator, request.key_type, key) for key in request.coordinator_keys]
        call.answer(FindCoordinatorResponse(coordinators=found))
        return
    one = _find(coordinator, request.key_type, request.key)
    call.answer(
        FindCoordinatorResponse(
            error_code=one.error_code,
            error_message=one.error_message,
            node_id=one.node_id,
            host=one.host,
            port=one.port,
        )
    )


def _find(coordinator: GroupCoordinator, key_type: int, key: str) -> Coordinator:
    if key_type == TRANSACTION:
        # The only error after which every client gives up instead of retrying for ever.
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return _nobody(key, error, "This broker does not support transactions.")
    if key_type != GROUP:
        error = ErrorCode.INVALID_REQUEST
        return _nobody(key, error, f"There are no coordinators of type {key_type}.")
    known = coordinator.coordinator_of(key)
    if known is None:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return _nobody(key, error, "The coordinator is not available.")
    return Coordinator(
        key=key,
        node_id=known.id,
        host=known.endpoint.host,
        port=known.endpoint.port,
        error_code=ErrorCode.NONE,
        error_message=None,
    )


def _nobody(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message
    )
