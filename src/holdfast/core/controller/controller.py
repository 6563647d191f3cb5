"""The controller: elects the leaders of the whole cluster and sends the result to the brokers.

All its state is in the coordination store, so a new controller continues where the old one stopped:
it checks every partition and makes the missing decisions. A decision is a compare-and-set of one
partition's state. Each partition has at most one write in flight, and the controller sends nothing
to a broker before the store has confirmed it. Requests that arrive meanwhile are queued.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.core.controller import reassignment_rules
from holdfast.core.controller.broker_registry import Registration, is_current
from holdfast.core.controller.effects import (
    AnswerAlter,
    Command,
    Commands,
    SendStateTo,
    StateConfirmed,
    StopReplica,
    WriteState,
    in_order,
)
from holdfast.core.controller.isr_change_rules import Alter, Pending, judge
from holdfast.core.controller.leader_election import (
    Brokers,
    Choice,
    LogEnd,
    adjusted,
    asked_leader,
    best_log,
    drop_needless_eligible,
    first_state,
    lead_by,
    leads_on,
    minimum_isr,
    moved_away,
    next_version,
    recovery_candidates,
    with_isr,
)
from holdfast.core.controller.log_end_questions import LogEndQuestions
from holdfast.core.controller.settings_changes import SettingsChange
from holdfast.core.replica.effects import ProposeIsr
from holdfast.core.rules import SAFE_RULES, CommitRule, Rules, Settings
from holdfast.model import (
    NO_BROKER,
    NO_BROKER_EPOCH,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    ErrorCode,
    LeaderEpoch,
    PartitionState,
    TopicPartition,
)


class Controller:
    """The decisions of one controller in its controller epoch."""

    __slots__ = (
        "_failed",
        "_leaving",
        "_pending",
        "_queued",
        "_settings",
        "brokers",
        "controller_epoch",
        "log_ends",
        "partitions",
        "rules",
        "settings",
        "settings_change",
    )

    brokers: dict[BrokerId, Registration]
    """Only brokers with a live session."""
    partitions: dict[TopicPartition, PartitionState]
    """As the store has confirmed them."""

    def __init__(
        self,
        controller_epoch: ControllerEpoch,
        brokers: Iterable[Registration],
        partitions: Mapping[TopicPartition, PartitionState],
        settings: Mapping[TopicPartition, Settings],
        rules: Rules = SAFE_RULES,
    ) -> None:
        self.controller_epoch = controller_epoch
        self.rules = rules
        self.brokers = {one.broker: one for one in brokers}
        self.partitions = dict(partitions)
        self.settings = dict(settings)
        self._pending: dict[TopicPartition, Pending] = {}
        self._queued: dict[TopicPartition, list[Alter]] = {}
        self._leaving: dict[TopicPartition, list[BrokerId]] = {}
        self.log_ends = LogEndQuestions()
        self._failed: dict[TopicPartition, tuple[BrokerId, ...]] = {}
        self._settings: dict[TopicPartition, Settings] = {}
        self.settings_change: SettingsChange | None = None

    def start(self) -> Commands:
        """Take over: send the stored state to every replica, then make the missing decisions."""
        return in_order(self._look_and_send(partition) for partition in self.partitions)

    # Brokers.

    def broker_registered(self, registration: Registration) -> Commands:
        """A broker has a new session: send it its partitions, and elect leaders where possible."""
        broker = registration.broker
        self.brokers[broker] = registration
        for partition, failed in self._failed.items():
            self._failed[partition] = tuple(one for one in failed if one != broker)
        self.log_ends.restarted(broker)
        return in_order(self._look_and_send(partition, broker) for partition in self.partitions)

    def broker_lost(
        self, broker: BrokerId, broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    ) -> Commands:
        """A session has ended. The end of an earlier session than the registered one is ignored."""
        known = self.brokers.get(broker)
        if known is None or broker_epoch not in (NO_BROKER_EPOCH, known.broker_epoch):
            return ()
        del self.brokers[broker]
        return in_order(self._look_at(partition) for partition in self.partitions)

    def replica_failed(
        self, partition: TopicPartition, broker: BrokerId, broker_epoch: BrokerEpoch
    ) -> Commands:
        """A log failed: the broker counts as dead for this partition until it restarts."""
        failed = self._failed.get(partition, ())
        present = partition in self.partitions and broker not in failed
        if not present or not is_current(self.brokers, broker, broker_epoch):
            return ()
        self._failed[partition] = (*failed, broker)
        return self._look_at(partition)

    def fit(self, partition: TopicPartition) -> Brokers:
        """The live brokers, without those whose log of this partition failed."""
        failed = self._failed.get(partition)
        if not failed:
            return self.brokers
        return {one: known for one, known in self.brokers.items() if one not in failed}

    def shutdown_asked(self, broker: BrokerId, broker_epoch: BrokerEpoch) -> Commands:
        """Controlled shutdown: move its leaderships and take it out of the ISRs first.

        A request from an earlier broker epoch must not mark the present registration.
        """
        if not is_current(self.brokers, broker, broker_epoch):
            return ()
        self.brokers[broker] = self.brokers[broker]._replace(shutting_down=True)
        return in_order(self._move_away(partition, broker) for partition in self.partitions)

    def _move_away(self, partition: TopicPartition, broker: BrokerId) -> Commands:
        if partition in self._pending:
            self._leaving.setdefault(partition, []).append(broker)
            return ()
        state, settings = self.partitions[partition], self.settings[partition]
        moved = moved_away(state, broker, self.fit(partition), settings, self.rules)
        return self._write(partition, *moved) if moved else ()

    # Partitions.

    def create(
        self, partition: TopicPartition, replicas: tuple[BrokerId, ...], settings: Settings
    ) -> Commands:
        """A new partition: its live replicas are in sync, the first of them leads."""
        if self.settings_change is not None:
            settings = self.settings_change.interim(partition, settings)
        self.settings[partition] = settings
        state = first_state(replicas, self.brokers, settings, self.rules)
        self.partitions[partition] = PartitionState(replicas, (), leader_epoch=LeaderEpoch(-1))
        return self._write(partition, state, "created")

    def forget(self, partition: TopicPartition) -> Commands:
        """The partition is being deleted: drop its state and answer the waiting proposals."""
        pending = self._pending.pop(partition, None)
        waiters = list(pending.answers) if pending else []
        waiters += [one.waiter for one in self._queued.pop(partition, ())]
        for table in (self.partitions, self.settings, self._settings, self._leaving, self._failed):
            table.pop(partition, None)
        self.log_ends.forget(partition)
        gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answers = (AnswerAlter(one, gone, None) for one in waiters)
        return (*answers, *self._maybe_store_settings(partition))

    def is_pending(self, partition: TopicPartition) -> bool:
        """Whether a write to the store is in flight."""
        return partition in self._pending

    def alter_partition(
        self, partition: TopicPartition, leader: BrokerId, proposal: ProposeIsr, waiter: object
    ) -> Commands:
        """A leader proposes another ISR. It must name the current partition epoch."""
        if partition in self._pending:
            alter = Alter(leader, proposal, waiter)
            self._queued.setdefault(partition, []).append(alter)
            return ()
        state = self.partitions.get(partition)
        if state is None:
            return (AnswerAlter(waiter, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),)
        fit = self.fit(partition)
        error = judge(state, fit, self.rules.guards, leader, proposal)
        if error is ErrorCode.INELIGIBLE_REPLICA:
            # A new partition epoch, so that a delayed copy of this proposal is refused as well.
            return self._write(partition, state, "refused", (waiter,), error)
        if error:
            return (AnswerAlter(waiter, error, state),)
        isr = tuple(member.broker for member in proposal.isr)
        changed = with_isr(state, isr, fit, self.settings[partition], self.rules)
        return self._write(partition, self._maybe_complete(partition, changed), "", (waiter,))

    def elect(
        self, partition: TopicPartition, leader: BrokerId | None = None, *, unclean: bool = False
    ) -> Commands:
        """An operator requests an election; `asked_leader` chooses the new leader."""
        state = self.partitions[partition]
        if partition in self._pending or self.rules.commit_rule is CommitRule.MAJORITY:
            return ()
        fit, settings = self.fit(partition), self.settings[partition]
        choice = asked_leader(state, fit, settings, leader, unclean=unclean)
        if choice is None:
            return ()
        led = lead_by(state, choice, fit, settings, self.rules)
        return self._write(partition, led, choice.rule)

    def reassign(self, partition: TopicPartition, target: tuple[BrokerId, ...]) -> Commands:
        """Move the partition: add the new replicas; remove the old ones once those are in sync."""
        if partition in self._pending:
            return ()
        grown = reassignment_rules.begin(self.partitions[partition], target)
        return self._write(partition, self._maybe_complete(partition, grown), "reassigned")

    def _maybe_complete(self, partition: TopicPartition, state: PartitionState) -> PartitionState:
        settings = self.settings[partition]
        return reassignment_rules.maybe_complete(state, self.fit(partition), settings, self.rules)

    # Settings.

    def alter_settings(self, topics: Mapping[str, Settings], waiter: object) -> Commands:
        """Begin to change the settings of topics, one change at a time; see `settings_changes`.

        `StoreSettings` follows, now or after the store has confirmed other writes.
        """
        assert self.settings_change is None, "a change of settings is in progress"
        self.settings_change = change = SettingsChange(topics, waiter)
        is_clearing = self.rules.guards.eligible_cleared_first
        lowered = change.begin({**self.settings, **self._settings}) if is_clearing else {}
        commands = in_order(self.settings_changed(*one) for one in lowered.items())
        return (*commands, *self._maybe_store_settings(*lowered))

    def _maybe_store_settings(self, *partitions: TopicPartition) -> Commands:
        """Let the driver write the settings if these partitions were the last to be cleared."""
        if self.settings_change is None:
            return ()
        return self.settings_change.cleared(one for one in partitions if self._is_cleared(one))

    def _is_cleared(self, partition: TopicPartition) -> bool:
        """Whether the store has no eligible leaders that the decided settings do not allow."""
        state = self.partitions.get(partition)
        if state is None or partition in self._pending:
            return state is None
        return drop_needless_eligible(state, self.settings[partition]) == state

    def settings_stored(self) -> Commands:
        """The store has the changed settings: decide by them."""
        change, self.settings_change = self.settings_change, None
        assert change is not None
        named = [one for one in self.partitions if one.topic in change.topics]
        return in_order(self.settings_changed(one, change.topics[one.topic]) for one in named)

    def settings_abandoned(self) -> None:
        """The settings will not be stored. The controller keeps a lower minimum, which is safe."""
        self.settings_change = None

    def settings_changed(self, partition: TopicPartition, settings: Settings) -> Commands:
        """Decide by these settings from now on.

        A higher min.insync.replicas begins with a new leader epoch: in the old epoch the leader may
        still commit by the lower minimum, and a replica that leaves the ISR is not eligible.
        """
        if partition in self._pending:
            self._settings[partition] = settings
            return ()
        was, self.settings[partition] = self.settings[partition], settings
        state, fit = self.partitions[partition], self.fit(partition)
        is_raised = minimum_isr(state, settings) > minimum_isr(state, was)
        if is_raised and leads_on(state, fit) and state.leader in state.isr:
            led = lead_by(state, Choice(state.leader, "settings"), fit, settings, self.rules)
            return self._write(partition, led, "settings")
        return self._look_at(partition)

    # Checking a partition again.

    def _look_at(self, partition: TopicPartition) -> Commands:
        """Adjust ISR, leader and recovery of a partition to the live brokers."""
        if partition in self._pending:
            return ()
        state = self.partitions[partition]
        fit, settings = self.fit(partition), self.settings[partition]
        settled, rule = adjusted(state, fit, settings, self.rules)
        if settled != state:
            return self._write(partition, settled, rule)
        return self._recover(partition, state)

    def _recover(self, partition: TopicPartition, state: PartitionState) -> Commands:
        """Without a leader: ask the candidates for their log ends, once all of them are live."""
        if state.leader != NO_BROKER:
            self.log_ends.forget(partition)
            return ()
        candidates = recovery_candidates(state, self.fit(partition), self.rules)
        return self.log_ends.ask(partition, state, candidates) if candidates is not None else ()

    def ask_again(self) -> Commands:
        """Repeat the unanswered questions for log ends."""
        return self.log_ends.ask_again(self.brokers, self.partitions)

    def log_end_answered(
        self, partition: TopicPartition, broker: BrokerId, leader_epoch: LeaderEpoch, end: LogEnd
    ) -> Commands:
        """A candidate reports its log end. When all have answered, the best log leads."""
        state = self.partitions.get(partition)
        if state is None or partition in self._pending:
            return ()
        fit, is_current = self.fit(partition), leader_epoch == state.leader_epoch
        is_open = is_current and state.leader == NO_BROKER
        ends = self.log_ends.answered(partition, broker, end, fit) if is_open else None
        if ends is None:
            return ()
        choice = best_log(state, ends, self.rules)
        led = lead_by(state, choice, fit, self.settings[partition], self.rules)
        return self._write(partition, led, choice.rule)

    # The store.

    def _write(
        self,
        partition: TopicPartition,
        state: PartitionState,
        rule: str,
        answers: tuple[object, ...] = (),
        error: ErrorCode = ErrorCode.NONE,
    ) -> Commands:
        expected = self.partitions[partition].partition_epoch
        state = next_version(state)
        self._pending[partition] = Pending(state, rule, answers, error)
        return (WriteState(partition, state, expected),)

    def store_confirmed(self, partition: TopicPartition) -> Commands:
        """The store accepted the write in flight: send the new state to the brokers."""
        pending = self._pending.pop(partition)
        before = self.partitions[partition]
        self.partitions[partition] = state = pending.state
        commands: list[Command] = [StateConfirmed(partition, before, state, pending.rule)]
        commands.extend(AnswerAlter(one, pending.error, state) for one in pending.answers)
        commands.extend(
            StopReplica(one, partition)
            for one in before.replicas
            if one not in state.replicas and one in self.brokers
        )
        commands.extend(self._go_on(partition))
        return (*commands, *self._maybe_store_settings(partition))

    def store_refused(self, partition: TopicPartition, state: PartitionState) -> Commands:
        """Another controller changed this partition: adopt its state and check it again."""
        pending = self._pending.pop(partition)
        self.partitions[partition] = state
        commands: list[Command] = [
            AnswerAlter(one, ErrorCode.INVALID_UPDATE_VERSION, state) for one in pending.answers
        ]
        commands.extend(self._go_on(partition))
        return (*commands, *self._maybe_store_settings(partition))

    def _go_on(self, partition: TopicPartition) -> Commands:
        settings = self._settings.pop(partition, None)
        commands = list(self.settings_changed(partition, settings)) if settings else []
        commands.extend(self._look_and_send(partition))
        for broker in self._leaving.pop(partition, []):
            commands.extend(self._move_away(partition, broker))
        for alter in self._queued.pop(partition, []):
            commands.extend(self.alter_partition(partition, *alter))
        return tuple(commands)

    def _look_and_send(self, partition: TopicPartition, only: BrokerId | None = None) -> Commands:
        """Check the partition, then send its state to all replicas, or to one, if it is unchanged.

        The check comes first: a leader that lost its log's tail must not be sent the old state.
        """
        looked = self._look_at(partition)
        if partition in self._pending:
            return looked
        state = self.partitions[partition]
        recipients = [one for one in state.replicas if one in self.brokers and only in (None, one)]
        return (*(SendStateTo(one, partition, state) for one in recipients), *looked)
