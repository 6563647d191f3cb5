"""Leader election: which replicas stay in the ISR, and which one leads.

Pure functions from one partition state to the next.

The order of candidates: the first live replica of the assignment that is in the ISR; else one of
the eligible leaders (KIP-966); else, only if unclean elections are on, any live replica. If all
eligible leaders had an unclean restart, the controller compares their logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.core.controller.broker_registry import Registration
from holdfast.core.rules import CommitRule, Rules, Settings
from holdfast.model import (
    NO_BROKER,
    NO_BROKER_EPOCH,
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    Offset,
    PartitionEpoch,
    PartitionState,
    ReplicaBroker,
)

Brokers = Mapping[BrokerId, Registration]


class LogEnd(NamedTuple):
    """The end of a replica's log; the log with the greater value is the better one."""

    last_epoch: LeaderEpoch
    log_end_offset: Offset


class Choice(NamedTuple):
    """A new leader and the rule that chose it."""

    leader: BrokerId
    rule: str


def next_version(state: PartitionState, **changes: object) -> PartitionState:
    """A changed state, one partition epoch later."""
    version = PartitionEpoch(state.partition_epoch + 1)
    return state._replace(partition_epoch=version, **changes)  # type: ignore[arg-type]


def member_epoch(state: PartitionState, broker: BrokerId) -> BrokerEpoch:
    """The broker epoch in which a broker joined the ISR."""
    for member in state.member_epochs:
        if member.broker == broker:
            return member.broker_epoch
    return NO_BROKER_EPOCH


def minimum_isr(state: PartitionState, settings: Settings) -> int:
    """min.insync.replicas, but never more than there are replicas."""
    return min(settings.min_insync_replicas, len(state.replicas))


def with_isr(
    state: PartitionState,
    isr: tuple[BrokerId, ...],
    brokers: Brokers,
    settings: Settings,
    rules: Rules,
    unclean: tuple[BrokerId, ...] = (),
) -> PartitionState:
    """The state with another ISR, and the eligible leaders that follow from it.

    A replica that leaves an ISR below min.insync.replicas joins the eligible leader replicas
    (KIP-966): the high watermark no longer moves, so the replica holds every committed record.
    `unclean` are members that may have lost records.
    """
    eligible: tuple[BrokerId, ...] = ()
    last_known: tuple[BrokerId, ...] = ()
    if rules.guards.eligible_leaders and len(isr) < minimum_isr(state, settings):
        were = dict.fromkeys((*state.eligible_leaders, *state.isr))
        gone = dict.fromkeys((*state.last_known_eligible, *unclean))
        eligible = tuple(
            one for one in were if one not in isr and one not in gone and one in state.replicas
        )
        last_known = tuple(one for one in gone if one not in isr and one in state.replicas)
    epochs = tuple(ReplicaBroker(one, _joined_in(state, one, brokers)) for one in (*isr, *eligible))
    return state._replace(
        isr=isr,
        eligible_leaders=eligible,
        last_known_eligible=last_known,
        member_epochs=epochs,
    )


def _joined_in(state: PartitionState, broker: BrokerId, brokers: Brokers) -> BrokerEpoch:
    was_member = broker in state.isr or broker in state.eligible_leaders
    if was_member and (known := member_epoch(state, broker)) != NO_BROKER_EPOCH:
        return known
    return brokers[broker].broker_epoch if broker in brokers else NO_BROKER_EPOCH


def settle_members(
    state: PartitionState, brokers: Brokers, settings: Settings, rules: Rules
) -> PartitionState:
    """Take dead brokers, and those that restarted uncleanly, out of the ISR."""
    if rules.commit_rule is CommitRule.MAJORITY:
        return state
    if not rules.guards.eligible_leaders:
        live = tuple(one for one in state.isr if one in brokers)
        # Before KIP-966 the last member stayed: only it was known to have everything.
        return state if live == state.isr or not live else state._replace(isr=live)
    unclean = tuple(
        one
        for one in dict.fromkeys((*state.isr, *state.eligible_leaders))
        if one in brokers and not brokers[one].is_intact(member_epoch(state, one))
    )
    isr = tuple(one for one in state.isr if one in brokers and one not in unclean)
    if isr == state.isr and not unclean:
        return state
    return with_isr(state, isr, brokers, settings, rules, unclean)


