"""DeleteTopics, by name or by id: deletes a topic from the store, then from the brokers."""

from __future__ import annotations

from typing import Final

from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.errors import RefusedError
from holdfast.broker.network.calls import Call
from holdfast.model import ErrorCode
from holdfast.protocol.codec.types import ZERO_UUID
from holdfast.protocol.messages.topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

BY_ID_FROM: Final = 6
DELIVERY_TIMEOUT_S: Final = 1.0
"""How long to wait until the brokers have the deletion; the topic is deleted in any case."""


def handle(relay: ControllerRelay, call: Call) -> None:
    """Delete topics; each may be created again as soon as this is answered."""
    request: DeleteTopicsRequest = call.request
    wanted = list(request.topics)
    if call.version < BY_ID_FROM:
        wanted = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names]

    def refuse(error: ErrorCode, message: str) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(responses=[_failed(one, error, message) for one in wanted])

    async def work(service: ControllerService) -> DeleteTopicsResponse:
        if not service.host.configs.settings.delete_topic_enable:
            is_old = call.version < 3
            error = ErrorCode.INVALID_REQUEST if is_old else ErrorCode.TOPIC_DELETION_DISABLED
            return refuse(error, "Topic deletion is disabled.")
        results = []
        partitions = []
        seen: dict[tuple[str | None, bytes], None] = {}
        for one in wanted:
            key = (one.name, one.topic_id)
            try:
                if key in seen:
                    raise RefusedError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                seen[key] = None
                name = _name_of(service, one)
                topic_id = service.topics[name].topic_id
                partitions += await service.admin.delete(name)
            except RefusedError as error:
                results.append(_failed(one, error.code, error.message))
            else:
                results.append(DeletableTopicResult(name=name, topic_id=topic_id, error_code=0))
        timeout_s = min(request.timeout_ms / 1000, DELIVERY_TIMEOUT_S)
        await service.admin.until_delivered(partitions, timeout_s)
        return DeleteTopicsResponse(responses=results)

    relay.answer(call, work, refuse)


def _failed(wanted: DeleteTopicState, error: ErrorCode, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=wanted.name, topic_id=wanted.topic_id, error_code=error, error_message=message
    )


def _name_of(service: ControllerService, wanted: DeleteTopicState) -> str:
    by_id = wanted.topic_id != ZERO_UUID
    if wanted.name is not None and by_id:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    if wanted.name is None and not by_id:
        raise RefusedError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if wanted.name is None:
        name = service.topic_names.get(wanted.topic_id)
        if name is None:
            raise RefusedError(
                ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
            )
        return name
    if wanted.name not in service.topics:
        raise RefusedError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    return wanted.name
