"""Admin calls with the small client: topics, elections, reassignments.

The controller may move during a call, so each call is repeated until a controller answers it. If an
answer was lost, the repeated call may report that there is nothing left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from holdfast.cluster.client.client import Client, KafkaError, UnansweredError, check
from holdfast.cluster.client.retries import retried
from holdfast.model import ErrorCode
from holdfast.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopicPartitions,
    ReassignablePartition,
    ReassignableTopic,
)
from holdfast.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

TIMEOUT_MS: Final = 30_000
BY_NAME: Final = 5
PREFERRED, UNCLEAN = 0, 1
RETRY_S: Final = 60.0


def _carried_out(attempt: Callable[[], None], *, already: ErrorCode) -> None:
    """`already`: the error that a repeated request gets if the first one was carried out."""
    unanswered = False

    def once() -> None:
        nonlocal unanswered
        try:
            attempt()
        except UnansweredError:
            unanswered = True
            raise
        except KafkaError as error:
            if not (unanswered and error.code is already):
                raise

    retried(once, RETRY_S, codes=(ErrorCode.NOT_CONTROLLER,))


def create_topic(
    client: Client,
    topic: str,
    partitions: int = 1,
    replication_factor: int = -1,
    config: Mapping[str, str] | None = None,
    assignment: Mapping[int, Sequence[int]] | None = None,
) -> None:
    """An assignment decides partition count and replication factor. KafkaError if refused."""
    assigned = assignment or {}
    wanted = CreatableTopic(
        name=topic,
        num_partitions=-1 if assigned else partitions,
        replication_factor=-1 if assigned else replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assigned.items()
        ],
        configs=[
            CreatableTopicConfig(name=name, value=value) for name, value in (config or {}).items()
        ],
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)

    def ask() -> None:
        [response] = client.ask_controller(request, CreateTopicsResponse).topics
        check(f"create {topic}", response.error_code, response.error_message)

    _carried_out(ask, already=ErrorCode.TOPIC_ALREADY_EXISTS)


def delete_topic(client: Client, topic: str) -> None:
    """KafkaError if it is refused."""
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=TIMEOUT_MS)

    def ask() -> None:
        [response] = client.ask_controller(request, DeleteTopicsResponse, most=BY_NAME).responses
        check(f"delete {topic}", response.error_code)

    _carried_out(ask, already=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def elect_leader(
    client: Client, topic: str, partition: int, *, unclean: bool, timeout_ms: int = TIMEOUT_MS
) -> None:
    """KafkaError if there is no need, or no candidate."""
    request = ElectLeadersRequest(
        election_type=UNCLEAN if unclean else PREFERRED,
        topic_partitions=[ElectLeadersTopicPartitions(topic=topic, partitions=[partition])],
        timeout_ms=timeout_ms,
    )

    def ask() -> None:
        answer = client.ask_controller(request, ElectLeadersResponse)
        check(f"elect a leader of {topic}-{partition}", answer.error_code)
        for result in answer.replica_election_results:
            for response in result.partition_result:
                what = f"elect a leader of {topic}-{response.partition_id}"
                check(what, response.error_code, response.error_message)

    _carried_out(ask, already=ErrorCode.ELECTION_NOT_NEEDED)


def reassign(client: Client, topic: str, partition: int, replicas: Sequence[int] | None) -> None:
    """Begin a move, or cancel it with None; KafkaError if it is refused."""
    moved = ReassignablePartition(
        partition_index=partition, replicas=None if replicas is None else list(replicas)
    )
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS, topics=[ReassignableTopic(name=topic, partitions=[moved])]
    )
    what = f"reassign {topic}-{partition}"

    def ask() -> None:
        answer = client.ask_controller(request, AlterPartitionReassignmentsResponse)
        check(what, answer.error_code, answer.error_message)
        for topic_response in answer.responses:
            for response in topic_response.partitions:
                check(what, response.error_code, response.error_message)

    _carried_out(ask, already=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
