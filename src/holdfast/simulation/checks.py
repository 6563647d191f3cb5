"""Invariants of a simulated cluster of real brokers: after every event, and at the end.

After every event, from the trace and the logs: an epoch has one leader; a replica's leader epoch
never falls; a leader's high watermark never falls within its leader epoch; the leader is in the
ISR; an offset is committed with one batch only; while no machine has lost power, the log of every
ISR member reaches every committed offset; a failed log directory takes its own partitions offline
and no others, and nothing is committed in it afterwards.

At the end, when the cluster is at rest: all replicas hold the same bytes, without a gap; every
record that was committed, acknowledged with acks=all or read is at its offset; an idempotent
producer's records are there once and in order; every record was sent by a client.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from holdfast.broker.replication.partition import Partition
from holdfast.model import TopicPartition, TraceEvent
from holdfast.protocol.records import batches, check_batch, read_records
from holdfast.simulation.clients.clients import Ledger, Producer
from holdfast.simulation.cluster import SimulatedCluster
from holdfast.simulation.machine import LOG_DIRS
from holdfast.storage import Log, read

MOST_BYTES = 1 << 30


class _Committed(NamedTuple):
    end_offset: int
    crc: int


class Invariants:
    """Checks the invariants after every event of a cluster."""

    def __init__(self, cluster: SimulatedCluster, partitions: tuple[TopicPartition, ...]) -> None:
        self._cluster = cluster
        self._partitions = {str(one): one for one in partitions}
        self.violations: dict[str, int] = {}
        """Each violation, and the event after which it was first found."""
        self.lossy: dict[int, None] = {}
        """Machines that lost records in a power failure."""
        self.commits: dict[TopicPartition, dict[int, _Committed]] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._epochs: dict[tuple[str, int, int], int] = {}
        self._marks: dict[tuple[str, int, int, int], int] = {}
        cluster.recording.observers.append(self._look)

    def forgive(self) -> None:
        """Clear `lossy` if every replica holds all committed records again."""
        brokers = [machine.broker for machine in self._cluster.machines.values()]
        if not self.lossy or not all(one.is_ready for one in self._cluster.machines.values()):
            return
        names = dict.fromkeys(
            name for broker in brokers if broker is not None for name in broker.replicas.partitions
        )
        if self._cluster.is_whole(tuple(names)) and all(map(self._is_held_by_all, names)):
            self.lossy.clear()

    def _is_held_by_all(self, name: TopicPartition) -> bool:
        copies = [self._replica(number, name) for number in self._cluster.machines]
        marks = [one.replica.log.high_watermark for one in copies if one is not None]
        return all(one is not None and one.log.log_end_offset >= max(marks) for one in copies)

    def _note(self, event: TraceEvent, text: str) -> None:
        self.violations.setdefault(f"{event.partition}: {text}", event.id)

    def _look(self, event: TraceEvent) -> None:
        look = _LOOKS.get(event.kind)
        is_ours = event.partition in self._partitions or not event.partition
        if look is not None and (is_ours or event.kind == "went-offline"):
            look(self, event)

    def _role(self, event: TraceEvent) -> None:
        assert event.broker is not None
        epoch = event.numbers["leader_epoch"]
        key = (event.partition, event.broker, self._cluster.machines[event.broker].incarnation)
        if epoch < self._epochs.get(key, -1):
            self._note(event, f"b{event.broker} goes from epoch {self._epochs[key]} to {epoch}")
        self._epochs[key] = epoch

    def _leads(self, event: TraceEvent) -> None:
        assert event.broker is not None
        self._role(event)
        epoch = event.numbers["leader_epoch"]
        known = self._leaders.setdefault((event.partition, epoch), event.broker)
        if known != event.broker:
            self._note(event, f"b{known} and b{event.broker} lead in epoch {epoch}")

    def _elected(self, event: TraceEvent) -> None:
        leader, isr = event.numbers["leader"], event.numbers["isr"]
        if leader is not None and leader not in isr:
            self._note(event, f"b{leader} leads and is not in the ISR {isr}")

    def _high_watermark(self, event: TraceEvent) -> None:
        assert event.broker is not None
        partition = self._replica(event.broker, self._partitions[event.partition])
        if partition is None or not partition.presumes_leadership:
            return
        mark = event.numbers["high_watermark"]
        incarnation = self._cluster.machines[event.broker].incarnation
        leadership = (event.partition, event.broker, incarnation, partition.replica.leader_epoch)
        before = self._marks.get(leadership, 0)
        if mark < before:
            self._note(event, f"b{event.broker}'s high watermark falls from {before} to {mark}")
        self._marks[leadership] = mark
        failed = self._cluster.machines[event.broker].running.directory.offline
        if self._directory(event.broker, partition.name) in failed:
            self._note(event, f"b{event.broker} commits {mark} in a directory that has failed")
        self._committed(event, partition, event.numbers["was"], mark)
        self._isr_has(event, partition.name, mark)

    def _committed(self, event: TraceEvent, partition: Partition, was: int, mark: int) -> None:
        known = self.commits.setdefault(partition.name, {})
        assert event.broker is not None
        with self._cluster.machines[event.broker].disk.without_faults():
            content = partition.read(was, MOST_BYTES, mark)
        for batch in batches(content):
            header = batch.header
            found = _Committed(header.end_offset, header.crc)
            first = known.setdefault(header.base_offset, found)
            if first != found:
                where = f"[{header.base_offset}, {header.end_offset})"
                self._note(event, f"b{event.broker} commits another batch at {where}")

    def _isr_has(self, event: TraceEvent, name: TopicPartition, mark: int) -> None:
        state = self._cluster.state(name)
        if state is None or self.lossy:
            return
        for member in state.isr:
            replica = self._replica(member, name)
            if replica is not None and replica.log.log_end_offset < mark:
                end = replica.log.log_end_offset
                text = f"b{member} is in the ISR up to {end}, b{event.broker} committed {mark}"
                self._note(event, text)

    def _replica(self, broker: int, name: TopicPartition) -> Partition | None:
        running = self._cluster.machines[broker].broker
        return None if running is None else running.replicas.partitions.get(name)

    def _went_offline(self, event: TraceEvent) -> None:
        """A fault that names no log directory may hit all of them."""
        assert event.broker is not None
        partitions = self._cluster.machines[event.broker].running.replicas.partitions
        [name] = [one for one in partitions if str(one) == event.partition]
        directory = self._directory(event.broker, name)
        faults = self._cluster.machines[event.broker].disk.faults
        hit = [one.path_part for one in faults]
        if not any(part not in LOG_DIRS or part == directory for part in hit):
            text = f"b{event.broker} takes it offline in {directory}, faults are in {hit}"
            self._note(event, text)

    def _directory(self, broker: int, name: TopicPartition) -> str:
        directory = self._cluster.machines[broker].running.directory
        return directory.path_of(directory.of(name))

    def _lost_power(self, event: TraceEvent) -> None:
        assert event.broker is not None
        self.lossy[event.broker] = None


_LOOKS: dict[str, Any] = {
    "became-leader": Invariants._leads,
    "became-follower": Invariants._role,
    "elected": Invariants._elected,
    "high-watermark": Invariants._high_watermark,
    "power-lost": Invariants._lost_power,
    "went-offline": Invariants._went_offline,
}


def judge(
    cluster: SimulatedCluster,
    partitions: tuple[TopicPartition, ...],
    ledger: Ledger,
    producers: list[Producer],
    invariants: Invariants,
) -> list[str]:
    """The failures found at the end of a run, in a cluster at rest."""
    failures: list[str] = []
    kept: dict[tuple[TopicPartition, int], bytes] = {}
    for name in partitions:
        content = _contents(cluster, name, failures)
        failures += _gaps_and_commits(name, content, invariants, kept)
    for one in ledger.acknowledged:
        acks = next(producer.acks for producer in producers if producer.name == one.producer)
        if acks == -1 and kept.get((one.partition, one.offset)) != one.value:
            where = f"{one.partition} at {one.offset}"
            failures.append(f"lost: {one.value.decode()}, acknowledged in {where}")
    for (name, offset), value in ledger.consumed.items():
        if kept.get((name, offset)) != value:
            failures.append(f"vanished: {value.decode()}, read from {name} at {offset}")
    for producer in producers:
        failures += _of_producer(producer, kept)
    unknown = [value for value in kept.values() if value not in ledger.sent]
    failures += [f"nobody sent {value.decode(errors='replace')}" for value in unknown]
    return failures


def _contents(cluster: SimulatedCluster, name: TopicPartition, failures: list[str]) -> bytes:
    """The content of a partition's log, which must be the same in every replica."""
    found: dict[bytes, list[str]] = {}
    for machine in cluster.machines.values():
        log = machine.running.replicas.partitions[name].log
        found.setdefault(content_of(log), []).append(machine.host)
    if len(found) > 1:
        sizes = {", ".join(hosts): len(content) for content, hosts in found.items()}
        failures.append(f"{name}: the replicas differ: {sizes}")
    return max(found, key=len)


