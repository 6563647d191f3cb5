"""ElectLeaders: elects the preferred leader, or any replica of a partition without a leader."""

from __future__ import annotations

from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.elect_leaders import (
    PREFERRED,
    UNCLEAN,
    Elected,
    elect,
    is_needless,
)
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.network.calls import Call
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.messages.reassignments import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)


def handle(relay: ControllerRelay, call: Call) -> None:
    """Elect leaders for some partitions, or wherever it is needed."""
    request: ElectLeadersRequest = call.request
    named = tuple(
        dict.fromkeys(
            TopicPartition(topic.topic, number)
            for topic in request.topic_partitions or ()
            for number in topic.partitions
        )
    )

    def refuse(error: ErrorCode, message: str) -> ElectLeadersResponse:
        return _response([Elected(one, error, message) for one in named], error, call.version)

    async def work(service: ControllerService) -> ElectLeadersResponse:
        if request.election_type not in (PREFERRED, UNCLEAN):
            return refuse(
                ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
            )
        wanted = named
        if request.topic_partitions is None:
            wanted = tuple(
                one
                for one, state in service.core.partitions.items()
                if not is_needless(state, request.election_type)
            )
        timeout_s = request.timeout_ms / 1000
        results = await elect(service, wanted, request.election_type, timeout_s)
        await service.admin.until_delivered(
            [one.partition for one in results if not one.error], timeout_s
        )
        return _response(results, ErrorCode.NONE, call.version)

    relay.answer(call, work, refuse)


def _response(results: list[Elected], error: ErrorCode, version: int) -> ElectLeadersResponse:
    topics: dict[str, list[ElectLeadersPartitionResult]] = {}
    for one in results:
        topics.setdefault(one.partition.topic, []).append(
            ElectLeadersPartitionResult(
                partition_id=one.partition.partition,
                error_code=one.error,
                error_message=one.message,
            )
        )
    return ElectLeadersResponse(
        error_code=error if version >= 1 else 0,
        replica_election_results=[
            ReplicaElectionResult(topic=name, partition_result=found)
            for name, found in topics.items()
        ],
    )
