"""One chaos run: brokers, clients, phases of faults, quiescence, and what is to be checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from holdfast.cluster.chaos.fault_injection import Breaker, Network, Say
from holdfast.cluster.chaos.readers import MEMBERS, Ends, Reader, delivered, forgotten_commits
from holdfast.cluster.chaos.schedule import KINDS, Limits, phases
from holdfast.cluster.chaos.senders import SAFE_ROLES, UNSAFE_ROLES, Sender
from holdfast.cluster.cluster import Cluster
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.processes.lifecycle import Home
from holdfast.cluster.settings_for_tests import TEST_CONFIG
from holdfast.cluster.status import cluster_status
from holdfast.cluster.waiting import wait_for

PARTITIONS: Final = 3
DRAIN_S: Final = 90.0
TRACEBACK: Final = "Traceback (most recent call last)"
FIRST: Final = 10
"""Each producer gets this many acknowledgements before the first fault: some in every partition."""
GOODBYE_S: Final = 10.0
CONFIG: Final = {**TEST_CONFIG, "controlled.shutdown.retry.backoff.ms": "1000"}
"""Limits how long a stopping broker waits for a controller that does not answer."""
TOPIC: Final = {"segment.bytes": "1048576"}
"""Small enough that brokers roll and truncate segments."""
UNSAFE_TOPIC: Final = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The options of a run."""

    folder: Path
    seed: int
    seconds: float
    """How long new phases begin; the last phase and quiescence come after that."""
    is_safe: bool = True
    kinds: tuple[str, ...] = tuple(KINDS)
    """The kinds of fault that may be drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """What to check, and what was observed during the run."""

    plan: Plan
    logs: Mapping[str, Path]
    """The log directory of every broker; all brokers have stopped."""
    ledger: Path
    consumed: Path
    traces: Path
    phases: int
    faults: Mapping[str, int]
    problems: tuple[str, ...]
    """Problems that do not depend on the logs, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where the brokers run, and the network between them, if it is not loopback."""

    homes: Mapping[int, Home]
    store: str
    network: Network


def play(plan: Plan, say: Say, ground: Ground | None = None) -> Happened:
    """Run it until all brokers have stopped. KeyboardInterrupt ends everything immediately."""
    return _ChaosRun(plan, say, ground).play()


class _ChaosRun:
    def __init__(self, plan: Plan, say: Say, ground: Ground | None) -> None:
        self.plan, self.begun = plan, time.monotonic()
        self._say = say
        folder = plan.folder
        self.cluster = Cluster(
            folder / "cluster",
            brokers=3,
            config=CONFIG,
            trace=True,
            homes=ground.homes if ground else None,
            store=ground.store if ground else None,
        )
        self.ledger, self.consumed = folder / "ledger", folder / "consumed"
        self.roles = SAFE_ROLES if plan.is_safe else UNSAFE_ROLES
        self.topics = list(dict.fromkeys(role.topic for role in self.roles))
        network = ground.network if ground else None
        self.breaker = Breaker(self.cluster, self.topics[0], self.say, network)
        self.senders: list[Sender] = []
        self.readers: list[Reader] = []
        self.phases = 0

    def say(self, words: str) -> None:
        """Print a line with the time."""
        self._say(f"{time.monotonic() - self.begun:6.1f} s  {words}")

    def play(self) -> Happened:
        is_over = False
        try:
            self.cluster.start()
            self._begin_traffic()
            self._break()
            self._end_traffic()
            is_over = True
        except ClusterError as error:
            self.breaker.problems.append(error.message)
        finally:
            self._leave(is_over=is_over)
            self.cluster.close(clean=is_over)
        return self._happened()

    def _begin_traffic(self) -> None:
        config = TOPIC if self.plan.is_safe else TOPIC | UNSAFE_TOPIC
        for topic in self.topics:
            self.cluster.create_topic(topic, PARTITIONS, config=config)
        self.breaker.wait_in_sync()
        bootstrap = self.cluster.bootstrap
        self.senders = [Sender(role, bootstrap, self.ledger, PARTITIONS) for role in self.roles]
        for number in range(MEMBERS):
            rng = Random(self.plan.seed) if number == 0 else None  # noqa: S311  # no secret
            self.readers.append(Reader(number, self.topics, bootstrap, self.consumed, rng))
        for thread in (*self.senders, *self.readers):
            thread.start()
        wait_for(
            lambda: min(sender.acknowledged for sender in self.senders) >= FIRST or None,
            DRAIN_S,
            lambda: "a producer has no answers before anything is broken",
        )
        names = ", ".join(role.name for role in self.roles)
        self.say(f"three brokers; producers {names}; a group of {MEMBERS} consumers")

    def _break(self) -> None:
        plan = self.plan
        limits = Limits(
            brokers=self.cluster.brokers,
            partitions=PARTITIONS,
            is_safe=plan.is_safe,
            kinds=plan.kinds,
        )
        for phase in phases(plan.seed, limits):
            if time.monotonic() - self.begun >= plan.seconds:
                return
            most = phase.most_at_once
            self.say(f"phase {phase.number}, {most} broken at the same time at most")
            self.breaker.strike(phase)
            self.phases += 1
            repair_began = time.monotonic()
            if not self.breaker.repair():
                return
            took_s = time.monotonic() - repair_began
            acked = sum(sender.acknowledged for sender in self.senders)
            self.say(f"all in sync again after {took_s:.1f} s; {acked:,} acknowledged so far")

    def _end_traffic(self) -> None:
        self.say("no more faults; waiting for the last answers and deliveries")
        for sender in self.senders:
            sender.end()
        for sender in self.senders:
            sender.join()
        ends = self._ends()
        self.say("all answers are there, and all copies end at the same offset")
        wait_for(
            lambda: self._has_all(ends) or None,
            DRAIN_S,
            lambda: f"the group has received up to {delivered(self.readers)} of {ends}",
        )
        self.say("the group has everything")
        for reader in self.readers:
            reader.end()
        for reader in self.readers:
            reader.join(DRAIN_S)
            if reader.is_alive():
                self.say(f"{reader.name} hangs in librdkafka and is abandoned")
        if self.plan.is_safe:  # otherwise logs shrink, and committed offsets with them
            bootstrap = self.cluster.bootstrap
            self.breaker.problems += forgotten_commits(bootstrap, self.consumed, ends, GOODBYE_S)

    def _has_all(self, ends: Ends) -> bool:
        """Whether the group has read every log to its end."""
        given = delivered(self.readers)
        return all(given.get(place, 0) >= end for place, end in ends.items())

    def _ends(self) -> dict[tuple[str, int], int]:
        """The end of every log, once all replicas agree on it."""

        def look() -> dict[tuple[str, int], int] | None:
            ends: dict[tuple[str, int], int] = {}
            for one in cluster_status(self.cluster)["partitions"]:
                numbers = [(copy["leo"], copy["hw"]) for copy in one["replicas"].values()]
                [end, *_], *_ = numbers
                if any(number != (end, end) for number in numbers):
                    return None
                topic, _, partition = one["partition"].rpartition("-")
                if topic in self.topics and end:
                    ends[topic, int(partition)] = end
            return ends

        return wait_for(look, DRAIN_S, lambda: "the replicas' logs do not end at the same offset")

    def _leave(self, *, is_over: bool) -> None:
        """Stop the clients first: they cannot leave their group once the brokers have stopped."""
        for sender in self.senders:
            sender.end()
            if not is_over:
                sender.forget()
        for reader in self.readers:
            reader.end()
        for thread in (*self.senders, *self.readers):
            if thread.is_alive():
                thread.join(GOODBYE_S)

    def _happened(self) -> Happened:
        clients: list[Sender | Reader] = [*self.senders, *self.readers]
        client_problems = [f"{one.name}: {one.problem}" for one in clients if one.problem]
        return Happened(
            plan=self.plan,
            logs={f"b{one}": self.cluster.files(one).log for one in self.cluster.brokers},
            ledger=self.ledger,
            consumed=self.consumed,
            traces=self.cluster.data_dir / "traces",
            phases=self.phases,
            faults=dict(sorted(self.breaker.struck.items())),
            problems=(*self.breaker.problems, *client_problems, *self._bugs()),
        )

    def _bugs(self) -> Iterator[str]:
        """Messages of brokers that only a bug in Holdfast causes."""
        for broker in self.cluster.brokers:
            path = self.cluster.files(broker).output
            if path.exists() and TRACEBACK in path.read_text(encoding="utf-8", errors="replace"):
                yield f"broker {broker} has met a bug: see {path}"
