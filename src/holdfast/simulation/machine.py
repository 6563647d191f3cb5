"""One machine of the simulated cluster: a disk, a session with the store, and a real broker.

A kill ends the broker's process at any point, even inside a write; everything written before stays.
A power loss also removes or damages any part of what was not flushed. The next start finds what a
real broker would find.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from holdfast.broker.clock import Clock
from holdfast.broker.errors import StartError
from holdfast.broker.log_lines import LogLines
from holdfast.broker.node import Broker
from holdfast.broker.settings import Layers
from holdfast.broker.trace_events import BrokerTrace
from holdfast.coordination import StoreError
from holdfast.simulation.disk.byte_disk import ByteDisk, Step, Write, apply
from holdfast.simulation.disk.log_directory_view import DiskFolder
from holdfast.simulation.disk.power_loss import drawn_power_loss, flushed_only
from holdfast.simulation.network import Network
from holdfast.simulation.store.memory_store import MemoryServer, MemoryStore
from holdfast.simulation.trace_recording import Recording, Sink
from holdfast.simulation.virtual_time_loop import ProcessKilledError, SimLoop, Timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

PORT: Final = 9092
LOG_DIRS: Final = ("one", "two")
"""Directories of a machine's disk."""
EPOCH_S: Final = 1_700_000_000.0
"""The wall-clock time at which virtual time begins."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all machines share."""

    timeline: Timeline
    network: Network
    server: MemoryServer
    recording: Recording
    rng: Random
    disk_s: float
    """The longest time that a flush takes."""

    def wall_s(self) -> float:
        """The wall-clock time."""
        return EPOCH_S + self.timeline.now_s


