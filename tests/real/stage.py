"""Runs a scenario on real brokers: the lab's commands, carried out through `holdfast.cluster`.

A record's value is its label. The answers to producers are kept here, and at
the end the real outcome is held against the verdict of the lab's own run of the same scenario, so
there is no second copy of the truth.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from holdfast.cluster import Cluster
from holdfast.cluster.client.client import Address, Connection, UnreachableError
from holdfast.cluster.client.records import read_all, span_of
from holdfast.cluster.processes.ports import HOST
from holdfast.lab import Verdict, load, run_scenario
from holdfast.model import ErrorCode
from holdfast.storage.power_loss.unflushed_bytes import unflushed_of
from tests.real import wire
from tests.real.cast import CONTROLLER, WAIT_S, Cast
from tests.real.disks import assert_equal_logs

ELECT_MS = 500
LAG_MS = 3000
"""Scenarios act before a replica lags, so each step must take far less."""
FETCH_WAIT_MS = 500
UNHEARD_S = 0.5
CLIENTS = "clients"


class SendResult(NamedTuple):
    """The result of one send."""

    labels: tuple[str, ...]
    acks: int
    error: ErrorCode | None
    """None: no answer."""
    offset: int

    @property
    def is_acknowledged(self) -> bool:
        return self.error is ErrorCode.NONE


def lab_verdict(name: str, variant: str) -> Verdict:
    """The verdict of the lab's run of a scenario."""
    scenario = load(name)
    return run_scenario(scenario, scenario.variant(variant)).verdict


