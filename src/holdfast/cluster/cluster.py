"""A cluster for tests: topics, leaders, replicas, producers, and acknowledged records."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from holdfast.cluster import timeline
from holdfast.cluster.client.acknowledged_records import (
    AckedLossError,
    Acknowledgement,
    Finding,
    Ledger,
)
from holdfast.cluster.client.admin import create_topic, delete_topic, elect_leader, reassign
from holdfast.cluster.client.client import Client, KafkaError, UnreachableError
from holdfast.cluster.client.producer import CheckedProducer
from holdfast.cluster.client.records import (
    Kept,
    Span,
    leader_of,
    produce_patiently,
    read_all,
    span_of,
)
from holdfast.cluster.client.retries import retried
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.faults import Breaking
from holdfast.cluster.waiting import wait_for
from holdfast.model import ErrorCode
from holdfast.protocol.records import NewRecord

WAIT_S: Final = 60.0


class ReplicaStatus(NamedTuple):
    """One replica, as its broker reports it."""

    leo: int
    hw: int
    leader_epoch: int
    in_isr: bool
    flushed_offset: int
    log_start: int
    role: str
    """leader, follower or offline."""
    leader: int
    """The leader that the broker has in its metadata; -1 for none."""
    isr: tuple[int, ...]
    """The ISR that the broker has in its metadata."""
    partition_epoch: int
    copy_problem: str = ""
    """Why it cannot fetch from its leader; empty if it can."""


class Cluster(Breaking):
    """Real brokers, to be used, broken and asked.

    with Cluster(brokers=3) as cluster: ...
    """

    def __init__(self, data_dir: str | Path | None = None, **options: Any) -> None:
        super().__init__(data_dir, **options)
        self.ledger = Ledger()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close(clean=not self.is_ephemeral)

    def client(self) -> Client:
        """A small blocking client of the brokers that can be reached; the caller closes it.

        ClusterError if no broker can be reached: waiting would not help.
        """
        entries = [self.entry(broker) for broker in self.reachable()]
        if not entries:
            states = ", ".join(f"{one.id} is {one.state}" for one in self._manifest.brokers)
            raise ClusterError(
                f"no broker can be reached: {states}", hint="restart, resume or heal one first"
            )
        return Client([(entry.host, entry.port) for entry in entries])

    # Topics.

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        replication_factor: int = -1,
        *,
        config: Mapping[str, str] | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
        timeout_s: float = WAIT_S,
    ) -> None:
        """Returns when every partition has a leader; -1: the cluster's default factor."""
        with self.client() as client:
            create_topic(client, topic, partitions, replication_factor, config, assignment)
            wanted = assignment if assignment is not None else range(partitions)
            for partition in wanted:
                self._wait_leader(client, topic, partition, None, timeout_s)

    def delete_topic(self, topic: str) -> None:
        """KafkaError if there is none."""
        with self.client() as client:
            delete_topic(client, topic)

    def elect_leader(self, topic: str, partition: int = 0, *, unclean: bool = False) -> None:
        """Elect the preferred leader, or any live replica."""
        with self.client() as client:
            elect_leader(client, topic, partition, unclean=unclean)

    def reassign(self, topic: str, partition: int, replicas: Sequence[int] | None) -> None:
        """Move a partition to other brokers; None cancels a move."""
        with self.client() as client:
            reassign(client, topic, partition, replicas)

    # State.

    def leader(self, topic: str, partition: int = 0, *, timeout_s: float = WAIT_S) -> int:
        """The leader's id in the brokers' metadata; KafkaError if there is none now."""
        with self.client() as client:
            return retried(lambda: leader_of(client, topic, partition), timeout_s)

    def isr(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """The in-sync replicas, from the replica with the newest epochs."""
        return self._agreed(topic, partition)[0]

    def _agreed(self, topic: str, partition: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The newest ISR and the assignment."""
        with self.client() as client:
            known = retried(lambda: client.newest_partition(topic, partition), WAIT_S)
        newest, isr = (-1, -1), tuple(known.isr_nodes)
        for _, status in self._statuses():
            replica = status["partitions"].get(f"{topic}-{partition}")
            if replica is None:
                continue
            epochs = replica["leader_epoch"], replica["partition_epoch"]
            if epochs > newest:
                newest, isr = epochs, tuple(replica["isr"])
        return isr, tuple(known.replica_nodes)

    def _statuses(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The status of every broker that answers; one may die in between."""
        for broker in self.reachable():
            with contextlib.suppress(ClusterError):
                yield broker, self.status(broker)

    def controller(self, *, timeout_s: float = WAIT_S) -> int:
        """The broker that reports itself as the controller, as soon as one does."""

        def look() -> int | None:
            controllers = [one for one, status in self._statuses() if status["is_controller"]]
            return controllers[0] if controllers else None

        return wait_for(look, timeout_s, lambda: "there is no controller")

    def replica(self, topic: str, partition: int, broker: int) -> ReplicaStatus:
        """What a broker reports of its own replica."""
        name = f"{topic}-{partition}"
        partitions = self.ask(broker, "status")["partitions"]
        if name not in partitions:
            raise ClusterError(f"broker {broker} has no replica of {name}")
        fields = partitions[name]
        isr = tuple(fields.pop("isr"))
        return ReplicaStatus(**fields, isr=isr, in_isr=broker in isr)

    def status(self, broker: int) -> dict[str, Any]:
        """All that a broker reports of itself."""
        status: dict[str, Any] = self.ask(broker, "status")
        return status

    # Waiting.

    def wait_leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        broker: int | None = None,
        not_broker: int | None = None,
        timeout_s: float = WAIT_S,
    ) -> int:
        """Wait for a leader, for a certain one, or for one that is not a certain one.

        Metadata may still name a leader that no client can reach. It does not count, unless it is
        the one asked for.
        """

        def is_wanted(leader: int) -> bool:
            if broker is not None:
                return leader == broker
            return leader != not_broker and leader in self.reachable()

        with self.client() as client:
            return self._wait_leader(client, topic, partition, is_wanted, timeout_s)

    def _wait_leader(
        self,
        client: Client,
        topic: str,
        partition: int,
        is_wanted: Callable[[int], bool] | None,
        timeout_s: float,
    ) -> int:
        last: list[str] = ["nothing is known"]

        def look() -> int | None:
            try:
                leader = leader_of(client, topic, partition)
            except (KafkaError, UnreachableError) as error:
                last[0] = error.message
                return None
            last[0] = f"broker {leader} leads"
            return leader if is_wanted is None or is_wanted(leader) else None

        return wait_for(
            look, timeout_s, lambda: f"{topic}-{partition} has not the leader wanted ({last[0]})"
        )

    def wait_isr(
        self,
        topic: str,
        partition: int = 0,
        *,
        isr: Iterable[int] | None = None,
        size: int | None = None,
        timeout_s: float = WAIT_S,
    ) -> tuple[int, ...]:
        """Wait until the ISR is this one, or this large; without either, until it is complete."""
        wanted = None if isr is None else set(isr)
        last: list[object] = [()]

        def look() -> tuple[int, ...] | None:
            try:
                members, replicas = self._agreed(topic, partition)
            except ClusterError as error:  # a broker may die while we ask
                last[0] = error.message
                return None
            last[0] = members
            if wanted is not None:
                return members if set(members) == wanted else None
            return members if len(members) == (len(replicas) if size is None else size) else None

        return wait_for(look, timeout_s, lambda: f"the ISR of {topic}-{partition} is {last[0]}")

    # Records.

    def produce(
        self,
        topic: str,
        values: Sequence[bytes | str],
        partition: int = 0,
        *,
        acks: int = -1,
        key: bytes | None = None,
        timeout_s: float = WAIT_S,
    ) -> int:
        """Send one batch, note it in the ledger, return its first offset."""
        data = [value.encode() if isinstance(value, str) else value for value in values]
        now_ms = time.time_ns() // 1_000_000
        records = [NewRecord(value, key, now_ms) for value in data]
        with self.client() as client:
            try:
                base = produce_patiently(client, topic, partition, records, acks, timeout_s)
            except ClusterError:
                for _ in data:
                    self.ledger.failed()
                raise
        if acks != 0:
            for place, value in enumerate(data):
                acknowledgement = Acknowledgement(topic, partition, base + place, key, value, acks)
                self.ledger.acknowledged(acknowledgement)
        return base

    def consume(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """The values of all records below the high watermark."""
        with self.client() as client:
            _, records = _read(client, topic, partition, WAIT_S)
        return [record.value for record in records]

    def producer(self, config: Mapping[str, Any] | None = None, **more: Any) -> CheckedProducer:
        """A confluent-kafka producer that notes its acknowledged records in the ledger.

        Settings have librdkafka's names; as keywords with _ for the dots.
        """
        settings = {name.replace("_", "."): value for name, value in more.items()}
        return CheckedProducer(self.ledger, self.bootstrap, {**(config or {}), **settings})

    def acked_loss(self, timeout_s: float = WAIT_S) -> list[Finding]:
        """Acknowledged records that a consumer cannot read at their offsets."""
        findings: list[Finding] = []
        with self.client() as client:
            for topic, partition in self.ledger.partitions():
                span, records = _read(client, topic, partition, timeout_s)
                findings += self.ledger.check(topic, partition, span.start, records)
        return findings

    def assert_no_acked_loss(self, timeout_s: float = WAIT_S) -> None:
        """AckedLossError, an AssertionError, names each record that is gone or changed."""
        findings = self.acked_loss(timeout_s)
        if findings:
            raise AckedLossError(findings, len(self.ledger.acknowledgements))

    # The trace.

    def flush_traces(self) -> None:
        """Write all events so far to the files, on every broker that answers."""
        if self._trace_file is not None:
            self._trace_file.flush()
        for broker in self.running():
            with contextlib.suppress(ClusterError):
                self.ask(broker, "flush-trace")

    def timeline(self, partition: str | None = None) -> Path | None:
        """One trace of everything so far, for `holdfast lab replay`; None if tracing is off."""
        self.flush_traces()
        return timeline.write_timeline(self.data_dir, partition)


def _read(client: Client, topic: str, partition: int, timeout_s: float) -> tuple[Span, list[Kept]]:
    """The offsets that a consumer can read, and all their records.

    Starts again if a new leader's log ends before the current position: the ledger check reports
    what is missing then.
    """

    def attempt() -> tuple[Span, list[Kept]]:
        span = span_of(client, topic, partition, timeout_s)
        return span, list(read_all(client, topic, partition, span, timeout_s))

    return retried(attempt, timeout_s, codes=(ErrorCode.OFFSET_OUT_OF_RANGE,))
