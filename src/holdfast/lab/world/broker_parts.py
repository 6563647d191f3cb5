"""The parts of a simulated broker that both sides use; carries out the core's effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.core import (
    Acknowledge,
    BrokerIncarnation,
    ConsiderExpand,
    Effect,
    Effects,
    Flush,
    HighWatermarkMoved,
    IsrApplied,
    Leader,
    LogState,
    ProposeIsr,
    Refuse,
    Replica,
    TruncateTo,
    WakeFetch,
    WriteEpoch,
)
from holdfast.lab.world.disk import DiskError, SimDisk
from holdfast.lab.world.messages import AlterRequest, Batch, FetchRequest, Payload, ProduceResponse
from holdfast.model import BrokerId, EpochEntry, ErrorCode, Offset, PartitionState

if TYPE_CHECKING:
    from holdfast.lab.world.world import World

RETRY_MS = 100
"""How long a follower, or a leader with an unanswered proposal, waits before asking again."""


class BrokerParts:
    """The state of one simulated broker; carries out the core's effects."""

    def __init__(self, world: World, broker: BrokerId, name: str) -> None:
        self.world = world
        self.id = broker
        self.name = name
        self.disk = SimDisk()
        self.alive = False
        self.paused = False
        self.incarnations = 0
        self.incarnation = BrokerIncarnation(0, None, world.rules.guards)
        self.replica = Replica(broker, LogState(world.settings), world.rules)
        self.outstanding: FetchRequest | None = None
        self.fetches = 0
        self.fetch_max_records = 0
        """The most records in one fetch; 0: no limit."""
        self.metadata: PartitionState | None = None
        """UpdateMetadata: what this broker reports to clients. It arrives immediately or never."""
        self.parked: dict[BrokerId, FetchRequest] = {}
        self.newest_fetch: dict[BrokerId, tuple[int, int]] = {}
        self.holds_expansions = False
        self.candidates: list[BrokerId] = []
        self.holds_flushes = False
        """A slow disk: a flush that a rule asks for takes until `flush` or `release_flushes`."""
        self._epochs: tuple[EpochEntry, ...] = ()

    def _send(self, target: str, payload: Payload) -> None:
        self.world.send(self.name, target, payload)

    def _trace(self, kind: str, **numbers: object) -> None:
        epoch = self.incarnation.broker_epoch
        self.world.recorder.emit(kind, self.id, epoch if epoch >= 0 else None, **numbers)

    def _write(self, batch: Batch, *, as_leader: bool) -> bool:
        """Write a batch; a failing disk takes the replica offline."""
        disk = self.disk
        try:
            if not disk.forgets_writes:
                disk.append(batch)
        except DiskError as error:
            self._fail(error)
            return False
        header = batch.header
        self._trace(
            "appended",
            base_offset=header.base_offset,
            end_offset=header.end_offset,
            leader_epoch=header.leader_epoch,
            records=[record.label for record in batch.records],
            as_leader=as_leader,
        )
        return True

    def _fail(self, error: DiskError) -> None:
        """A failing disk takes the replica offline, unless the lab took that guard out."""
        self._trace("disk-failed", error=str(error))
        effects = self.replica.log_failed(str(error))
        if self.replica.has_failed:
            self._trace("went-offline", reason=str(error))
        else:
            self.disk.forgets_writes = True
        self.run(effects)

    # Effects.

    def run(self, effects: Effects) -> None:
        """Carry out what the core asks for, in order."""
        for effect in effects:
            self._run(effect)

    def _run(self, effect: Effect) -> None:  # noqa: C901  # one flat case per effect
        match effect:
            case Acknowledge(waiter, base_offset):
                self.answer_producer(waiter, ErrorCode.NONE, base_offset)
            case Refuse(waiter, error, base_offset):
                self.answer_producer(waiter, error, base_offset)
            case WakeFetch(waiter):
                self._wake(waiter)
            case ConsiderExpand(follower):
                self._consider(follower)
            case ProposeIsr():
                self._propose(effect)
            case IsrApplied(isr, partition_epoch):
                self._trace("isr-applied", isr=list(isr), partition_epoch=partition_epoch)
            case HighWatermarkMoved(was, high_watermark):
                self.world.on_high_watermark(self.id, was, high_watermark)
                if self.world.checkpoints_immediately:
                    self.disk.high_watermark_checkpoint = high_watermark
                self._trace("high-watermark", high_watermark=high_watermark, was=was)
            case Flush(end_offset):
                if not self.holds_flushes:
                    self.flush(end_offset)
            case TruncateTo(end_offset, was):
                self._truncate(end_offset, was)
            case WriteEpoch():
                pass  # The disk gets the whole cache when the process ends.

    def _wake(self, waiter: object) -> None:
        raise AssertionError(f"{self.name}: only the leading side parks requests ({waiter})")

    def answer_producer(self, waiter: object, error: ErrorCode, base_offset: Offset) -> None:
        """Answer a producer's request."""
        assert isinstance(waiter, tuple)
        _, producer, number = waiter
        response = ProduceResponse(self.id, producer, number, error, base_offset)
        self._send(producer, response)

    def _consider(self, follower: BrokerId) -> None:
        if self.holds_expansions:
            if follower not in self.candidates:
                self.candidates.append(follower)
        else:
            self.run(self.replica.expand_isr(follower))

    def release_expansions(self) -> None:
        """Propose the expansions that were held back."""
        self.holds_expansions = False
        candidates, self.candidates = self.candidates, []
        for follower in candidates:
            self.run(self.replica.expand_isr(follower))

    def _propose(self, proposal: ProposeIsr) -> None:
        isr = [member.broker for member in proposal.isr]
        self._trace("isr-proposed", isr=isr, partition_epoch=proposal.partition_epoch)
        self.send_proposal(proposal)

    def send_proposal(self, proposal: ProposeIsr) -> None:
        """Send the proposal in flight, and again until it is answered."""
        role = self.replica.role
        in_flight = isinstance(role, Leader) and role.insync.proposal == proposal
        controller = self.world.controller_name
        request = AlterRequest(self.id, self.incarnation.broker_epoch, proposal)
        on_its_way = self.world.network.between(self.name, controller)
        repeats = any(one.payload == request for one in on_its_way)
        if self.alive and not self.paused and in_flight and not repeats:
            self._send(controller, request)
        if self.alive and in_flight:
            self.world.later(RETRY_MS * 5, lambda: self.send_proposal(proposal))

    def flush(self, end_offset: Offset) -> None:
        """Flush the log, because of a rule or the operating system."""
        if self.disk.flushed_offset >= end_offset:
            return
        try:
            self.disk.flush(end_offset)
        except DiskError as error:
            self._fail(error)
            return
        self._trace("flushed", end_offset=self.disk.flushed_offset)
        if self.alive:  # Otherwise the operating system flushes what a dead process has written.
            self.run(self.replica.flushed(self.disk.flushed_offset, self.world.now_ms))
            if self.holds_flushes:
                self.maybe_fetch()  # No fetch was sent during the flush.

    def maybe_fetch(self) -> None:
        raise AssertionError(f"{self.name}: only the following side fetches")

    def release_flushes(self) -> None:
        """Complete the held flush, and flush without delay from now on."""
        if self.alive and self.replica.log.must_flush:
            self.flush(self.disk.end_offset)
        self.holds_flushes = False

    def _truncate(self, end_offset: Offset, was: Offset) -> None:
        disk = self.disk
        if self.replica.log.must_restart(disk.start_offset, end_offset):
            gone = disk.restart_at(end_offset)
        else:
            gone = disk.truncate_to(end_offset)
        disk.high_watermark_checkpoint = Offset(min(disk.high_watermark_checkpoint, end_offset))
        self._trace(
            "truncated",
            end_offset=end_offset,
            was=was,
            records=[record.label for record in gone],
        )
        self.replica.log.producers.rebuild(disk.headers())