class Stage(Cast):
    """One scenario, on a cluster that other scenarios may have used before."""

    def __init__(self, cluster: Cluster, scenario: str, variant: str) -> None:
        super().__init__(cluster, f"{scenario}.{variant}")
        self.expected = lab_verdict(scenario, variant)
        self.sent: list[SendResult] = []
        self.pool = ThreadPoolExecutor(8, thread_name_prefix="producers")

    # Producers.

    def send(
        self,
        *labels: str,
        acks: int = -1,
        to: str | None = None,
        timeout_ms: int = 30_000,
        batch: bytes | None = None,
    ) -> SendResult:
        """One batch; to the leader, as the controller knows it, unless `to` names a broker."""
        made = wire.batch(labels) if batch is None else batch
        error: ErrorCode | None
        try:
            broker = self.broker(to or self._leader_now())
            with self.connection(broker, timeout_ms / 1000 + 5) as connection:
                error, offset = wire.produce(connection, self.topic, made, acks, timeout_ms)
        except UnreachableError:
            error, offset = None, -1
        return self._note(SendResult(labels, acks, error, offset))

    def send_on(self, connection: Connection, *labels: str, acks: int) -> SendResult:
        """On a connection that is open already, to a broker that may not even read it."""
        error: ErrorCode | None
        try:
            made = wire.batch(labels)
            error, offset = wire.produce(connection, self.topic, made, acks, 30_000)
        except UnreachableError:
            error, offset = None, -1
        return self._note(SendResult(labels, acks, error, offset))

    def _note(self, sent: SendResult) -> SendResult:
        self.sent.append(sent)
        return sent

    def send_until_acknowledged(self, *labels: str, acks: int = -1) -> None:
        """As a producer with retries does."""

        def look() -> bool:
            self.sent = [one for one in self.sent if one.labels != labels]
            return self.send(*labels, acks=acks).is_acknowledged

        self.until(look, f"{labels} acknowledged")

    def begin_send(
        self, *labels: str, acks: int = -1, to: str | None = None, timeout_ms: int = 30_000
    ) -> Future[SendResult]:
        """A send whose answer may take long."""
        return self.pool.submit(self.send, *labels, acks=acks, to=to, timeout_ms=timeout_ms)

    def _leader_now(self) -> str:
        name = self.leader()
        if name is None:
            raise UnreachableError("nobody leads")
        return name

    @contextmanager
    def connection(self, broker: int, timeout_s: float = 10.0) -> Iterator[Connection]:
        connection = Connection(Address(HOST, self.cluster.entry(broker).port), timeout_s)
        try:
            yield connection
        finally:
            connection.close()

    def read(self) -> list[str]:
        """The labels of all committed records."""
        with self.asking() as client:
            span = span_of(client, self.topic, 0, WAIT_S)
            found = read_all(client, self.topic, 0, span, WAIT_S)
            return [str(one.value, "utf-8") for one in found if one.value is not None]

    # Faults.

    def kill(self, *names: str) -> None:
        """The processes die, one after the other, and the controller has noticed each."""
        for name in names:
            self.cluster.kill(self.broker(name))
            self.wait_lost(name)

    def power_loss(self, *names: str) -> None:
        self.cluster.power_loss(*self.brokers("".join(names)))
        for name in names:
            self.wait_lost(name)

    def wait_lost(self, name: str) -> None:
        """Until the controller takes a broker for dead."""
        if name != CONTROLLER:
            self.until(lambda: self.broker(name) not in self._alive(), f"{name} lost")

    def wait_back(self, name: str) -> None:
        self.until(lambda: self.broker(name) in self._alive(), f"{name} registered")

    def _alive(self) -> list[int]:
        with self.asking() as client:
            return [one.node_id for one in client.metadata([]).brokers]

    def lose_disk(self, name: str) -> None:
        """Of a broker that is down."""
        files = self.cluster.files(self.broker(name))
        for log in files.logs:
            for folder in (log, unflushed_of(log)):
                shutil.rmtree(folder, ignore_errors=True)

    def restart(self, *names: str) -> None:
        """Returns when the controller knows of them."""
        for name in names:
            self.cluster.restart(self.broker(name), wait=False)
        for name in names:
            self.wait_back(name)

    def disconnect(self, source: str, targets: str) -> None:
        """What `source` sends to these brokers does not arrive; "" are the clients."""
        ends: list[int | str] = [*self.brokers(targets)]
        self.cluster.cut(self.broker(source), ends or [CLIENTS])

    def part(self, one: str, others: str) -> None:
        """Disconnect two brokers from each other."""
        for other in others:
            for source, target in ((one, other), (other, one)):
                numbers = [self.broker(target)]
                self.cluster.ask(self.broker(source), "links", do="cut", to=numbers, both_ways=True)

    def delay(self, source: str, targets: str, seconds: float) -> None:
        self.cluster.delay(self.broker(source), seconds, self.brokers(targets))

    def reconnect(self, *names: str) -> None:
        chosen = self.brokers("".join(names)) if names else self.cluster.running()
        for broker in chosen:
            if self.cluster.is_running(broker):
                self.cluster.heal(broker)

    def cut_store(self, name: str) -> None:
        self.cluster.ask(self.broker(name), "store", do="cut")

    def elect(self, name: str) -> None:
        """Make one of the live replicas the leader, by its place in the assignment."""
        self._wanted.sort(key=lambda one: one != self.broker(name))
        with self.asking() as client:
            wire.reassign(client, self.topic, self._wanted)

        def look() -> bool:
            # The answer waits until all brokers know the new leader, and some may be disconnected.
            with self.asking() as client:
                wire.elect_preferred(client, self.topic, ELECT_MS)
            return self.leader() == name

        self.until(look, f"led by {name}")

    def move_to(self, replicas: str) -> None:
        """Other replicas, from now on."""
        self._replicas = "".join(sorted(replicas))
        self._wanted = self.brokers(replicas)
        with self.asking() as client:
            wire.reassign(client, self.topic, self._wanted)

    def unknown_commit(self, leader: str, followers: str, *labels: str) -> None:
        """Have records acknowledged that the followers do not know to be committed.

        A follower learns of a commit with the next answer: up to replica.fetch.wait.max.ms later,
        and on a slow link. Until then there is time to disconnect it.
        """
        self.delay(leader, followers, UNHEARD_S)
        sent = self.send(*labels, to=leader)
        self.disconnect(leader, followers)
        assert sent.is_acknowledged, sent
        end = sent.offset + len(labels)
        assert self.replica(leader).hw == end
        for name in followers:
            status = self.replica(name)
            assert (status.leo, status.hw) == (end, sent.offset), (name, status)

    # The end.

    def finish(self) -> None:
        """Repair everything, wait until all replicas agree, and judge."""
        self.repair()
        self.until(lambda: self.leader() is not None, "led by anybody")
        self.wait_isr(self._replicas)
        leader = self._leader_now()
        end = self.replica(leader).leo
        self.wait_settled(end)
        replicas = self.brokers(self._replicas)
        assert_equal_logs(self.cluster, replicas, f"{self.topic}-0", end)
        self.judge(self.read())

    def repair(self) -> None:
        """All brokers run, and all ways are open."""
        repair(self.cluster)

    def judge(self, kept: list[str]) -> None:
        """The records end as in the lab's run of the same scenario."""
        expected = self.expected
        known = set(kept)
        acknowledged = [one for one in self.sent if one.is_acknowledged or not one.acks]
        sent = [label for one in acknowledged for label in one.labels]
        lost = tuple(label for label in sent if label not in known)
        assert lost == expected.lost, f"the lab loses {expected.lost}, here {lost} are gone"
        twice = tuple(label for label, count in Counter(kept).items() if count > 1)
        assert twice == expected.duplicated
        if expected.outcome == "refused-kept":
            assert self.refused_kept(known) == expected.refused_kept

    def refused_kept(self, kept: set[str]) -> tuple[str, ...]:
        """Labels of records that were refused and are in the log."""
        refused = [one for one in self.sent if one.error not in (None, ErrorCode.NONE)]
        return tuple(label for one in refused for label in one.labels if label in kept)

    def close(self) -> None:
        """Leave the cluster ready for the next scenario."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        with self.asking() as client:
            known = [topic.name for topic in client.metadata().topics]
        for name in known:
            if name == self.topic:
                self.cluster.delete_topic(name)


def repair(cluster: Cluster) -> None:
    """Start all brokers, and reconnect all links."""
    for broker in cluster.brokers:
        if not cluster.is_running(broker):
            cluster.restart(broker, wait=False)
        elif broker not in cluster.running():
            cluster.resume(broker)
            cluster.heal(broker)
        else:
            cluster.heal(broker)
    cluster.wait_ready()


def values(text: str) -> list[str]:
    """Labels as the lab writes them: r0..r3 are r0, r1, r2 and r3."""
    found: list[str] = []
    for word in text.split():
        several = re.fullmatch(r"([a-z]+)(\d+)\.\.\1(\d+)", word)
        if several is None:
            found.append(word)
        else:
            prefix, first, last = several.groups()
            found += [f"{prefix}{number}" for number in range(int(first), int(last) + 1)]
    return found
