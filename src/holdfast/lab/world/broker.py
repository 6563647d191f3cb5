"""A simulated broker: drives one real `Replica` with a simulated disk and network.

It makes no replication decision: it passes messages to the core and carries out the effects that
the core returns, in order.
"""

from __future__ import annotations

from typing import Final

from holdfast.core import (
    BrokerIncarnation,
    ControllerFact,
    EpochCache,
    Judgement,
    Leader,
    LogEnd,
    LogState,
    Replica,
)
from holdfast.lab.world.broker_following import FollowingSide
from holdfast.lab.world.broker_leading import LeadingSide
from holdfast.lab.world.messages import (
    AlterResponse,
    BoundsRequest,
    BoundsResponse,
    Envelope,
    FetchRequest,
    FetchResponse,
    LogEndRequest,
    LogEndResponse,
    ProduceRequest,
    ReadRequest,
    RegisterRequest,
    RegisterResponse,
    SettingsMessage,
    ShutdownRequest,
    StateAnswer,
    StateMessage,
)
from holdfast.model import (
    NO_BROKER,
    NO_BROKER_EPOCH,
    BrokerId,
    ControllerEpoch,
    ErrorCode,
    Offset,
)

CONTROLLER: Final = BrokerId(0)
"""Controllers are not brokers here; only their epochs differ."""


