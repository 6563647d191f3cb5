"""Consumer groups: list, describe with members and lag, delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import ConsumerGroupDescription, OffsetSpec  # type: ignore[attr-defined]

from holdfast.cluster.admin.connection import REQUEST_S, Connection
from holdfast.cluster.admin.errors import RefusedError, answer, answers

Place = tuple[str, int]

EARLIEST: Final[OffsetSpec] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Final[OffsetSpec] = OffsetSpec.latest()  # type: ignore[no-untyped-call]


def list_groups(connection: Connection) -> list[dict[str, Any]]:
    """One row for each group, sorted by name."""
    future = connection.admin.list_consumer_groups(request_timeout=REQUEST_S)
    found = answer(future, "list groups")
    if found.errors:
        raise RefusedError("; ".join(f"list groups: {error}" for error in found.errors))
    return [
        {
            "group": one.group_id,
            "state": one.state.name,
            "type": one.type.name,
            "is_simple": one.is_simple_consumer_group,
        }
        for one in sorted(found.valid, key=lambda one: one.group_id)
    ]


def describe_groups(connection: Connection, names: Sequence[str]) -> list[dict[str, Any]]:
    """Members, committed offsets and lag; of all groups if none is named."""
    wanted = list(dict.fromkeys(names)) or [one["group"] for one in list_groups(connection)]
    return [_described(connection, name) for name in wanted]


def state_of(connection: Connection, group: str) -> ConsumerGroupDescription:
    """RefusedError if there is no such group."""
    futures = connection.admin.describe_consumer_groups([group], request_timeout=REQUEST_S)
    what = f"describe group {group}"
    found: ConsumerGroupDescription = answer(futures[group], what)
    if found.state == ConsumerGroupState.DEAD:  # how brokers before Kafka 4 say it
        raise RefusedError(f"{what}: there is no such group")
    return found


def committed_of(connection: Connection, group: str) -> dict[Place, int]:
    """Committed offsets by partition."""
    request = ConsumerGroupTopicPartitions(group)
    futures = connection.admin.list_consumer_group_offsets([request], request_timeout=REQUEST_S)
    found = answer(futures[group], f"offsets of group {group}")
    return {
        (one.topic, one.partition): one.offset
        for one in found.topic_partitions or ()
        if one.offset >= 0
    }


def offsets_at(
    connection: Connection, places: Iterable[Place], spec: OffsetSpec
) -> dict[Place, int]:
    """Offsets of partitions. A deleted topic's are missing."""
    existing = connection.metadata().topics
    asked = {
        TopicPartition(topic, partition): spec
        for topic, partition in places
        if topic in existing and partition in existing[topic].partitions
    }
    if not asked:
        return {}
    futures = connection.admin.list_offsets(asked, request_timeout=REQUEST_S)
    found = answers(futures, lambda one: f"offsets of {one.topic} [{one.partition}]")
    return {(one.topic, one.partition): result.offset for one, result in found.items()}


def delete_groups(connection: Connection, names: Sequence[str]) -> None:
    """RefusedError names each group that could not be deleted, such as one with members."""
    futures = connection.admin.delete_consumer_groups(list(names), request_timeout=REQUEST_S)
    answers(futures, "delete group {}".format)


def _described(connection: Connection, group: str) -> dict[str, Any]:
    found = state_of(connection, group)
    committed = committed_of(connection, group)
    owners = {
        (one.topic, one.partition): member
        for member in found.members
        for one in member.assignment.topic_partitions
    }
    places = sorted({*committed, *owners})
    ends = offsets_at(connection, places, LATEST)
    return {
        "group": group,
        "state": found.state.name,
        "type": found.type.name,
        "assignor": found.partition_assignor or None,
        "coordinator": found.coordinator.id,
        "members": [
            {
                "member": one.member_id,
                "instance": one.group_instance_id,
                "client": one.client_id,
                "host": one.host,
            }
            for one in found.members
        ],
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                "committed": committed.get((topic, partition)),
                "end": ends.get((topic, partition)),
                "lag": _lag(committed.get((topic, partition)), ends.get((topic, partition))),
                "member": owner.member_id if (owner := owners.get((topic, partition))) else None,
            }
            for topic, partition in places
        ],
    }


def _lag(committed: int | None, end: int | None) -> int | None:
    return None if committed is None or end is None else max(0, end - committed)
