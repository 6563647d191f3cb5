"""CreateTopics: answers when the leaders of the new partitions have received their roles."""

from __future__ import annotations

from collections import Counter

from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.controller.topic_validation import check_count
from holdfast.broker.controller.topics import PlannedTopic
from holdfast.broker.errors import RefusedError
from holdfast.broker.network.calls import Call
from holdfast.broker.settings import TopicConfigs, describe_topic
from holdfast.model import ErrorCode
from holdfast.protocol.messages.topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def handle(relay: ControllerRelay, call: Call) -> None:
    """Create topics, or (validate_only) check whether that is possible."""
    request: CreateTopicsRequest = call.request

    def refuse(error: ErrorCode, message: str) -> CreateTopicsResponse:
        results = [_failed(topic.name, error, message) for topic in request.topics]
        return CreateTopicsResponse(topics=results)

    async def work(service: ControllerService) -> CreateTopicsResponse:
        return await _create(service, request)

    relay.answer(call, work, refuse)


def _failed(name: str, error: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error, error_message=message, configs=None)


async def _create(service: ControllerService, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Each topic succeeds or fails alone."""
    cluster = await service.admin.cluster()
    named = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatableTopicResult] = {}
    created: list[PlannedTopic] = []
    count = 0
    for topic in request.topics:
        try:
            if named[topic.name] > 1:
                raise RefusedError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            planned = service.admin.plan(topic, cluster)
            check_count(count + len(planned.assignment))
            count += len(planned.assignment)
            result = _result(service, planned)
            if not request.validate_only:
                await service.admin.create(planned)
                created.append(planned)
                result.topic_id = planned.topic_id
        except RefusedError as error:
            result = _failed(topic.name, error.code, error.message)
        results[topic.name] = result
    partitions = [one for planned in created for one in planned.partitions]
    if not await service.admin.until_delivered(partitions, request.timeout_ms / 1000):
        for planned in created:
            results[planned.name] = _failed(
                planned.name, ErrorCode.REQUEST_TIMED_OUT, "The request timed out."
            )
    return CreateTopicsResponse(topics=list(results.values()))


def _result(service: ControllerService, planned: PlannedTopic) -> CreatableTopicResult:
    configs = TopicConfigs(planned.configs, service.host.configs.layers)
    return CreatableTopicResult(
        name=planned.name,
        error_code=0,
        error_message=None,
        num_partitions=len(planned.assignment),
        replication_factor=len(planned.assignment[0]),
        configs=[
            CreatableTopicConfigs(
                name=one.name,
                value=one.value,
                read_only=one.read_only,
                config_source=one.source,
                is_sensitive=one.is_sensitive,
            )
            for one in describe_topic(configs)
        ],
    )
