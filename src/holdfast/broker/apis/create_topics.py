"""CreateTopics: answers when the leaders of the new partitions have received their roles."""

from __future__ import annotations

from collections import Counter

from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.controller.topic_validation import Cluster, check_count
from holdfast.broker.controller.topics import PlannedTopic
from holdfast.broker.errors import RefusedError
from holdfast.broker.network.calls import Call
from holdfast.broker.settings import TopicConfigs, describe_topic
from holdfast.model import ErrorCode
from holdfast.protocol.messages.topics import (
    CreatableTopic,
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
        return await _Creation(service, request).run()

    relay.answer(call, work, refuse)


def _failed(name: str, error: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error, error_message=message, configs=None)


class _Creation:
    """One request. Each topic succeeds or fails alone."""

    def __init__(self, service: ControllerService, request: CreateTopicsRequest) -> None:
        self._service = service
        self._request = request
        self._created: list[PlannedTopic] = []
        self._partitions = 0
        """Of the topics so far."""

    async def run(self) -> CreateTopicsResponse:
        request = self._request
        timeout_s = request.timeout_ms / 1000
        cluster = await self._service.admin.cluster()
        named = Counter(topic.name for topic in request.topics)
        results: dict[str, CreatableTopicResult] = {}
        for topic in request.topics:
            if named[topic.name] > 1:
                results[topic.name] = _failed(
                    topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."
                )
            else:
                results[topic.name] = await self._create(topic, cluster)
        partitions = [one for planned in self._created for one in planned.partitions]
        if not await self._service.admin.until_delivered(partitions, timeout_s):
            for planned in self._created:
                results[planned.name] = _failed(
                    planned.name, ErrorCode.REQUEST_TIMED_OUT, "The request timed out."
                )
        return CreateTopicsResponse(topics=list(results.values()))

    async def _create(self, topic: CreatableTopic, cluster: Cluster) -> CreatableTopicResult:
        try:
            planned = self._service.admin.plan(topic, cluster)
            check_count(self._partitions + len(planned.assignment))
            self._partitions += len(planned.assignment)
            if not self._request.validate_only:
                await self._service.admin.create(planned)
                self._created.append(planned)
        except RefusedError as error:
            return _failed(topic.name, error.code, error.message)
        return self._result(planned)

    def _result(self, planned: PlannedTopic) -> CreatableTopicResult:
        configs = TopicConfigs(planned.configs, self._service.host.configs.layers)
        result = CreatableTopicResult(
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
        if not self._request.validate_only:
            result.topic_id = planned.topic_id
        return result
