"""Validates requests about topics, with Kafka's error codes and messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.broker.errors import RefusedError
from holdfast.broker.metadata.topic_names import invalid_name_reason
from holdfast.core.controller.replica_assignment import Racks, assign
from holdfast.model import BrokerId, ErrorCode
from holdfast.protocol.messages.topics import CreatableTopic

MOST_PARTITIONS: Final = 10_000
"""In one request, as in KRaft: more would delay all other requests for too long."""

Assignment = dict[int, tuple[BrokerId, ...]]


class Cluster(NamedTuple):
    """The brokers that replicas may be assigned to."""

    live: Racks
    """Live brokers that are not shutting down."""
    known: Sequence[BrokerId]
    """All brokers that ever registered."""


class AssignmentStart(NamedTuple):
    """Where an assignment starts."""

    start: int
    shift: int


def check_name(name: str) -> None:
    """A topic's name becomes the name of a directory."""
    reason = invalid_name_reason(name)
    if reason:
        raise RefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def check_is_new(name: str, existing: Iterable[str]) -> None:
    """Metrics write '.' as '_', so two names that differ only there cannot both exist."""
    for other in existing:
        if other == name:
            raise RefusedError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if other.replace(".", "_") == name.replace(".", "_"):
            raise RefusedError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )


def replicas_of_new(
    topic: CreatableTopic, cluster: Cluster, defaults: tuple[int, int], rng: AssignmentStart
) -> Assignment:
    """A new topic's replicas, chosen or given; `defaults` for what is -1."""
    if topic.assignments:
        return _given(topic, cluster)
    partitions, replicas = topic.num_partitions, topic.replication_factor
    if partitions == 0 or partitions < -1:
        raise RefusedError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if replicas == 0 or replicas < -1:
        raise RefusedError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    partitions = defaults[0] if partitions == -1 else partitions
    replicas = defaults[1] if replicas == -1 else replicas
    return choose(range(partitions), replicas, cluster, rng)


def choose(
    partitions: Sequence[int], replicas: int, cluster: Cluster, rng: AssignmentStart
) -> Assignment:
    """Replicas on live brokers, spread evenly."""
    check_count(len(partitions))
    live = len(cluster.live)
    if replicas > live:
        reason = (
            f"The target replication factor of {replicas} cannot be reached because only "
            f"{live} broker(s) are registered."
        )
        raise RefusedError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replicas} time(s): {reason}",
        )
    return assign(cluster.live, partitions, replicas, rng.start % live, rng.shift % live)


def check_count(partitions: int) -> None:
    """Limit the number of partitions in one request."""
    if partitions > MOST_PARTITIONS:
        raise RefusedError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def _given(topic: CreatableTopic, cluster: Cluster) -> Assignment:
    for number, word in (
        (topic.num_partitions, "numPartitions"),
        (topic.replication_factor, "replication factor"),
    ):
        if number != -1:
            raise RefusedError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {word} was not set to -1.",
            )
    assigned: Assignment = {}
    for entry in topic.assignments:
        if entry.partition_index in assigned:
            raise _bad_assignment(
                f"Found multiple manual partition assignments for partition {entry.partition_index}"
            )
        assigned[entry.partition_index] = tuple(map(BrokerId, entry.broker_ids))
    if sorted(assigned) != list(range(len(assigned))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
    check_given(assigned, cluster, None)
    return dict(sorted(assigned.items()))


def check_given(
    assigned: Mapping[int, tuple[BrokerId, ...]], cluster: Cluster, replicas: int | None
) -> None:
    """Check an assignment from the request."""
    for partition, brokers in assigned.items():
        check_replicas(brokers, cluster.known)
        if replicas is not None and len(brokers) != replicas:
            raise _bad_assignment(
                f"The manual partition assignment includes a partition with {len(brokers)} "
                "replica(s), but this is not consistent with previous partitions, which have "
                f"{replicas} replica(s)."
            )
        replicas = len(brokers)
        # A partition without a live replica would have no leader.
        if not any(one in cluster.live for one in brokers):
            raise _bad_assignment(
                "All brokers specified in the manual partition assignment for partition "
                f"{partition} are fenced or in controlled shutdown."
            )


def check_replicas(brokers: tuple[BrokerId, ...], known: Iterable[BrokerId]) -> None:
    """One partition's replicas: at least one, no duplicates, all brokers."""
    known = tuple(known)
    if not brokers:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    for place, broker in enumerate(brokers):
        if broker not in known:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {broker}, but no such broker "
                "is registered."
            )
        if broker in brokers[:place]:
            raise _bad_assignment(
                f"The manual partition assignment includes the broker {broker} more than once."
            )


def _bad_assignment(message: str) -> RefusedError:
    return RefusedError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
