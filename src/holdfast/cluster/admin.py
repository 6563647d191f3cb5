"""Admin calls with the small client: topics, elections, reassignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.cluster.client import Client, check
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


def create_topic(
    client: Client,
    topic: str,
    partitions: int = 1,
    replication_factor: int = -1,
    config: Mapping[str, str] | None = None,
    assignment: Mapping[int, Sequence[int]] | None = None,
) -> None:
    """With an assignment the numbers follow from it. KafkaError if it is refused."""
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
    [told] = client.ask_controller(request, CreateTopicsResponse).topics
    check(f"create {topic}", told.error_code, told.error_message)


def delete_topic(client: Client, topic: str) -> None:
    """KafkaError if it is refused."""
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=TIMEOUT_MS)
    [told] = client.ask_controller(request, DeleteTopicsResponse, most=BY_NAME).responses
    check(f"delete {topic}", told.error_code)


def elect_leader(
    client: Client, topic: str, partition: int, *, unclean: bool, timeout_ms: int = TIMEOUT_MS
) -> None:
    """KafkaError if there is no need, or no candidate."""
    request = ElectLeadersRequest(
        election_type=UNCLEAN if unclean else PREFERRED,
        topic_partitions=[ElectLeadersTopicPartitions(topic=topic, partitions=[partition])],
        timeout_ms=timeout_ms,
    )
    answer = client.ask_controller(request, ElectLeadersResponse)
    check(f"elect a leader of {topic}-{partition}", answer.error_code)
    for result in answer.replica_election_results:
        for told in result.partition_result:
            what = f"elect a leader of {topic}-{told.partition_id}"
            check(what, told.error_code, told.error_message)


def reassign(client: Client, topic: str, partition: int, replicas: Sequence[int] | None) -> None:
    """Begin a move, or cancel it with None; KafkaError if it is refused."""
    moved = ReassignablePartition(
        partition_index=partition, replicas=None if replicas is None else list(replicas)
    )
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS, topics=[ReassignableTopic(name=topic, partitions=[moved])]
    )
    answer = client.ask_controller(request, AlterPartitionReassignmentsResponse)
    what = f"reassign {topic}-{partition}"
    check(what, answer.error_code, answer.error_message)
    for topic_told in answer.responses:
        for told in topic_told.partitions:
            check(what, told.error_code, told.error_message)
