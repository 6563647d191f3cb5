"""The named brokers of a scenario on real brokers: reads their state and waits for changes.

The controller, K, stays connected unless a scenario disconnects it; the replicas are called A, B
and C as in the lab.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from holdfast.cluster import Client, Cluster, ClusterError, ReplicaStatus
from holdfast.cluster.client.client import TIMEOUT_S
from holdfast.cluster.processes.ports import HOST
from holdfast.cluster.waiting import wait_for
from tests.real.disks import Written, written

WAIT_S = 300.0
"""Long enough for a busy machine: only a broken cluster reaches it."""
CONTROLLER = "K"


class Cast:
    """The brokers of a scenario, by name, and its topic."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster = cluster
        self.topic = topic
        self._numbers: dict[str, int] = {}
        self._replicas = ""
        self._wanted: list[int] = []

    # Who is who.

    def cast(self) -> None:
        """Give the brokers their names: the controller is K."""
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
            self.until(partial(look, name), f"{name} follows {leader}")

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
            return self.names([client.partition(self.topic, 0).leader_id]) or None

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