def choose_leader(
    state: PartitionState,
    brokers: Brokers,
    settings: Settings,
    *,
    unclean: bool = False,
    avoid: tuple[BrokerId, ...] = (),
) -> Choice | None:
    """The first candidate by the order above, or None."""
    candidates = [
        one
        for one in state.replicas
        if one in brokers and not brokers[one].shutting_down and one not in avoid
    ]
    for members, rule in ((state.isr, "isr"), (state.eligible_leaders, "eligible")):
        for one in candidates:
            if one in members:
                return Choice(one, rule)
    if candidates and (unclean or settings.unclean_leader_election_enable):
        return Choice(candidates[0], "unclean")
    return None


def first_state(
    replicas: tuple[BrokerId, ...], brokers: Brokers, settings: Settings, rules: Rules
) -> PartitionState:
    """A new partition: its live replicas are in sync, the first of them leads."""
    live = tuple(one for one in replicas if one in brokers)
    empty = PartitionState(replicas, (), leader_epoch=LeaderEpoch(-1))
    state = with_isr(empty, live, brokers, settings, rules)
    choice = choose_leader(state, brokers, settings)
    return lead_by(state, choice, brokers, settings, rules) if choice else state


def asked_leader(
    state: PartitionState,
    brokers: Brokers,
    settings: Settings,
    leader: BrokerId | None,
    *,
    unclean: bool,
) -> Choice | None:
    """The leader that an operator's request chooses, or None.

    The preferred leader, a designated member of the ISR, or (unclean) any live replica if the
    partition has no leader.
    """
    if unclean:
        if state.leader != NO_BROKER:
            return None
        return choose_leader(state, brokers, settings, unclean=True)
    wanted = state.replicas[0] if leader is None else leader
    known = brokers.get(wanted)
    if known is None or known.shutting_down or wanted not in state.isr or state.leader == wanted:
        return None
    return Choice(wanted, "preferred" if leader is None else "designated")


def drop_needless_eligible(state: PartitionState, settings: Settings) -> PartitionState:
    """Clear the eligible leaders if the ISR is large enough for the high watermark to move.

    Only a lower min.insync.replicas leads to such a state.
    """
    enough = state.isr and len(state.isr) >= minimum_isr(state, settings)
    if not enough or not (state.eligible_leaders or state.last_known_eligible):
        return state
    members = tuple(one for one in state.member_epochs if one.broker in state.isr)
    return state._replace(eligible_leaders=(), last_known_eligible=(), member_epochs=members)


def adjusted(
    state: PartitionState, brokers: Brokers, settings: Settings, rules: Rules
) -> tuple[PartitionState, str]:
    """The state with ISR and leader adjusted to the live brokers, and the election rule, if any."""
    majority = rules.commit_rule is CommitRule.MAJORITY
    settled = drop_needless_eligible(state, settings)
    settled = settle_members(settled, brokers, settings, rules)
    if leads_on(settled, brokers) and (settled.leader in settled.isr or majority):
        return settled, ""
    choice = None if majority else choose_leader(settled, brokers, settings)
    if choice is None:
        return without_leader(settled), "none"
    return lead_by(settled, choice, brokers, settings, rules), choice.rule


def leads_on(state: PartitionState, brokers: Brokers) -> bool:
    """Whether the leader is live in the broker epoch in which it was elected.

    After a restart it must not lead in the same epoch again: it may have lost records of that
    epoch, and would write others at their offsets.
    """
    known = brokers.get(state.leader)
    elected_in = member_epoch(state, state.leader)
    return known is not None and elected_in in (NO_BROKER_EPOCH, known.broker_epoch)


