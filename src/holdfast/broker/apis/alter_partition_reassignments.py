"""AlterPartitionReassignments: moves replicas to other brokers, or cancels a move."""

from __future__ import annotations

from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.reassignment import reassign
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.errors import RefusedError
from holdfast.broker.network.calls import Call
from holdfast.model import BrokerId, ErrorCode, TopicPartition
from holdfast.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(relay: ControllerRelay, call: Call) -> None:
    """Start reassignments; answers when the store has them, not when they are done."""
    request: AlterPartitionReassignmentsRequest = call.request

    def refuse(error: ErrorCode, message: str) -> AlterPartitionReassignmentsResponse:
        return AlterPartitionReassignmentsResponse(
            error_code=error, error_message=message, responses=[]
        )

    async def work(service: ControllerService) -> AlterPartitionReassignmentsResponse:
        responses = [
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    await _reassign(service, topic.name, partition, request)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_code=0,
            error_message=None,
            responses=responses,
        )

    relay.answer(call, work, refuse)


async def _reassign(
    service: ControllerService,
    topic: str,
    asked: ReassignablePartition,
    request: AlterPartitionReassignmentsRequest,
) -> ReassignablePartitionResponse:
    target = None if asked.replicas is None else tuple(map(BrokerId, asked.replicas))
    error, message = ErrorCode.NONE, None
    try:
        await reassign(
            service,
            TopicPartition(topic, asked.partition_index),
            target,
            keeps_count=not request.allow_replication_factor_change,
            timeout_s=request.timeout_ms / 1000,
        )
    except RefusedError as refused:
        error, message = refused.code, refused.message
    return ReassignablePartitionResponse(
        partition_index=asked.partition_index, error_code=error, error_message=message
    )
