"""Reassignments that an administrator requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.controller.topic_validation import check_replicas
from holdfast.broker.errors import RefusedError
from holdfast.model import BrokerId, ErrorCode, PartitionState, TopicPartition

if TYPE_CHECKING:
    from holdfast.broker.controller.service import ControllerService


async def reassign(
    service: ControllerService,
    partition: TopicPartition,
    target: tuple[BrokerId, ...] | None,
    *,
    keeps_count: bool,
    timeout_s: float,
) -> None:
    """Start the reassignment of one partition, or (None) cancel it; RefusedError."""
    if not service.knows(partition):
        raise RefusedError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {partition.topic}:{partition.partition}.",
        )
    if target is not None:
        cluster = await service.admin.cluster()
        check_replicas(target, cluster.known)
    # At most two rounds unless leaders keep changing their ISR: then the timeout ends it.
    until_s = service.host.loop.time() + timeout_s
    wanted: tuple[BrokerId, ...] | None = None
    while await service.settled([partition], until_s - service.host.loop.time()):
        state = service.core.partitions.get(partition)
        if state is None:
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic was deleted.")
        if wanted is None:
            wanted = _target(state, target, keeps_count=keeps_count)
        if _is_on_its_way(state, wanted):
            return
        service.run(service.core.reassign(partition, wanted))
        if service.is_over:
            break
    raise RefusedError(ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")


def _target(
    state: PartitionState, target: tuple[BrokerId, ...] | None, *, keeps_count: bool
) -> tuple[BrokerId, ...]:
    before = tuple(one for one in state.replicas if one not in state.adding)
    if target is None:
        if not (state.adding or state.removing):
            raise RefusedError(
                ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
            )
        return before
    if keeps_count and len(target) != len(before):
        raise RefusedError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(before)} to {len(target)}",
        )
    return target


def _is_on_its_way(state: PartitionState, wanted: tuple[BrokerId, ...]) -> bool:
    """Whether the stored state is the requested reassignment, in progress or done."""
    return tuple(one for one in state.replicas if one not in state.removing) == wanted
