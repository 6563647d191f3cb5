"""Reassignment: adds the new replicas first, and removes the old ones once those are in sync.

In between, both old and new replicas are in the replica set, so the partition never has fewer
copies than its replication factor.
"""

from __future__ import annotations

from holdfast.core.controller.leader_election import (
    Brokers,
    Choice,
    choose_leader,
    lead_by,
    minimum_isr,
    with_isr,
)
from holdfast.core.rules import Rules, Settings
from holdfast.model import BrokerId, PartitionState


def begin(state: PartitionState, target: tuple[BrokerId, ...]) -> PartitionState:
    """The state in which the target brokers are replicas too.

    It replaces a reassignment in progress: replicas that were being added and are not in the new
    target are removed. To cancel a reassignment, reassign to the replicas from before it.
    """
    before = tuple(one for one in state.replicas if one not in state.adding)
    adding = tuple(one for one in target if one not in before)
    removing = tuple(one for one in state.replicas if one not in target)
    return state._replace(replicas=(*target, *removing), adding=adding, removing=removing)


def maybe_complete(
    state: PartitionState, brokers: Brokers, settings: Settings, rules: Rules
) -> PartitionState:
    """End a reassignment once every added replica is in sync and enough remain."""
    if not (state.adding or state.removing):
        return state
    isr = tuple(one for one in state.isr if one not in state.removing)
    replicas = tuple(one for one in state.replicas if one not in state.removing)
    done = state._replace(replicas=replicas, adding=(), removing=())
    if any(one not in isr for one in state.adding) or len(isr) < minimum_isr(done, settings):
        return state
    done = with_isr(done, isr, brokers, settings, rules)
    choice: Choice | None = Choice(state.leader, "isr")
    if state.leader not in isr:
        # A planned move is never an unclean election: without a clean candidate it waits.
        choice = choose_leader(done, brokers, Settings())
    return lead_by(done, choice, brokers, settings, rules) if choice else state
