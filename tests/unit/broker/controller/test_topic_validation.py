"""Validation of requests about topics, with Kafka's error codes and messages."""

from __future__ import annotations

import pytest

from holdfast.broker.controller.topic_validation import (
    AssignmentStart,
    Cluster,
    check_is_new,
    check_name,
    replicas_of_new,
)
from holdfast.broker.errors import RefusedError
from holdfast.model import BrokerId, ErrorCode
from holdfast.protocol.messages.topics import CreatableReplicaAssignment, CreatableTopic

LIVE: dict[BrokerId, str | None] = {BrokerId(1): None, BrokerId(2): None, BrokerId(3): None}
CLUSTER = Cluster(LIVE, [*LIVE, BrokerId(4)])


def topic(
    partitions: int = -1, replicas: int = -1, given: dict[int, list[int]] | None = None
) -> CreatableTopic:
    return CreatableTopic(
        name="t",
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (given or {}).items()
        ],
        configs=[],
    )


def code_of(asked: CreatableTopic, cluster: Cluster = CLUSTER) -> ErrorCode:
    with pytest.raises(RefusedError) as refused:
        replicas_of_new(asked, cluster, (1, 3), AssignmentStart(0, 0))
    return refused.value.code


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ü", "x" * 250])
def test_a_name_that_cannot_be_a_directory_is_refused(name: str) -> None:
    with pytest.raises(RefusedError, match="Topic name is invalid: ") as refused:
        check_name(name)
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249])
def test_other_names_are_accepted(name: str) -> None:
    check_name(name)


def test_a_name_is_unique_and_dots_equal_underscores() -> None:
    check_is_new("c", ["a.b"])
    with pytest.raises(RefusedError) as refused:
        check_is_new("a.b", ["a.b"])
    assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(RefusedError, match=r"collides with existing topic: a\.b") as refused:
        check_is_new("a_b", ["a.b"])
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_defaults_stand_in_for_minus_one() -> None:
    assigned = replicas_of_new(topic(), CLUSTER, (2, 3), AssignmentStart(5, 7))
    assert [len(replicas) for replicas in assigned.values()] == [3, 3]


@pytest.mark.parametrize(
    ("partitions", "replicas", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (10_001, 1, ErrorCode.POLICY_VIOLATION),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 4, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_impossible_numbers_are_refused(partitions: int, replicas: int, code: ErrorCode) -> None:
    assert code_of(topic(partitions, replicas)) is code


def test_without_a_live_broker_nothing_is_created() -> None:
    nobody = Cluster({}, [BrokerId(1)])
    assert code_of(topic(1, 1), nobody) is ErrorCode.INVALID_REPLICATION_FACTOR
    given = topic(given={0: [1]})
    assert code_of(given, nobody) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    "given",
    [
        {0: []},
        {0: [1, 1]},
        {0: [9]},
        {1: [1]},
        {0: [1], 2: [1]},
        {0: [1], 1: [1, 2]},
        {0: [4]},
    ],
)
def test_an_invalid_assignment_is_refused(given: dict[int, list[int]]) -> None:
    assert code_of(topic(given=given)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_an_assignment_excludes_numbers() -> None:
    assert code_of(topic(3, -1, {0: [1]})) is ErrorCode.INVALID_REQUEST
    assert code_of(topic(-1, 1, {0: [1]})) is ErrorCode.INVALID_REQUEST


def test_a_broker_that_is_down_may_be_named_beside_one_that_is_up() -> None:
    assigned = replicas_of_new(topic(given={0: [4, 1]}), CLUSTER, (1, 1), AssignmentStart(0, 0))
    assert assigned == {0: (4, 1)}
