"""A story on real brokers: the lab's words, carried out through `holdfast.cluster`.

The controller is a bystander that no story cuts off unless it says so; the replicas are called A,
B and C as in the lab. A record's value is its label. What producers were told is kept here, and at
the end the real outcome is held against the verdict of the lab's own run of the same story, so
there is no second copy of the truth.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from holdfast.cluster import Client, Cluster, ClusterError, KafkaError, ReplicaStatus
from holdfast.cluster.client import TIMEOUT_S, Address, Connection, UnreachableError
from holdfast.cluster.ports import HOST
from holdfast.cluster.records import read_all
from holdfast.cluster.waiting import wait_for
from holdfast.lab import Verdict, load, run_scenario
from holdfast.model import ErrorCode
from tests.real import wire
from tests.real.disks import Written, assert_equal_logs, written

T = TypeVar("T")

WAIT_S = 60.0
"""So generous that only something broken reaches it, also on a busy machine."""
ELECT_S = 0.5
LAG_MS = 1200
FETCH_WAIT_MS = 500
CONTROLLER = "K"
CLIENTS = "clients"


class Told(NamedTuple):
    """What became of one send."""

    labels: tuple[str, ...]
    acks: int
    error: ErrorCode | None
    """None: no answer came."""
    offset: int

    @property
    def is_acknowledged(self) -> bool:
        return self.error is ErrorCode.NONE


def lab_verdict(story: str, variant: str) -> Verdict:
    """How the lab's run of a story ends."""
    scenario = load(story)
    return run_scenario(scenario, scenario.variant(variant)).verdict


