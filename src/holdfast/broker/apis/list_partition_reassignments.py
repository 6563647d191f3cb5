"""ListPartitionReassignments: the reassignments in progress."""

from __future__ import annotations

from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.network.calls import Call
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.messages.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(relay: ControllerRelay, call: Call) -> None:
    """All reassignments, or those of some partitions."""
    request: ListPartitionReassignmentsRequest = call.request

    def refuse(error: ErrorCode, message: str) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse(
            error_code=error, error_message=message, topics=[]
        )

    async def work(service: ControllerService) -> ListPartitionReassignmentsResponse:
        topics: dict[str, list[OngoingPartitionReassignment]] = {}
        for partition in _wanted(service, request):
            state = service.core.partitions.get(partition)
            if state is not None and (state.adding or state.removing):
                topics.setdefault(partition.topic, []).append(
                    OngoingPartitionReassignment(
                        partition_index=partition.partition,
                        replicas=state.replicas,
                        adding_replicas=state.adding,
                        removing_replicas=state.removing,
                    )
                )
        found = [
            OngoingTopicReassignment(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
        return ListPartitionReassignmentsResponse(error_code=0, error_message=None, topics=found)

    relay.answer(call, work, refuse)


def _wanted(
    service: ControllerService, request: ListPartitionReassignmentsRequest
) -> list[TopicPartition]:
    if request.topics is None:
        return list(service.core.partitions)
    return [
        TopicPartition(topic.name, number)
        for topic in request.topics
        for number in topic.partition_indexes
    ]