def content_of(log: Log) -> bytes:
    """All batches of a log, one after the other."""
    pieces: list[bytes] = []
    offset: int = log.log_start_offset
    while offset < log.log_end_offset:  # Each round advances the offset.
        piece = bytes(read(log, offset, MOST_BYTES, log.log_end_offset))
        pieces.append(piece)
        for batch in batches(piece):
            offset = batch.header.end_offset
    return b"".join(pieces)


def _gaps_and_commits(
    name: TopicPartition,
    content: bytes,
    invariants: Invariants,
    kept: dict[tuple[TopicPartition, int], bytes],
) -> list[str]:
    failures: list[str] = []
    end = 0
    commits = dict(invariants.commits.get(name, {}))
    for batch in batches(content):
        check_batch(batch)
        header = batch.header
        if header.base_offset != end:
            failures.append(f"{name}: a gap from {end} to {header.base_offset}")
        end = header.end_offset
        committed = commits.pop(header.base_offset, None)
        if committed is not None and committed != (header.end_offset, header.crc):
            failures.append(f"{name}: what was committed at {header.base_offset} is another batch")
        for record in read_records(batch):
            kept[name, record.offset] = bytes(record.value or b"")
    if commits:
        failures.append(f"{name}: committed and gone: {list(commits)}")
    return failures


def _of_producer(producer: Producer, kept: dict[tuple[TopicPartition, int], bytes]) -> list[str]:
    own = f"{producer.name}-"
    values = [value.decode() for value in kept.values() if value.startswith(own.encode())]
    if not producer.is_idempotent:
        return []
    failures = [f"doubled: {one}" for one, count in Counter(values).items() if count > 1]
    for name in dict.fromkeys(one for one, _ in kept):
        numbers = [
            int(value.removeprefix(own.encode()))
            for (where, _), value in kept.items()
            if where == name and value.startswith(own.encode())
        ]
        if numbers != sorted(numbers):
            failures.append(f"{name}: the records of {producer.name} are out of order")
    return failures