def lead_by(
    state: PartitionState, choice: Choice, brokers: Brokers, settings: Settings, rules: Rules
) -> PartitionState:
    """The state in which the choice leads, in a new leader epoch and its current broker epoch."""
    state = _lead_by(state, choice, brokers, settings, rules)
    others = tuple(one for one in state.member_epochs if one.broker != choice.leader)
    known = brokers.get(choice.leader)
    elected_in = known.broker_epoch if known else NO_BROKER_EPOCH
    return state._replace(member_epochs=(ReplicaBroker(choice.leader, elected_in), *others))


def _lead_by(
    state: PartitionState, choice: Choice, brokers: Brokers, settings: Settings, rules: Rules
) -> PartitionState:
    epoch = LeaderEpoch(state.leader_epoch + 1)
    state = state._replace(leader=choice.leader, leader_epoch=epoch)
    if rules.commit_rule is CommitRule.MAJORITY or choice.leader in state.isr:
        return state
    if choice.rule == "eligible":
        return with_isr(state, (*state.isr, choice.leader), brokers, settings, rules)
    alone = state._replace(isr=(), eligible_leaders=())
    if choice.rule != "best-log":
        # Records that only other logs hold are given up, so these are no longer candidates. After
        # a comparison of logs they still are: another has the tail if the best log loses it now.
        alone = alone._replace(last_known_eligible=())
    return with_isr(alone, (choice.leader,), brokers, settings, rules)


def moved_away(
    state: PartitionState, broker: BrokerId, brokers: Brokers, settings: Settings, rules: Rules
) -> tuple[PartitionState, str] | None:
    """The state without a broker that shuts down, and the election rule; None if nothing changes.

    It stays in the ISR if no other replica may lead, and under the majority rule, where it leaves
    when its session ends.
    """
    if broker not in state.isr or rules.commit_rule is CommitRule.MAJORITY:
        return None
    others = tuple(one for one in state.isr if one != broker)
    moved = with_isr(state, others, brokers, settings, rules)
    if state.leader != broker:
        return moved, ""
    members_only = state._replace(eligible_leaders=())
    found = choose_leader(members_only, brokers, Settings(), avoid=(broker,))
    if found is None:
        return None
    choice = found._replace(rule="shutdown")
    return lead_by(moved, choice, brokers, settings, rules), choice.rule


def without_leader(state: PartitionState) -> PartitionState:
    """No leader, but a new leader epoch, so that a deposed leader can commit nothing."""
    if state.leader == NO_BROKER:
        return state
    return state._replace(leader=NO_BROKER, leader_epoch=LeaderEpoch(state.leader_epoch + 1))


def recovery_candidates(
    state: PartitionState, brokers: Brokers, rules: Rules
) -> tuple[BrokerId, ...] | None:
    """The replicas whose logs decide the election; None if logs do not decide or one is missing.

    The majority rule always compares the logs of a majority of the replicas. The ISR rule compares
    logs only when no member and no eligible leader is left: those of the last known ones.
    """
    live = tuple(one for one in state.replicas if one in brokers)
    if rules.commit_rule is CommitRule.MAJORITY:
        return live if len(live) > len(state.replicas) // 2 else None
    candidates = state.last_known_eligible
    if state.isr or state.eligible_leaders or not candidates:
        return None
    up = tuple(one for one in candidates if one in brokers)
    if not rules.guards.best_log_recovery:
        return up[:1] or None
    return up if len(up) == len(candidates) else None


def best_log(state: PartitionState, ends: Mapping[BrokerId, LogEnd], rules: Rules) -> Choice:
    """The replica with the greatest log; among equals the first of the assignment."""
    order = {one: -place for place, one in enumerate(state.replicas)}
    rule = "best-log" if rules.guards.best_log_recovery else "first-up"
    if rules.commit_rule is CommitRule.MAJORITY:
        rule = "majority"
    return Choice(max(ends, key=lambda one: (ends[one], order[one])), rule)