class SimBroker(LeadingSide, FollowingSide):
    """One broker with one replica of the partition."""

    # Start, crash, stop.

    def start(self) -> None:
        """Load what the disk has, and ask the store for a session."""
        assert not self.alive
        disk = self.disk
        self.incarnations += 1
        guards = self.world.rules.guards
        self.incarnation = BrokerIncarnation(self.incarnations, disk.clean_shutdown, guards)
        clean = disk.clean_shutdown is not None
        disk.clean_shutdown = None
        epochs = EpochCache(self._epochs)
        if disk.epoch_checkpoint_lost:
            epochs = EpochCache.rebuilt_from(disk.headers(), keep_first=guards.keep_first_epoch)
            disk.epoch_checkpoint_lost = False
        epochs.truncate_to(Offset(disk.end_offset))
        log = LogState(
            self.world.settings,
            log_start_offset=disk.start_offset,
            log_end_offset=disk.end_offset,
            high_watermark=disk.high_watermark_checkpoint,
            flushed_offset=disk.flushed_offset,
            epochs=epochs,
        )
        log.last_flush_ms = self.world.now_ms
        self.replica = Replica(self.id, log, self.world.rules)
        log.producers.rebuild(disk.headers())
        self.alive = True
        self.paused = False
        self.outstanding = None
        self.parked.clear()
        self.candidates.clear()
        if self.incarnations > 1:
            self._trace(
                "restarted",
                log_end_offset=log.log_end_offset,
                high_watermark=log.high_watermark,
                clean=clean,
            )
        self.register()

    def register(self) -> None:
        """Ask the store for a session."""
        incarnation = self.incarnation
        self._send(
            "store", RegisterRequest(self.id, incarnation.incarnation, incarnation.intact_since)
        )

    def register_if_needed(self) -> None:
        """Ask again after an answer was lost."""
        if self.alive and self.incarnation.broker_epoch == NO_BROKER_EPOCH:
            self.register()

    def session_lost(self) -> None:
        """The store ended the session of this running broker: ask for a new one."""
        self.incarnation.session_lost()
        self.register()

    def die(self) -> None:
        """The process ends; the disk stays as it is."""
        self.alive = False
        self.paused = False
        self._epochs = tuple(self.replica.log.epochs.entries)

    def crash(self) -> None:
        """The process dies; the page cache survives."""
        self.die()
        self._trace("crashed")

    def lose_power(self, torn: int = 0) -> None:
        """The machine loses power, whether the process runs or not."""
        if self.alive:
            self.die()
        was = self.disk.end_offset
        gone = self.disk.lose_power(torn)
        self._trace("power-lost", kept=self.disk.end_offset, was=was, torn=torn)
        # A log that acknowledges only flushed records loses no acknowledged record.
        if gone and self.world.settings.most_unflushed:
            self.world.invariants.lost_records(self.name, "lost power")

    def pause(self) -> None:
        """Stop running until `resume`."""
        self.paused = True
        self._trace("paused")

    def resume(self) -> None:
        """Run again after `pause`."""
        self.paused = False
        self._trace("resumed")

    def ask_to_stop(self) -> None:
        """Controlled shutdown: leaderships move first, `stop` follows."""
        self._send(
            self.world.controller_name, ShutdownRequest(self.id, self.incarnation.broker_epoch)
        )

    def stop(self) -> None:
        """Stop cleanly: flush everything, and write the clean-shutdown marker."""
        self.disk.high_watermark_checkpoint = self.replica.log.high_watermark
        self.disk.flush(self.disk.end_offset)
        self.disk.clean_shutdown = self.incarnation.shut_down_cleanly()
        self.die()
        self._trace("stopped")

    # Messages.

    def receive(self, envelope: Envelope) -> None:  # noqa: C901  # one flat case per message
        """Handle one message."""
        match envelope.payload:
            case FetchRequest() as request:
                self._on_fetch(request)
            case FetchResponse() as response:
                self._on_fetch_response(response)
            case BoundsRequest() as request:
                self._on_bounds_request(request)
            case BoundsResponse() as response:
                self._on_bounds_response(response)
            case StateMessage() as message:
                self._on_state(envelope.source, message)
            case AlterResponse() as response:
                self._on_alter_response(response)
            case LogEndRequest() as request:
                self._on_log_end_request(envelope.source, request)
            case RegisterResponse() as response:
                self._on_registered(response)
            case SettingsMessage(settings):
                self.run(self.replica.settings_changed(settings))
            case ProduceRequest() as request:
                self._on_produce(request)
            case ReadRequest() as request:
                self._on_read(request)
            case other:
                raise AssertionError(f"{self.name} cannot handle {other}")
        self.world.check_replica(self)

    def _on_registered(self, response: RegisterResponse) -> None:
        if self.incarnation.registration_answered(response.incarnation, response.broker_epoch):
            self._trace("registered")

    def _on_state(self, source: str, message: StateMessage) -> None:
        incarnation = self.incarnation
        if not incarnation.is_addressed(message.broker_epoch):
            error = ErrorCode.STALE_BROKER_EPOCH
        else:
            error = self._controller_refused(message.controller_epoch)
        if error:
            self._trace(
                "command-refused", controller_epoch=message.controller_epoch, error=error.name
            )
            return
        state = message.state
        answer = StateAnswer(self.id, message.controller_epoch, state.partition_epoch)
        self._send(source, answer)
        replica = self.replica
        before = replica.role
        if self.id not in state.replicas:
            # StopReplica: it neither leads nor fetches any more. The lab lets it keep its files.
            state = state._replace(leader=NO_BROKER)
        if state.leader == self.id:
            effects = replica.become_leader(state, self.world.now_ms)
            if replica.role is not before and isinstance(replica.role, Leader):
                self._trace_leader(replica.role)
        else:
            effects = replica.become_follower(state)
            if replica.role is not before and not replica.has_failed:
                leader = state.leader if state.leader >= 0 else None
                self._trace("became-follower", leader=leader, leader_epoch=state.leader_epoch)
                self.outstanding = None
        self.run(effects)
        self.maybe_fetch()

    def _controller_refused(self, epoch: ControllerEpoch) -> ErrorCode:
        # No message is forged here: the store has issued every epoch in a message.
        self.incarnation.confirm_controller(ControllerFact(epoch, CONTROLLER))
        judgement = self.incarnation.judge_controller(CONTROLLER, epoch, is_newest=True)
        obeyed = judgement is Judgement.OBEY
        return ErrorCode.NONE if obeyed else ErrorCode.STALE_CONTROLLER_EPOCH

    def _trace_leader(self, role: Leader) -> None:
        log = self.replica.log
        self._trace(
            "became-leader",
            leader_epoch=role.leader_epoch,
            start_offset=role.epoch_start_offset,
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
            isr=list(role.insync.isr),
        )

    def _on_log_end_request(self, source: str, request: LogEndRequest) -> None:
        # Answered only in the requested epoch: from then on no former leader can change this log.
        log = self.replica.log
        if self.replica.leader_epoch == request.leader_epoch and not self.replica.has_failed:
            end = LogEnd(log.epochs.epoch_at(Offset(log.log_end_offset - 1)), log.log_end_offset)
            self._send(source, LogEndResponse(self.id, request.leader_epoch, end))

    def _on_alter_response(self, response: AlterResponse) -> None:
        if response.error:
            isr = [member.broker for member in response.proposal.isr]
            self._trace("isr-refused", isr=isr, error=response.error.name)
        self.run(self.replica.isr_answer(response.error, response.state))
