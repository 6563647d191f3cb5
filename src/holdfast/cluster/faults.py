"""Fault injection into a cluster: processes, links, disks, sessions.

`heal` ends faults of links, store and disks; `restart` ends faults of a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from holdfast.broker.trace_file import TraceFile
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.processes import manifest
from holdfast.cluster.processes.broker_settings import BrokerFiles
from holdfast.cluster.processes.lifecycle import STOP_S, Lifecycle
from holdfast.cluster.processes.processes import KILL, PAUSE, RESUME, STOP, BrokerProcess
from holdfast.cluster.waiting import wait_for
from holdfast.model import TopicPartition
from holdfast.storage.power_loss.unflushed_bytes import take_unflushed, unflushed_of

CLIENTS: Final = "clients"
"""Names all clients where the other end of a link is asked for."""

End = int | str
"""A broker's id, or `clients`."""


class Breaking(Lifecycle):
    """A cluster with fault injection."""

    _trace_file: TraceFile | None = None

    def _process(self, broker: int) -> BrokerProcess:
        self.check_running(broker)
        return self._processes[broker]

    def check_running(self, *brokers: int) -> None:
        """ClusterError names the first broker that does not run."""
        for broker in brokers:
            if not self.is_running(broker):
                raise ClusterError(f"broker {broker} does not run", hint=f"restart broker {broker}")

    def _became(self, broker: int, state: str) -> None:
        self.entry(broker).state = state
        self._save()

    # Processes.

    def kill(self, broker: int) -> None:
        """SIGKILL: the process ends; what it wrote is still in the page cache."""
        with self._lock:
            process = self._process(broker)
            self._became(broker, manifest.KILLED)
            # Opened before the signal: the event's time must not come after the election it causes.
            self._open_trace()
            process.signal(KILL)
            self._emit("crashed", broker)
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
        """Start brokers again; stop the running ones first.

        Returns when all are registered and see the others, or immediately with wait=False.
        """
        for broker in brokers:
            if self.is_running(broker):
                self.stop(broker)
        for broker in brokers:
            self._spawn(broker)
        if wait:
            self.wait_ready(*brokers)

    def pause(self, broker: int) -> None:
        """SIGSTOP: the process stops running and keeps its connections."""
        with self._lock:
            process = self._process(broker)
            process.signal(PAUSE)
            wait_for(
                lambda: process.id.is_paused() or None,
                STOP_S,
                lambda: f"broker {broker} is not paused",
            )
            self._became(broker, manifest.PAUSED)
            self._emit("paused", broker)

    def resume(self, broker: int) -> None:
        """SIGCONT: the process continues."""
        with self._lock:
            self._process(broker).signal(RESUME)
            self._became(broker, manifest.RUNNING)
            self._emit("resumed", broker)

    def power_loss(self, *brokers: int) -> dict[int, dict[str, tuple[int, int]]]:
        """Power loss: kill the process, and remove what was not flushed from its files.

        Several brokers lose power at the same time. Returns, per broker, the truncated files with
        their sizes before and after; file names include the log directory if there are several.
        """
        with self._lock:
            processes = {broker: self._process(broker) for broker in brokers}
            known = {broker: self._partitions_of(broker) for broker in brokers}
            self._open_trace()
            for broker, process in processes.items():
                self._became(broker, manifest.POWER_LOST)
                process.signal(KILL)
                self._emit_power_lost(broker, known[broker])
            truncated: dict[int, dict[str, tuple[int, int]]] = {}
            for broker, process in processes.items():
                process.kill()
                truncated[broker] = _taken(self.files(broker))
            return truncated

    def _partitions_of(self, broker: int) -> dict[str, Any]:
        if self.entry(broker).state == manifest.PAUSED:
            return {}
        partitions: dict[str, Any] = self.ask(broker, "status")["partitions"]
        return partitions

    # Links.

    def isolate(self, *brokers: int) -> None:
        """Disconnect from other brokers, clients and the store, in both directions."""
        for broker in brokers:
            others: list[int | None] = [one for one in self.brokers if one != broker]
            self.ask(broker, "links", do="cut", to=[*others, None], both_ways=True)
            self.ask(broker, "store", do="cut")
            self._isolated[broker] = None
            self._emit_disconnected(broker, [*others, None])

    def partition(self, *groups: Sequence[int]) -> None:
        """Disconnect brokers of different groups from each other, not from clients and store.

        Brokers that are not named form one more group.
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
                    self._emit_disconnected(broker, others)

    def delay(self, broker: int, seconds: float, to: Iterable[End] | None = None) -> None:
        """Delay what this broker sends; to all other brokers if none is named."""
        self.ask(broker, "links", do="delay", to=self._ends(broker, to), seconds=seconds)

    def drop(self, broker: int, probability: float = 1.0, to: Iterable[End] | None = None) -> None:
        """Lose some of what this broker sends, and the connection with it."""
        self.ask(broker, "links", do="drop", to=self._ends(broker, to), probability=probability)

    def cut(self, broker: int, to: Iterable[End] | None = None) -> None:
        """Disconnect one way: what this broker sends does not arrive."""
        ends = self._ends(broker, to)
        self.ask(broker, "links", do="cut", to=ends)
        self._emit_disconnected(broker, ends)

    def heal(self, *brokers: int) -> None:
        """End the faults of links, store and disks; of all brokers if none is named.

        A log that has failed stays offline until its broker is restarted.
        """
        for broker in brokers or self.running():
            self.ask(broker, "links", do="heal")
            self.ask(broker, "store", do="heal")
            self.ask(broker, "disk", do="mend")
            self._isolated.pop(broker, None)
        self._emit("healed", None)

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

    def slow_flush(self, broker: int, partition: str = "", directory: str = "") -> None:
        """Every flush (fsync) takes half a minute longer, until `heal`."""
        self.ask(broker, "disk", do="slow-flush", partition=partition, directory=directory)

    def cut_store(self, broker: int) -> None:
        """Disconnect the broker from the coordination store, until `heal`."""
        self.ask(broker, "store", do="cut")

    def expire_session(self, broker: int) -> None:
        """End the broker's session in the store; the broker notices and registers again."""
        self.ask(broker, "expire-session")
        self._emit("session-expired", broker)

    def flush(self, *brokers: int) -> None:
        """Flush all logs to the disk; of all brokers if none is named."""
        for broker in brokers or self.running():
            self.ask(broker, "flush")

    # Trace.

    def _emit(
        self, kind: str, broker: int | None, partition: TopicPartition | None = None, **more: Any
    ) -> None:
        """Trace a fault: a broker cannot trace what is done to it."""
        self._open_trace()
        if self._trace_file is not None:
            self._trace_file.emit(kind, partition, b=broker, **more)

    def _open_trace(self) -> None:
        if self._manifest.trace and self._trace_file is None:
            self._trace_file = TraceFile(self.data_dir / "traces" / "cluster.trace", None)

    def _emit_disconnected(self, source: int, targets: Sequence[int | None]) -> None:
        names = [CLIENTS if one is None else f"b{one}" for one in targets]
        self._emit("cut", None, source=f"b{source}", targets=names)

    def _emit_power_lost(self, broker: int, partitions: dict[str, Any]) -> None:
        for name, numbers in partitions.items():
            topic, _, index = name.rpartition("-")
            kept, was = numbers["flushed_offset"], numbers["leo"]
            where = TopicPartition(topic, int(index))
            self._emit("power-lost", broker, where, kept=min(kept, was), was=was, torn=0)
        if not partitions:
            self._emit("crashed", broker)

    def close(self, *, clean: bool = True) -> None:
        if self._trace_file is not None:
            self._trace_file.close()
            self._trace_file = None
        super().close(clean=clean)


def _taken(files: BrokerFiles) -> dict[str, tuple[int, int]]:
    """Remove what was not flushed from every log directory."""
    taken: dict[str, tuple[int, int]] = {}
    for log in files.logs:
        opening = f"{log.name}/" if files.log_dirs > 1 else ""
        for path, sizes in take_unflushed(str(log), str(unflushed_of(log))).items():
            taken[opening + path] = sizes
    return taken
