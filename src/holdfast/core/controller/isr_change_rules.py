"""AlterPartition: whether the controller accepts a leader's proposal of another ISR."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.controller.leader_election import Brokers
from holdfast.core.replica.effects import ProposeIsr
from holdfast.core.rules import Guards
from holdfast.model import NO_BROKER_EPOCH, BrokerId, ErrorCode, PartitionState


class Alter(NamedTuple):
    """A queued proposal."""

    leader: BrokerId
    proposal: ProposeIsr
    waiter: object


class Pending(NamedTuple):
    """A write the store has not answered yet."""

    state: PartitionState
    rule: str
    answers: tuple[object, ...]
    error: ErrorCode


def judge(
    state: PartitionState,
    brokers: Brokers,
    guards: Guards,
    leader: BrokerId,
    proposal: ProposeIsr,
) -> ErrorCode:
    """Check a proposal's partition epoch, and each member's broker epoch; NONE accepts it."""
    if leader != state.leader or proposal.leader_epoch != state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    stale = proposal.partition_epoch != state.partition_epoch
    if stale and guards.isr_change_partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    for member in proposal.isr:
        if member.broker not in state.replicas:
            return ErrorCode.INVALID_REQUEST
        known = brokers.get(member.broker)
        # KIP-841. Nothing would be lost: a member is known by the broker epoch it joined in, so it
        # is no candidate after an unclean restart (KIP-966). But writes would wait for a broker
        # that is gone or about to go, until replica.lag.time.max.ms is over.
        if known is None or (known.shutting_down and member.broker not in state.isr):
            return ErrorCode.INELIGIBLE_REPLICA
        # A member need not have fetched in this leader epoch; a joiner has, so its epoch is known.
        must_name = member.broker not in state.isr and guards.joiner_position_known
        unnamed = member.broker_epoch == NO_BROKER_EPOCH and not must_name
        same_incarnation = unnamed or member.broker_epoch == known.broker_epoch
        if guards.joiner_broker_epoch and not same_incarnation:
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
