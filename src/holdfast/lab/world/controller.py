"""The simulated controller: drives the real `Controller` core against the simulated store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.core import (
    AnswerAlter,
    AskLogEnd,
    Command,
    Commands,
    Controller,
    SendStateTo,
    Settings,
    StateConfirmed,
    StopReplica,
    StoreSettings,
    WriteState,
    is_current,
)
from holdfast.lab.world.broker_parts import RETRY_MS
from holdfast.lab.world.messages import (
    AlterRequest,
    AlterResponse,
    Envelope,
    LogEndRequest,
    LogEndResponse,
    Payload,
    SettingsMessage,
    ShutdownRequest,
    StateAnswer,
    StateMessage,
)
from holdfast.model import BrokerId, ControllerEpoch, ErrorCode, PartitionState

if TYPE_CHECKING:
    from holdfast.lab.world.world import World


class SimController:
    """One controller, in one controller epoch."""

    def __init__(self, world: World, controller_epoch: ControllerEpoch) -> None:
        self.world = world
        self.name = f"controller-{controller_epoch}"
        self.alive = True
        self.paused = False
        self.core = Controller(
            controller_epoch,
            world.store.sessions.values(),
            world.store.partitions,
            dict.fromkeys(world.store.partitions, world.store.settings),
            world.rules,
        )
        self.unconfirmed: dict[BrokerId, StateMessage] = {}
        """The newest state that each replica has not confirmed yet."""
        self.held_writes: list[WriteState | StoreSettings] | None = None
        """If not None, writes wait here and do not reach the store."""
        self.awaits_settings = False
        """Whether the store has changed settings and the controller does not know it yet."""
        world.later(RETRY_MS * 2, self._ask_again)

    def receive(self, envelope: Envelope) -> None:
        """Handle one message."""
        match envelope.payload:
            case AlterRequest(leader, broker_epoch, proposal):
                if not is_current(self.core.brokers, leader, broker_epoch):
                    refused = AlterResponse(proposal, ErrorCode.STALE_BROKER_EPOCH, None)
                    self._send(envelope.source, refused)
                    return
                waiter = (envelope.source, proposal)
                self.run(self.core.alter_partition(self.world.partition, leader, proposal, waiter))
            case LogEndResponse(broker, leader_epoch, end):
                self.run(
                    self.core.log_end_answered(self.world.partition, broker, leader_epoch, end)
                )
            case StateAnswer(broker, controller_epoch, partition_epoch):
                message = self.unconfirmed.get(broker)
                current = controller_epoch == self.core.controller_epoch
                if message and current and partition_epoch >= message.state.partition_epoch:
                    del self.unconfirmed[broker]
            case ShutdownRequest(broker, broker_epoch):
                self.run(self.core.shutdown_asked(broker, broker_epoch))
            case other:
                raise AssertionError(f"the controller cannot handle {other}")

    def run(self, commands: Commands) -> None:
        """Carry out the core's commands, in order."""
        for command in commands:
            self._run(command)

    def _run(self, command: Command) -> None:
        match command:
            case WriteState() | StoreSettings():
                if self.held_writes is not None:
                    self.held_writes.append(command)
                else:
                    self.write(command)
            case StateConfirmed():
                self._trace(command)
                for broker in self.core.brokers:
                    self._update_metadata(broker, command.after)
            case SendStateTo(broker, _, state):
                self._send_state(broker, state)
            case StopReplica(broker, partition):
                # It receives the same state, in which it is no longer a replica.
                self._send_state(broker, self.core.partitions[partition])
            case AnswerAlter(waiter, error, state):
                assert isinstance(waiter, tuple)
                source, proposal = waiter
                self._send(source, AlterResponse(proposal, error, state))
            case AskLogEnd(broker, _, leader_epoch):
                self._send_to(broker, LogEndRequest(self.core.controller_epoch, leader_epoch))

    def _send_state(self, broker: BrokerId, state: PartitionState) -> None:
        epoch = self.core.brokers[broker].broker_epoch
        message = StateMessage(self.core.controller_epoch, epoch, state)
        self.unconfirmed[broker] = message
        self._update_metadata(broker, state)
        self._send_until_confirmed(broker, message)

    def _send_until_confirmed(self, broker: BrokerId, message: StateMessage) -> None:
        """Send a LeaderAndIsr, and again until it is answered or overtaken."""
        if not self.alive or self.unconfirmed.get(broker) is not message:
            return
        on_its_way = self.world.network.between(self.name, self.world.name_of(broker))
        if not self.paused and not any(one.payload is message for one in on_its_way):
            self._send_to(broker, message)
        self.world.later(RETRY_MS * 2, lambda: self._send_until_confirmed(broker, message))

    def _update_metadata(self, broker: BrokerId, state: PartitionState) -> None:
        """Update the metadata that a broker reports to clients, if it can be reached."""
        node = self.world.brokers[self.world.name_of(broker)]
        runs = node.alive and not node.paused
        if runs and not self.world.network.is_disconnected(self.name, node.name):
            node.metadata = state

    def _ask_again(self) -> None:
        if self.alive:
            if not self.paused:
                self.run(self.core.ask_again())
            self.world.later(RETRY_MS * 2, self._ask_again)

    def alter_minimum(self, least: int) -> None:
        """An operator changes min.insync.replicas."""
        topic, settings = self.world.partition.topic, self.world.store.settings
        changed = replace(settings, min_insync_replicas=least)
        self.run(self.core.alter_settings({topic: changed}, changed))

    def write(self, command: WriteState | StoreSettings) -> None:
        """Write to the store; it refuses if there is a newer controller or a newer state."""
        if isinstance(command, StoreSettings):
            self._store_settings(command.waiter)
        else:
            self._store_state(command)

    def _store_settings(self, settings: object) -> None:
        """Change the settings in the store, which notifies the brokers with a session."""
        world = self.world
        assert isinstance(settings, Settings)
        if not world.store.set_settings(settings, self.core.controller_epoch):
            self.alive = False
            return
        minimum = settings.min_insync_replicas
        world.recorder.emit("settings-stored", None, None, min_insync_replicas=minimum)
        for broker in world.store.sessions:
            world.send("store", world.name_of(broker), SettingsMessage(settings))
        self.awaits_settings = True
        if not world.holds_settings:
            self.settings_answered()

    def settings_answered(self) -> None:
        """The answer of the store has arrived, if one was on its way."""
        if self.alive and self.awaits_settings:
            self.awaits_settings = False
            self.run(self.core.settings_stored())

    def _store_state(self, command: WriteState) -> None:
        store = self.world.store
        partition = command.partition
        epoch = self.core.controller_epoch
        if store.compare_and_set(partition, command.state, command.expected, epoch):
            self.run(self.core.store_confirmed(partition))
        elif epoch != store.controller_epoch:
            self.alive = False
        else:
            self.run(self.core.store_refused(partition, store.partitions[partition]))

    def release_writes(self) -> bool:
        """Send the held writes to the store; False if another controller was elected since."""
        held, self.held_writes = self.held_writes or [], None
        for command in held:
            self.write(command)
        return self.alive

    def _send(self, target: str, payload: Payload) -> None:
        self.world.send(self.name, target, payload)

    def _send_to(self, broker: BrokerId, payload: Payload) -> None:
        self._send(self.world.name_of(broker), payload)

    def _trace(self, confirmed: StateConfirmed) -> None:
        before, after = confirmed.before, confirmed.after
        recorder = self.world.recorder
        if confirmed.rule == "unclean":
            self.world.invariants.unclean = True
        if after.leader_epoch != before.leader_epoch:
            recorder.emit(
                "elected",
                leader=after.leader if after.leader >= 0 else None,
                leader_epoch=after.leader_epoch,
                partition_epoch=after.partition_epoch,
                isr=list(after.isr),
                eligible=list(after.eligible_leaders),
                rule=confirmed.rule,
            )
        elif (after.isr, after.eligible_leaders) != (before.isr, before.eligible_leaders):
            recorder.emit(
                "isr-committed",
                isr=list(after.isr),
                partition_epoch=after.partition_epoch,
                eligible=list(after.eligible_leaders),
            )
        if after.replicas != before.replicas:
            recorder.emit(
                "reassigned",
                replicas=list(after.replicas),
                adding=list(after.adding),
                removing=list(after.removing),
            )
