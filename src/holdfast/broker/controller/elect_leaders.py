"""Leader elections that an administrator requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.model import NO_BROKER, ErrorCode, PartitionState, TopicPartition

if TYPE_CHECKING:
    from holdfast.broker.controller.service import ControllerService

PREFERRED: Final = 0
UNCLEAN: Final = 1


class Elected(NamedTuple):
    """The result of one election."""

    partition: TopicPartition
    error: ErrorCode
    message: str | None = None


async def elect(
    service: ControllerService,
    partitions: tuple[TopicPartition, ...],
    election_type: int,
    timeout_s: float,
) -> list[Elected]:
    """Elect where that is needed and possible; returns when the store has the new states."""
    known = tuple(one for one in partitions if service.knows(one))
    await service.settled(known, timeout_s)
    results: dict[TopicPartition, Elected] = {}
    begun: list[TopicPartition] = []
    for partition in partitions:
        state = service.core.partitions.get(partition)
        if state is None:
            results[partition] = _unknown(service, partition)
        elif is_needless(state, election_type):
            results[partition] = Elected(
                partition,
                ErrorCode.ELECTION_NOT_NEEDED,
                "Leader election not needed for topic partition.",
            )
        else:
            service.run(service.core.elect(partition, unclean=election_type == UNCLEAN))
            begun.append(partition)
    in_time = await service.settled(begun, timeout_s)
    for partition in begun:
        results[partition] = _result(service, partition, election_type, in_time=in_time)
    return [results[one] for one in partitions]


def is_needless(state: PartitionState, election_type: int) -> bool:
    """Whether an election would change nothing; one over all partitions leaves this one out."""
    if election_type == UNCLEAN:
        return state.leader != NO_BROKER
    return state.leader == state.replicas[0]


def _result(
    service: ControllerService, partition: TopicPartition, election_type: int, *, in_time: bool
) -> Elected:
    state = service.core.partitions.get(partition)
    if state is None:
        return _unknown(service, partition)
    if is_needless(state, election_type):
        return Elected(partition, ErrorCode.NONE)
    if not in_time:
        return Elected(partition, ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")
    if election_type == UNCLEAN:
        return Elected(
            partition,
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            "Eligible topic partition leaders are not available.",
        )
    return Elected(
        partition,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        "The preferred leader was not available.",
    )


def _unknown(service: ControllerService, partition: TopicPartition) -> Elected:
    what = f"No such partition as {partition.topic}-{partition.partition}"
    if partition.topic not in service.topics:
        what = f"No such topic as {partition.topic}"
    return Elected(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
