"""Carries out a phase: begins each fault at its time, and ends it when its duration is over.

A broker has one fault at a time. A fault is skipped, and reported as skipped, if its target has a
fault already or if it would break more brokers at the same time than the phase allows.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from holdfast.cluster.chaos.schedule import (
    ALL,
    CONTROLLER,
    DEPOSE,
    LEADER,
    POWER_LOSS,
    ROLLING,
    Fault,
    Phase,
)
from holdfast.cluster.cluster import Cluster
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.faults import CLIENTS
from holdfast.cluster.status import cluster_status
from holdfast.cluster.waiting import wait_for

STOP_S: Final = 20.0
"""A controlled shutdown waits this long for a controller that does not answer."""
REST_S: Final = 90.0
ALONE_S: Final = 1.5
"""How long a leader acknowledges alone before it is killed."""
DISK: Final = ("io-error", "disk-full")
PROCESS: Final = ("kill", POWER_LOSS, "stop", DEPOSE, *DISK)
"""Undone by a restart."""
NETWORK: Final = ("isolate", "partition", "one-way", "deaf", "delay", "drop")
UNDONE_BY_HEAL: Final = (*NETWORK, "store-cut", *DISK)
"""Ended by `heal`, which ends all the others of these as well."""

Say = Callable[[str], None]


class Network(Protocol):
    """The network between brokers, where it is not loopback with injected link faults."""

    def strike(self, kind: str, broker: int) -> None:
        """Apply one of NETWORK; it also breaks the connection to the coordination store."""

    def heal(self) -> None:
        """End all faults."""


class Breaker:
    """Injects faults into one cluster and ends them, on one thread."""

    def __init__(
        self, cluster: Cluster, topic: str, say: Say, network: Network | None = None
    ) -> None:
        self._cluster = cluster
        self._network = network
        self._topic = topic
        """Faults that target a leader target a leader of this topic."""
        self._say = say
        self._broken: dict[int, Fault] = {}
        """The current fault of each broker."""
        self.struck: Counter[str] = Counter()
        """Faults by kind."""
        self.problems: list[str] = []
        """Problems that no injected fault explains, in sentences."""

    def strike(self, phase: Phase) -> None:
        """Run a phase from its first fault to its last repair."""
        begun = time.monotonic()
        order = itertools.count()
        due: list[tuple[float, int, Fault, tuple[int, ...]]] = [
            (fault.at_s, next(order), fault, ()) for fault in phase.faults
        ]
        while due:  # at most two entries per fault: its beginning and its end
            at_s, _, fault, struck = heapq.heappop(due)
            time.sleep(max(0.0, begun + at_s - time.monotonic()))
            if struck:
                self._end(fault, struck)
                continue
            struck = self._begin(fault, phase.most_at_once)
            if struck:
                ends_s = time.monotonic() - begun + fault.lasts_s
                heapq.heappush(due, (ends_s, next(order), fault, struck))

    # One fault.

    def _begin(self, fault: Fault, most_at_once: int) -> tuple[int, ...]:
        """The brokers that the fault hit; none if it was skipped."""
        try:
            brokers = self._targets(fault)
        except ClusterError as error:
            return self._left_out(fault, _short(error))
        if taken := [one for one in brokers if one in self._broken]:
            return self._left_out(fault, f"broker {taken[0]} has {self._broken[taken[0]].kind}")
        if fault.target != ALL and len(self._broken) >= most_at_once:
            return self._left_out(fault, f"{len(self._broken)} broken already")
        whom = "" if fault.target in brokers else f" (broker {', '.join(map(str, brokers))})"
        self._say(f"{fault}{whom}")
        for broker in brokers:
            self._broken[broker] = fault
        self.struck[fault.kind] += 1
        try:
            self._do(fault, brokers)
        except ClusterError as error:
            self._say(f"  {fault.kind}: {_short(error)}")
        return brokers

    def _left_out(self, fault: Fault, reason: str) -> tuple[int, ...]:
        self._say(f"{fault}: left out, {reason}")
        return ()

    def _targets(self, fault: Fault) -> tuple[int, ...]:
        if fault.target == ALL:
            return self._cluster.brokers
        if fault.target == CONTROLLER:
            return (self._cluster.controller(timeout_s=0),)
        if fault.target == LEADER:
            return (self._cluster.leader(self._topic, fault.partition, timeout_s=0),)
        assert isinstance(fault.target, int)
        return (fault.target,)

    def _do(self, fault: Fault, brokers: tuple[int, ...]) -> None:
        if fault.kind == POWER_LOSS:
            self._cluster.power_loss(*brokers)
        elif fault.kind == ROLLING:
            self._roll()
        elif fault.kind == "stop":
            self._stop(brokers[0])
        elif self._network is not None and fault.kind in NETWORK:
            self._network.strike(fault.kind, brokers[0])
        else:
            _DOINGS[fault.kind](self._cluster, brokers[0], fault.amount)

    def _stop(self, broker: int) -> None:
        try:
            self._cluster.stop(broker, STOP_S)
        except ClusterError as error:
            self._say(f"  {error.message}: killed")
            self._cluster.kill(broker)

    def _roll(self) -> None:
        for broker in self._cluster.brokers:
            self._stop(broker)
            self._cluster.restart(broker)
            self.wait_in_sync()

    def _end(self, fault: Fault, brokers: tuple[int, ...]) -> None:
        for broker in brokers:
            self._broken.pop(broker, None)
        try:
            if fault.kind == "pause":
                self._cluster.resume(brokers[0])
            elif fault.kind in PROCESS:
                self._restart(brokers)
            if fault.kind in (*UNDONE_BY_HEAL, DEPOSE):
                self._end_faults()
                for broker, other in self._broken.items():  # ended as well: begin again
                    if other.kind in UNDONE_BY_HEAL:
                        self._do(other, (broker,))
        except ClusterError as error:
            self._say(f"  {_short(error)}")
        self._say(f"{fault.kind} is over: broker {', '.join(map(str, brokers))}")

    def _end_faults(self) -> None:
        """End the faults of all brokers: a link has two ends. A starting broker has none."""
        if self._network is not None:
            self._network.heal()
        for broker in self._cluster.running():
            with contextlib.suppress(ClusterError):
                self._cluster.heal(broker)

    def _restart(self, brokers: tuple[int, ...]) -> None:
        """A broker whose disk failed may have stopped by itself, or still be running."""
        for broker in brokers:
            if self._cluster.is_running(broker):
                self._stop(broker)
        self._cluster.restart(*brokers, wait=False)

    # Repair.

    def repair(self) -> bool:
        """Wait until every broker runs and is in sync; false, and a problem, if too late."""
        cluster = self._cluster
        for broker, words in cluster.died().items():
            if broker not in self._broken or self._broken[broker].kind not in DISK:
                self.problems.append(f"broker {broker} exited unexpectedly, {words}")
        try:
            for broker, fault in self._broken.items():
                if fault.kind == "pause":
                    cluster.resume(broker)
            self._end_faults()
            down = [one for one in cluster.brokers if not cluster.is_running(one)]
            failed = [one for one, fault in self._broken.items() if fault.kind in DISK]
            self._restart(tuple(dict.fromkeys([*down, *failed])))
            self._broken.clear()
            cluster.wait_ready()
            self.wait_in_sync()
        except ClusterError as error:
            self.problems.append(f"after every fault was ended: {error.message}")
            return False
        return True

    def wait_in_sync(self) -> None:
        """Wait until all replicas are in sync; ClusterTimeoutError lists those that are not."""
        lagging: list[str] = []

        def look() -> bool | None:
            lagging[:] = _lagging(self._cluster)
            return None if lagging else True

        wait_for(look, REST_S, lambda: f"not in sync: {', '.join(lagging)}")


def _short(error: ClusterError) -> str:
    """The message without the path of the control socket."""
    return error.message.partition(": ")[0]


def _make_deaf(cluster: Cluster, broker: int, _: float) -> None:
    for other in cluster.running():
        if other != broker:
            cluster.cut(other, [broker])


def _drop(cluster: Cluster, broker: int, probability: float) -> None:
    cluster.drop(broker, probability)
    cluster.drop(broker, probability, [CLIENTS])


def _depose(cluster: Cluster, broker: int, _: float) -> None:
    cluster.partition([broker])
    time.sleep(ALONE_S)
    cluster.kill(broker)


_DOINGS: Final[dict[str, Callable[[Cluster, int, float], None]]] = {
    "kill": lambda cluster, broker, _: cluster.kill(broker),
    "pause": lambda cluster, broker, _: cluster.pause(broker),
    "isolate": lambda cluster, broker, _: cluster.isolate(broker),
    "partition": lambda cluster, broker, _: cluster.partition([broker]),
    "one-way": lambda cluster, broker, _: cluster.cut(broker),
    "deaf": _make_deaf,
    "delay": lambda cluster, broker, seconds: cluster.delay(broker, seconds),
    "drop": _drop,
    "store-cut": lambda cluster, broker, _: cluster.cut_store(broker),
    "expire": lambda cluster, broker, _: cluster.expire_session(broker),
    "io-error": lambda cluster, broker, _: cluster.io_error(broker),
    "disk-full": lambda cluster, broker, _: cluster.disk_full(broker),
    DEPOSE: _depose,
}


def _lagging(cluster: Cluster) -> list[str]:
    count = len(cluster.brokers)
    status = cluster_status(cluster)
    lagging = [
        f"broker {one['id']} ({one['state']})" for one in status["brokers"] if not one["epoch"]
    ]
    return lagging + [
        f"{one['partition']} {one['isr']}"
        for one in status["partitions"]
        if len(one["isr"]) < count or len(one["replicas"]) < count or one["leader"] < 0
    ]
