"""Breaking a cluster on purpose: processes, links, disks, sessions.

Every fault is undone by `heal` (links, store, disks) or `restart` (everything in a process).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from holdfast.broker.faults.unflushed_bytes import take_unflushed
from holdfast.broker.trace_file import TraceFile
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.processes import manifest
from holdfast.cluster.processes.broker_settings import BrokerFiles, unflushed_of
from holdfast.cluster.processes.lifecycle import STOP_S, Lifecycle
from holdfast.cluster.processes.processes import KILL, PAUSE, RESUME, STOP, BrokerProcess
from holdfast.cluster.waiting import wait_for
from holdfast.model import TopicPartition

CLIENTS: Final = "clients"
"""Stands for all clients where a link's other end is asked for."""

End = int | str
"""A broker's id, or `clients`."""


class Breaking(Lifecycle):
    """A cluster that can be broken."""

    _story: TraceFile | None = None

    def _process(self, broker: int) -> BrokerProcess:
        self.check_running(broker)
        return self._processes[broker]

    def check_running(self, *brokers: int) -> None:
        """ClusterError names the first that does not run."""
        for broker in brokers:
            if not self.is_running(broker):
                raise ClusterError(f"broker {broker} does not run", hint=f"restart broker {broker}")

    def _became(self, broker: int, state: str) -> None:
        self.entry(broker).state = state
        self._save()

    # Processes.

    def kill(self, broker: int) -> None:
        """SIGKILL: the process is gone, what it wrote is still in the page cache."""
        with self._lock:
            process = self._process(broker)
            self._became(broker, manifest.KILLED)
            # Opened before the signal: the event's time must not come after the election it causes.
            self._open_trace()
            process.signal(KILL)
            self._tell("crashed", broker)
            process.kill()

    def stop(self, broker: int, timeout_s: float = STOP_S) -> None:
        """A controlled shutdown: leaderships move first."""
        with self._lock:
            process = self._process(broker)
            self._became(broker, manifest.STOPPED)
            process.signal(RESUME)
            process.signal(STOP)
        if not process.wait(timeout_s):
            raise ClusterError(
                f"broker {broker} has not stopped after {timeout_s:g} s", hint="kill it"
            )

    def restart(self, *brokers: int, wait: bool = True) -> None:
        """Start brokers again; one that runs is stopped first.

        Returns when all are registered and see the others; at once if nobody waits for that.
        """
        for broker in brokers:
            if self.is_running(broker):
                self.stop(broker)
        for broker in brokers:
            self._spawn(broker)
        if wait:
            self.wait_ready(*brokers)

    def pause(self, broker: int) -> None:
        """SIGSTOP: it stands still and keeps its connections; its clock goes on."""
        with self._lock:
            process = self._process(broker)
            process.signal(PAUSE)
            wait_for(
                lambda: process.id.is_paused() or None,
                STOP_S,
                lambda: f"broker {broker} does not stand still",
            )
            self._became(broker, manifest.PAUSED)
            self._tell("paused", broker)

    def resume(self, broker: int) -> None:
        """It goes on where it was."""
        with self._lock:
            self._process(broker).signal(RESUME)
            self._became(broker, manifest.RUNNING)
            self._tell("resumed", broker)

    def power_loss(self, *brokers: int) -> dict[int, dict[str, tuple[int, int]]]:
        """The power fails: killed, and what was not flushed is gone from the files.

        Several brokers at once lose it together. Gives, a broker, the files that were cut and
        their sizes before and after; with the name of their log directory if there are several.
        """
        with self._lock:
            processes = {broker: self._process(broker) for broker in brokers}
            known = {broker: self._partitions_of(broker) for broker in brokers}
            self._open_trace()
            for broker, process in processes.items():
                self._became(broker, manifest.POWER_LOST)
                process.signal(KILL)
                self._tell_power_lost(broker, known[broker])
            cut: dict[int, dict[str, tuple[int, int]]] = {}
            for broker, process in processes.items():
                process.kill()
                cut[broker] = _taken(self.files(broker))
            return cut

    def _partitions_of(self, broker: int) -> dict[str, Any]:
        if self.entry(broker).state == manifest.PAUSED:
            return {}
        partitions: dict[str, Any] = self.ask(broker, "status")["partitions"]
        return partitions

    # Links.

    def isolate(self, *brokers: int) -> None:
        """Cut off from everybody, both ways: other brokers, clients and the store."""
        for broker in brokers:
            others: list[int | None] = [one for one in self.brokers if one != broker]
            self.ask(broker, "links", do="cut", to=[*others, None], both_ways=True)
            self.ask(broker, "store", do="cut")
            self._cut_off[broker] = None
            self._tell_cut(broker, [*others, None])

    def partition(self, *groups: Sequence[int]) -> None:
        """Brokers of different groups do not reach each other. Clients and store reach them all.

        Brokers that are not named make one more group.
        """
        named = [broker for group in groups for broker in group]
        if len(set(named)) != len(named):
            raise ClusterError("a broker can be in one group only")
        for broker in named:
            self.entry(broker)
        rest = [broker for broker in self.brokers if broker not in named]
        for group in [*groups, rest] if rest else groups:
            others = [broker for broker in self.brokers if broker not in group]
            for broker in group:
                if broker in self.running() and others:
                    self.ask(broker, "links", do="cut", to=others, both_ways=True)
                    self._tell_cut(broker, others)

    def delay(self, broker: int, seconds: float, to: Iterable[End] | None = None) -> None:
        """What this broker sends comes later; to all other brokers if none is named."""
        self.ask(broker, "links", do="delay", to=self._ends(broker, to), seconds=seconds)

    def drop(self, broker: int, probability: float = 1.0, to: Iterable[End] | None = None) -> None:
        """What this broker sends is lost now and then, and the connection with it."""
        self.ask(broker, "links", do="drop", to=self._ends(broker, to), probability=probability)

    def cut(self, broker: int, to: Iterable[End] | None = None) -> None:
        """What this broker sends does not arrive, one way only."""
        ends = self._ends(broker, to)
        self.ask(broker, "links", do="cut", to=ends)
        self._tell_cut(broker, ends)

    def heal(self, *brokers: int) -> None:
        """Links, the way to the store and disks are as they should be; of all if none is named.

        A log that has failed stays offline until its broker is restarted.
        """
        for broker in brokers or self.running():
            self.ask(broker, "links", do="heal")
            self.ask(broker, "store", do="heal")
            self.ask(broker, "disk", do="mend")
            self._cut_off.pop(broker, None)
        self._tell("healed", None)

    def _ends(self, broker: int, to: Iterable[End] | None) -> list[int | None]:
        if to is None:
            return [one for one in self.brokers if one != broker]
        ends: list[int | None] = []
        for end in to:
            if end == CLIENTS:
                ends.append(None)
            elif isinstance(end, int):
                ends.append(self.entry(end).id)
            else:
                raise ClusterError(f"{end!r} is no broker", hint=f"an id, or {CLIENTS!r}")
        return ends

    # Disks and sessions.

    def disk_full(self, broker: int, partition: str = "", directory: str = "") -> None:
        """Every write fails with ENOSPC: of one partition ("topic-0"), of one log directory (its
        path as in log.dirs), or of all.
        """
        self.ask(broker, "disk", do="full", partition=partition, directory=directory)

    def io_error(self, broker: int, partition: str = "", directory: str = "") -> None:
        """Everything fails with EIO, there."""
        self.ask(broker, "disk", do="io-error", partition=partition, directory=directory)

    def slow_flush(self, broker: int, partition: str = "") -> None:
        """Every flush (fsync) takes half a minute longer, or until `heal`."""
        self.ask(broker, "disk", do="slow-flush", partition=partition)

    def cut_store(self, broker: int) -> None:
        """The agreed store is out of its reach; `heal` brings it back."""
        self.ask(broker, "store", do="cut")

    def expire_session(self, broker: int) -> None:
        """The store takes the broker for dead; it notices and registers anew."""
        self.ask(broker, "expire-session")
        self._tell("session-expired", broker)

    def flush(self, *brokers: int) -> None:
        """Force all logs to the disk; of all brokers if none is named."""
        for broker in brokers or self.running():
            self.ask(broker, "flush")

    # What the trace is told.

    def _tell(
        self, kind: str, broker: int | None, partition: TopicPartition | None = None, **more: Any
    ) -> None:
        """The brokers cannot tell themselves of what was done to them."""
        self._open_trace()
        if self._story is not None:
            self._story.emit(kind, partition, b=broker, **more)

    def _open_trace(self) -> None:
        if self._manifest.trace and self._story is None:
            self._story = TraceFile(self.data_dir / "traces" / "cluster.trace", None)

    def _tell_cut(self, source: int, targets: Sequence[int | None]) -> None:
        names = [CLIENTS if one is None else f"b{one}" for one in targets]
        self._tell("cut", None, source=f"b{source}", targets=names)

    def _tell_power_lost(self, broker: int, partitions: dict[str, Any]) -> None:
        for name, numbers in partitions.items():
            topic, _, index = name.rpartition("-")
            kept, was = numbers["flushed_offset"], numbers["leo"]
            where = TopicPartition(topic, int(index))
            self._tell("power-lost", broker, where, kept=min(kept, was), was=was, torn=0)
        if not partitions:
            self._tell("crashed", broker)

    def close(self, *, clean: bool = True) -> None:
        if self._story is not None:
            self._story.close()
            self._story = None
        super().close(clean=clean)


def _taken(files: BrokerFiles) -> dict[str, tuple[int, int]]:
    """Take what was not flushed out of every log directory."""
    taken: dict[str, tuple[int, int]] = {}
    for log in files.logs:
        opening = f"{log.name}/" if files.log_dirs > 1 else ""
        for path, sizes in take_unflushed(str(log), str(unflushed_of(log))).items():
            taken[opening + path] = sizes
    return taken