class Stage:
    """One story, on a cluster that other stories may have used before."""

    def __init__(self, cluster: Cluster, story: str, variant: str) -> None:
        self.cluster = cluster
        self.expected = lab_verdict(story, variant)
        self.topic = f"{story}.{variant}"
        self.told: list[Told] = []
        self.pool = ThreadPoolExecutor(8, thread_name_prefix="producers")
        self._numbers: dict[str, int] = {}
        self._replicas = ""
        self._wanted: list[int] = []

    # Who is who.

    def cast(self) -> None:
        """Give the brokers their names: whoever is the controller is K."""
        controller = wait_for(self.find_controller, WAIT_S, lambda: "there is no controller")
        others = [one for one in self.cluster.brokers if one != controller]
        self._numbers = dict(zip("ABCDE", others, strict=False)) | {CONTROLLER: controller}

    def find_controller(self) -> int | None:
        for broker in self.cluster.running():
            if self.cluster.status(broker)["is_controller"]:
                return broker
        return None

    def broker(self, name: str) -> int:
        return self._numbers[name]

    def brokers(self, names: str) -> list[int]:
        return [self._numbers[name] for name in names]

    def names(self, brokers: Sequence[int]) -> str:
        """In the order of the alphabet."""
        return "".join(sorted(name for name, one in self._numbers.items() if one in brokers))

    # The topic.

    def create(self, replicas: str = "ABC", *, config: dict[str, str] | None = None) -> None:
        """One partition on these replicas; the first leads, and all of them know it."""
        self._replicas = "".join(sorted(replicas))
        self._wanted = self.brokers(replicas)
        self.cluster.create_topic(self.topic, assignment={0: self._wanted}, config=config)
        self.wait_known(replicas[0], replicas)

    def wait_known(self, leader: str, replicas: str) -> None:
        """Until these replicas know who leads."""

        def look(name: str) -> bool:
            return self.replica(name).leader == self.broker(leader)

        for name in replicas:
            self.until(lambda name=name: look(name), f"{name} follows {leader}")  # type: ignore[misc]

    @contextmanager
    def asking(self, timeout_s: float = TIMEOUT_S) -> Iterator[Client]:
        """A client that asks the controller first: its word is the newest."""
        known = [self.broker(CONTROLLER), *self.cluster.running()]
        ports = dict.fromkeys(self.cluster.entry(one).port for one in known)
        with Client([(HOST, port) for port in ports], timeout_s=timeout_s) as client:
            yield client

    def leader(self) -> str | None:
        """Its name; None if there is none now."""
        with self.asking() as client:
            try:
                return self.names([client.leader(self.topic, 0)])
            except KafkaError:
                return None

    def isr(self) -> str:
        with self.asking() as client:
            return self.names(client.partition(self.topic, 0).isr_nodes)

    def replica(self, name: str) -> ReplicaStatus:
        """How a broker sees its own copy; ClusterError if it does not run."""
        return self.cluster.replica(self.topic, 0, self.broker(name))

    def log(self, name: str) -> list[Written]:
        """What is in a broker's files, running or not."""
        return written(self.cluster, self.broker(name), f"{self.topic}-0")

    def labels(self, name: str) -> list[str]:
        return [one.label for one in self.log(name)]

    # Waiting.

    def until(self, condition: Callable[[], object], what: str, timeout_s: float = WAIT_S) -> None:
        """Until something holds; what cannot be asked now does not hold."""
        last: list[str] = []

        def look() -> bool | None:
            try:
                return True if condition() else None
            except ClusterError as error:
                last[:] = [f" ({error.message})"]
                return None

        wait_for(look, timeout_s, lambda: f"{self.topic}: not {what}{''.join(last)}")

    def wait_leader(self, name: str | None) -> None:
        self.until(lambda: self.leader() == name, f"led by {name}")
        if name is not None:
            self.until(lambda: self.replica(name).role == "leader", f"{name} leads")

    def wait_isr(self, names: str) -> None:
        self.until(lambda: self.isr() == "".join(sorted(names)), f"an ISR of {names}")

    def wait_end(self, name: str, end: int) -> None:
        self.until(lambda: self.replica(name).leo == end, f"{name} ends at {end}")

    def wait_hw(self, name: str, offset: int) -> None:
        self.until(lambda: self.replica(name).hw == offset, f"{name} commits up to {offset}")

    def wait_settled(self, end: int) -> None:
        """Until every replica holds and knows everything below an offset."""
        for name in self._replicas:
            self.wait_end(name, end)
            self.wait_hw(name, end)

    # Producers.

    def send(
        self,
        *labels: str,
        acks: int = -1,
        to: str | None = None,
        timeout_ms: int = 30_000,
        batch: bytes | None = None,
    ) -> Told:
        """One batch; to the leader, as the controller knows it, unless `to` names a broker."""
        made = wire.batch(labels) if batch is None else batch
        error: ErrorCode | None
        try:
            broker = self.broker(to or self._leader_now())
            with self.connection(broker, timeout_ms / 1000 + 5) as connection:
                error, offset = wire.produce(connection, self.topic, made, acks, timeout_ms)
        except UnreachableError:
            error, offset = None, -1
        return self._note(Told(labels, acks, error, offset))

    def send_on(self, connection: Connection, *labels: str, acks: int) -> Told:
        """On a connection that is open already, to a broker that may not even read it."""
        error: ErrorCode | None
        try:
            made = wire.batch(labels)
            error, offset = wire.produce(connection, self.topic, made, acks, 30_000)
        except UnreachableError:
            error, offset = None, -1
        return self._note(Told(labels, acks, error, offset))

    def _note(self, told: Told) -> Told:
        self.told.append(told)
        return told

    def send_until_acknowledged(self, *labels: str, acks: int = -1) -> None:
        """As a producer with retries does."""

        def look() -> bool:
            self.told = [one for one in self.told if one.labels != labels]
            return self.send(*labels, acks=acks, timeout_ms=5000).is_acknowledged

        self.until(look, f"{labels} acknowledged")

    def begin_send(
        self, *labels: str, acks: int = -1, to: str | None = None, timeout_ms: int = 30_000
    ) -> Future[Told]:
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
            return [str(one.value, "utf-8") for one in read_all(client, self.topic, 0) if one.value]

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
        for folder in (files.log, files.unflushed):
            shutil.rmtree(folder, ignore_errors=True)

    def restart(self, *names: str) -> None:
        """Returns when the controller knows of them."""
        for name in names:
            self.cluster.restart(self.broker(name), wait=False)
        for name in names:
            self.wait_back(name)

    def cut(self, source: str, targets: str) -> None:
        """What `source` sends to these brokers does not arrive; "" are the clients."""
        ends: list[int | str] = [*self.brokers(targets)]
        self.cluster.cut(self.broker(source), ends or [CLIENTS])

    def part(self, one: str, others: str) -> None:
        """Neither hears of the other any more."""
        for other in others:
            for source, target in ((one, other), (other, one)):
                numbers = [self.broker(target)]
                self.cluster.ask(self.broker(source), "links", do="cut", to=numbers, both_ways=True)

    def delay(self, source: str, targets: str, seconds: float) -> None:
        self.cluster.delay(self.broker(source), seconds, self.brokers(targets))

    def heal(self, *names: str) -> None:
        chosen = self.brokers("".join(names)) if names else self.cluster.running()
        for broker in chosen:
            if self.cluster.is_running(broker):
                self.cluster.heal(broker)

    def cut_store(self, name: str) -> None:
        self.cluster.ask(self.broker(name), "store", do="cut")

    def elect(self, name: str) -> None:
        """Make one of the live replicas the leader, by its place in the assignment."""
        self._wanted.sort(key=lambda one: one != self.broker(name))
        with self.asking(ELECT_S) as client:
            wire.reassign(client, self.topic, self._wanted)
            # Its answer waits until all have heard of the new leader, and some may be deaf.
            with suppress(UnreachableError):
                wire.elect_preferred(client, self.topic)
        self.until(lambda: self.leader() == name, f"led by {name}")

    def move_to(self, replicas: str) -> None:
        """Other replicas, from now on."""
        self._replicas = "".join(sorted(replicas))
        self._wanted = self.brokers(replicas)
        with self.asking() as client:
            wire.reassign(client, self.topic, self._wanted)

    def unknown_commit(self, leader: str, followers: str, *labels: str) -> None:
        """Have records acknowledged that the followers do not know to be committed.

        A follower hears of a commit with the next answer, up to replica.fetch.wait.max.ms later;
        until then there is time to cut the way.
        """
        told = self.send(*labels, to=leader)
        self.cut(leader, followers)
        assert told.is_acknowledged, told
        end = told.offset + len(labels)
        assert self.replica(leader).hw == end
        for name in followers:
            status = self.replica(name)
            assert (status.leo, status.hw) == (end, told.offset), (name, status)

    # The end.

    def finish(self) -> None:
        """Mend everything, wait until all replicas agree, and judge."""
        self.mend()
        self.until(lambda: self.leader() is not None, "led by anybody")
        self.wait_isr(self._replicas)
        leader = self._leader_now()
        end = self.replica(leader).leo
        self.wait_settled(end)
        replicas = self.brokers(self._replicas)
        assert_equal_logs(self.cluster, replicas, f"{self.topic}-0", end)
        self.judge(self.read())

    def mend(self) -> None:
        """All brokers run, and all ways are open."""
        mend(self.cluster)

    def judge(self, kept: list[str]) -> None:
        """What became of the records is what the lab says of the same story."""
        expected = self.expected
        known = set(kept)
        promised = [one for one in self.told if one.is_acknowledged or not one.acks]
        sent = [label for one in promised for label in one.labels]
        lost = tuple(label for label in sent if label not in known)
        assert lost == expected.lost, f"the lab loses {expected.lost}, here {lost} are gone"
        twice = tuple(label for label, count in Counter(kept).items() if count > 1)
        assert twice == expected.duplicated
        if expected.outcome == "refused-kept":
            assert self.refused_kept(known) == expected.refused_kept

    def refused_kept(self, kept: set[str]) -> tuple[str, ...]:
        """Labels whose producer was told an error, and that are there."""
        refused = [one for one in self.told if one.error not in (None, ErrorCode.NONE)]
        return tuple(label for one in refused for label in one.labels if label in kept)

    def close(self) -> None:
        """Leave the cluster as the next story wants it."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        with self.asking() as client:
            known = [topic.name for topic in client.metadata().topics]
        for name in known:
            if name == self.topic:
                self.cluster.delete_topic(name)


def mend(cluster: Cluster) -> None:
    """All brokers run, see each other, and all ways are open."""
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
