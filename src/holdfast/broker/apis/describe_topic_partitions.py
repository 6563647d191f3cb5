"""DescribeTopicPartitions: topics page by page, with the eligible leader replicas (KIP-966).

Only the controller has the eligible leader replicas, so the controller answers.
"""

from __future__ import annotations

from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.authorized_operations import OF_TOPIC
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.controller.topic_validation import check_name
from holdfast.broker.errors import RefusedError
from holdfast.broker.metadata.topic_names import INTERNAL_TOPICS
from holdfast.broker.network.calls import Call
from holdfast.model import NO_BROKER, ErrorCode, TopicPartition
from holdfast.protocol.codec.types import ZERO_UUID
from holdfast.protocol.messages.metadata import (
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(relay: ControllerRelay, call: Call) -> None:
    """One page, in the order of names and numbers."""
    request: DescribeTopicPartitionsRequest = call.request

    def refuse(error: ErrorCode, _: str) -> DescribeTopicPartitionsResponse:
        topics = [_unknown(topic.name, error) for topic in request.topics]
        return DescribeTopicPartitionsResponse(topics=topics)

    async def work(service: ControllerService) -> DescribeTopicPartitionsResponse:
        return _page(service, request)

    relay.answer(call, work, refuse)


def _page(
    service: ControllerService, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    names = sorted({topic.name for topic in request.topics} or service.topics)
    most = service.host.configs.settings.max_request_partition_size_limit
    left = min(max(request.response_partition_limit, 1), most)
    cursor = request.cursor
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        first = 0
        if cursor is not None and name < cursor.topic_name:
            continue
        if cursor is not None and name == cursor.topic_name:
            first = cursor.partition_index
        topic = service.topics.get(name)
        if topic is None:
            topics.append(_unknown(name, _why_not(name)))
            continue
        numbers = [number for number in topic.replicas if number >= first]
        if not left:
            following = DescribeTopicPartitionsCursor(topic_name=name, partition_index=first)
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=following)
        shown = [_partition(service, TopicPartition(name, one)) for one in numbers[:left]]
        topics.append(
            DescribeTopicPartitionsResponseTopic(
                error_code=0,
                name=name,
                topic_id=topic.topic_id,
                is_internal=name in INTERNAL_TOPICS,
                partitions=[one for one in shown if one is not None],
                topic_authorized_operations=OF_TOPIC,
            )
        )
        if len(numbers) > left:
            following = DescribeTopicPartitionsCursor(
                topic_name=name, partition_index=numbers[left]
            )
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=following)
        left -= len(numbers)
    return DescribeTopicPartitionsResponse(topics=topics)


def _why_not(name: str) -> ErrorCode:
    try:
        check_name(name)
    except RefusedError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _unknown(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, topic_id=ZERO_UUID, partitions=[]
    )


def _partition(
    service: ControllerService, partition: TopicPartition
) -> DescribeTopicPartitionsResponsePartition | None:
    if not service.knows(partition):
        return None
    state = service.core.partitions[partition]
    has_leader = state.leader != NO_BROKER
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.partition,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=state.eligible_leaders,
        last_known_elr=state.last_known_eligible,
        offline_replicas=service.offline_replicas(partition),
    )