class Machine:
    """Runs one broker process after another on one disk."""

    def __init__(self, around: Surroundings, number: int, settings: Mapping[str, str]) -> None:
        self.around = around
        self.number = number
        self.host = f"b{number}"
        own = {
            "node.id": str(number),
            "listeners": f"PLAINTEXT://{self.host}:{PORT}",
            "log.dirs": ",".join(LOG_DIRS),
        }
        self._layers = Layers(static={**settings, **own})
        self._session_ms = int(settings["broker.session.timeout.ms"])
        self.disk = ByteDisk()
        self.loop: SimLoop | None = None
        self.broker: Broker | None = None
        self.store: MemoryStore | None = None
        self._sink: Sink | None = None
        self._dead: list[SimLoop] = []
        self.is_ready = False
        """Whether the broker has started."""
        self.is_stopping = False
        self.incarnation = 0
        self.on_end: Callable[[Machine], None] | None = None
        """Called when the process has ended, unless by `kill` or `lose_power` from outside."""

    @property
    def is_up(self) -> bool:
        """Whether a broker process exists."""
        return self.loop is not None

    @property
    def running(self) -> Broker:
        """The broker, which must be up."""
        assert self.broker is not None
        return self.broker

    @property
    def log(self) -> LogLines:
        return self.around.recording.log_of(self.number)

    # Starting.

    def start(self) -> None:
        """Start a new process on the disk that the last one left."""
        if self.loop is not None:
            return
        around = self.around
        around.network.power(self.host, is_on=True)
        self.incarnation += 1
        rng = Random(around.rng.getrandbits(64))  # noqa: S311  # a schedule, not a secret
        loop = self.loop = SimLoop(around.timeline, around.network, self.host, rng, self.log)
        loop.disk_s = around.disk_s
        self.store = MemoryStore(around.server, session_timeout_ms=self._session_ms)
        self._sink = Sink(around.recording, self.number)
        self.is_ready = self.is_stopping = False
        loop.create_task(self._serve(loop, self.store, BrokerTrace(self._sink), rng))

    async def _serve(
        self, loop: SimLoop, store: MemoryStore, trace: BrokerTrace, rng: Random
    ) -> None:
        clock = Clock(loop, self.around.wall_s)
        try:
            disks = {name: DiskFolder(self.disk, name) for name in LOG_DIRS}
            self.broker = Broker(
                *(clock, self._layers, disks, store, self.log, rng),
                trace=trace,
                begin_stop=self.stop,
            )
            await self.broker.start()
            self.is_ready = True
        except (StartError, StoreError) as error:
            # A process that cannot start logs the reason and ends.
            self.log.warning("not started", error=str(error))
            self._end()
            self._report_end()

    # Stopping.

    def stop(self) -> None:
        """Begin a clean stop, which takes time."""
        if self.loop is not None and self.is_ready and not self.is_stopping:
            self.is_stopping = True
            self.loop.create_task(self._stop())

    async def _stop(self) -> None:
        assert self.broker is not None
        await self.broker.stop()
        self._end()
        self._report_end()

    def _report_end(self) -> None:
        if self.on_end is not None:
            self.on_end(self)

    def kill_within(self, steps: int) -> None:
        """Kill the process inside a write, flush or rename, after so many earlier ones."""
        left = steps

        def count(step: Step) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                self._tear(step)
                self.kill()
                self._report_end()
                raise ProcessKilledError

        self.disk.on_step = count

    def end_in_flush(self, path_part: str, end: Callable[[], None]) -> None:
        """Call `end`, which ends this process, just before the next flush of such a file ends."""

        def look(step: Step) -> None:
            if step.kind == "flush" and path_part in step.path:
                end()
                raise ProcessKilledError

        self.disk.on_step = look

    def _tear(self, step: Step) -> None:
        """Apply a random first part of the write during which the process is killed."""
        if step.file is not None and isinstance(step.change, Write):
            kept_bytes = self.around.rng.randrange(len(step.change.data) + 1)
            part = Write(step.change.position, step.change.data[:kept_bytes])
            apply(step.file.visible, part)
            step.file.pending.append(part)

    def kill(self) -> None:
        """End the process as `kill -9` does: everything written stays."""
        if self.loop is not None:
            self.around.recording.emit("crashed", self.number)
            self._end()

    def lose_power(self, *, keeps_unflushed: bool = True) -> None:
        """Lose power: each unflushed change is lost, damaged or kept; or all are lost."""
        if self.loop is not None:
            self._record_power_loss()
            if not keeps_unflushed:
                self.disk = flushed_only(self.disk)
            self._end(powered=False)

    def _record_power_loss(self) -> None:
        partitions = self.broker.replicas.partitions if self.broker is not None else {}
        for name, partition in partitions.items():
            was = partition.log.log_end_offset
            kept = min(partition.log.recovery_point, was)
            recording = self.around.recording
            recording.emit("power-lost", self.number, name, kept=kept, was=was, torn=0)
        if not partitions:
            self.around.recording.emit("crashed", self.number)

    def _end(self, *, powered: bool = True) -> None:
        loop, store, sink = self.loop, self.store, self._sink
        assert loop is not None and store is not None and sink is not None  # noqa: PT018
        sink.is_closed = True
        loop.kill()
        store.die()
        around = self.around
        around.network.process_died(loop, powered=powered)
        # The dead process may still write, but only to a disk that nothing reads.
        old = self.disk
        old.on_step = _refuse
        if powered:
            self.disk = ByteDisk(old.root)
        else:
            around.network.power(self.host, is_on=False)
            self.disk = drawn_power_loss(old, around.rng)
        self._dead.append(loop)
        self.loop = self.broker = self.store = None
        self.is_ready = self.is_stopping = False

    def bury(self) -> None:
        """Release the resources of all dead processes."""
        for loop in self._dead:
            loop.bury()
        self._dead.clear()

    # Other faults.

    def pause(self) -> None:
        """Pause the process; its session ends if that lasts longer than its timeout."""
        loop, store = self.loop, self.store
        if loop is None or store is None or loop.is_paused:
            return
        loop.pause()
        self.around.recording.emit("paused", self.number)
        session = store.session_id

        def end_if_still() -> None:
            if loop.is_paused and not loop.is_dead:
                self.around.server.end(session)

        self.around.network.kernel.call_later(self._session_ms / 1000, end_if_still)

    def resume(self) -> None:
        loop = self.loop
        if loop is not None and loop.is_paused:
            self.around.recording.emit("resumed", self.number)
            loop.resume()

    def expire_session(self) -> None:
        """End the broker's session while its process runs."""
        if self.store is not None and self.is_ready:
            self.around.recording.emit("session-expired", self.number)
            self.around.server.end(self.store.session_id)


def _refuse(_: Step) -> None:
    raise ProcessKilledError
