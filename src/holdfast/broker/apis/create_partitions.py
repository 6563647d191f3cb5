"""CreatePartitions: adds partitions to existing topics."""

from __future__ import annotations

from collections import Counter

from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.controller.topic_validation import check_count
from holdfast.broker.errors import RefusedError
from holdfast.broker.network.calls import Call
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


def handle(relay: ControllerRelay, call: Call) -> None:
    """Add partitions, or (validate_only) check whether that is possible."""
    request: CreatePartitionsRequest = call.request

    def refuse(error: ErrorCode, message: str) -> CreatePartitionsResponse:
        return CreatePartitionsResponse(
            results=[_result(topic.name, error, message) for topic in request.topics]
        )

    async def work(service: ControllerService) -> CreatePartitionsResponse:
        return await _grow(service, request)

    relay.answer(call, work, refuse)


def _result(
    name: str, error: ErrorCode = ErrorCode.NONE, message: str | None = None
) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=error, error_message=message)


async def _grow(
    service: ControllerService, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    cluster = await service.admin.cluster()
    named = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    added: list[TopicPartition] = []
    planned = 0
    for topic in request.topics:
        try:
            if named[topic.name] > 1:
                raise RefusedError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            assignment = service.admin.plan_growth(topic, cluster)
            check_count(planned + len(assignment))
            planned += len(assignment)
            if not request.validate_only:
                await service.admin.grow(topic.name, assignment)
                added += [TopicPartition(topic.name, number) for number in assignment]
            results[topic.name] = _result(topic.name)
        except RefusedError as error:
            results[topic.name] = _result(topic.name, error.code, error.message)
    if not await service.admin.until_delivered(added, request.timeout_ms / 1000):
        for one in added:
            results[one.topic] = _result(
                one.topic, ErrorCode.REQUEST_TIMED_OUT, "The request timed out."
            )
    return CreatePartitionsResponse(results=list(results.values()))
