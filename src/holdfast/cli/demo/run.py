"""The demo's run: prints each step as it happens, and the report at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from holdfast.cli.demo.driver import Driver
from holdfast.cli.demo.flights import COUNT, TOPIC
from holdfast.cli.demo.patience import IDLE_S, Patience
from holdfast.cli.demo.report import report
from holdfast.cli.demo.traffic import Traffic
from holdfast.cli.errors import Failed
from holdfast.cluster import Cluster, ClusterError
from holdfast.ledger.errors import LedgerError

PARTITIONS: Final = 6
PAUSE_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Safe:
    """The settings that the README recommends."""

    is_safe: bool = True
    title: str = "acks=all, min.insync.replicas=2, no unclean election"
    producer: dict[str, Any] = field(default_factory=lambda: {"enable.idempotence": True})
    topic: dict[str, str] = field(default_factory=lambda: {"min.insync.replicas": "2"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsafe(Safe):
    """Unsafe settings that are common in practice."""

    is_safe: bool = False
    title: str = "acks=1, min.insync.replicas=1, unclean elections allowed"
    producer: dict[str, Any] = field(default_factory=lambda: {"acks": "1"})
    topic: dict[str, str] = field(
        default_factory=lambda: {
            "min.insync.replicas": "1",
            "unclean.leader.election.enable": "true",
        }
    )


def run_demo(console: Console, folder: Path, settings: Safe) -> bool:
    """Whether the result is what these settings guarantee."""
    try:
        return _Demo(console, folder, settings).run()
    except (ClusterError, LedgerError) as error:
        raise Failed(error.message, hint=error.hint or f"see {folder}") from None


class _Demo:
    def __init__(self, console: Console, folder: Path, settings: Safe) -> None:
        self.console = console
        self.folder = folder
        self.settings = settings
        self.begun = time.monotonic()
        config = {"replica.lag.time.max.ms": "2000"}
        self.cluster = Cluster(folder / "cluster", brokers=3, config=config, trace=True)

    def run(self) -> bool:
        self.say(f"Settings: {self.settings.title}.")
        with self.cluster as cluster:
            cluster.create_topic(TOPIC, PARTITIONS, config=self.settings.topic)
            took = time.monotonic() - self.begun
            self.say(f"Three brokers and a topic with {PARTITIONS} partitions after {took:.1f} s.")
            ledger = self.folder / "ledger"
            self.traffic = Traffic(cluster.bootstrap, ledger, self.settings.producer)
            self.driver = Driver(
                cluster.bootstrap, self.folder, goes_on_after_loss=not self.settings.is_safe
            )
            with self.driver, self.traffic:
                try:
                    self._stream()
                except (ClusterError, LedgerError, Failed):
                    for line in self.driver.last_lines():
                        self.console.print(line, markup=False, soft_wrap=True)
                    raise
        return report(self.console, self.folder, self.cluster, self.settings.is_safe)

    def _stream(self) -> None:
        self.say(f"{COUNT:,} flights of 2013 begin to stream; Spark starts to land them.")
        self.traffic.allow(0.3)
        self._wait("records", lambda: len(self.traffic.last_answer_s) == PARTITIONS)
        self._until(0.15)
        (self._kill_leader if self.settings.is_safe else self._depose_leader)()
        self.traffic.allow(0.85)
        self._wait("rows in the table", lambda: self.driver.landed() > 0)
        self._kill_driver()
        self._until(0.6)
        self._fail_power()
        self.traffic.allow(1.0)
        self._wait("the last answers", lambda: self.traffic.is_done)
        for partition in range(PARTITIONS):
            self._wait_isr(partition, 3)
        sent, acked = self.traffic.sent, self.traffic.acknowledged
        self.say(f"{sent:,} flights sent, {acked:,} acknowledged; all replicas are in sync.")
        self._wait("Spark to catch up", lambda: self.driver.landed() >= self._end())
        self.driver.stop()
        self.say("Spark has landed them all. Now the audit.")

    def _kill_leader(self) -> None:
        leader = self.cluster.leader(TOPIC, 0)
        led = [one for one in range(PARTITIONS) if self.cluster.leader(TOPIC, one) == leader]
        self.cluster.kill(leader)
        killed = time.monotonic()
        self.say(f"Broker {leader} leads {len(led)} partitions: kill -9.")
        answers = self.traffic.last_answer_s
        self._wait("new leaders", lambda: all(answers[one] > killed for one in led))
        took = time.monotonic() - killed
        self.say(f"All partitions acknowledge again after {took * 1000:.0f} ms.")
        self.cluster.restart(leader)
        self.say(f"Broker {leader} is back.")

    def _depose_leader(self) -> None:
        """Disconnect a leader from its followers, let it acknowledge alone, and kill it.

        The leader must also be the controller: a leader that cannot reach the controller could not
        shrink its ISR to itself.
        """
        leader = self.cluster.controller()
        others = [one for one in self.cluster.brokers if one != leader]
        led = next(one for one in range(PARTITIONS) if self.cluster.leader(TOPIC, one) == leader)
        self.cluster.partition([leader], others)
        self.say(f"Broker {leader} leads partition {led} and loses touch with its followers.")
        answers = self.traffic.last_answer_s
        self._wait_isr(led, 1)
        alone = time.monotonic()
        self._wait("an acknowledgement of the isolated leader", lambda: answers[led] > alone)
        self.cluster.kill(leader)
        killed = time.monotonic()
        self.say(f"It acknowledged alone for a while. Broker {leader}: kill -9.")
        self._wait("a new leader", lambda: answers[led] > killed)
        self.say("A follower that never saw those records leads now, by an unclean election.")
        self.cluster.heal()
        self.cluster.restart(leader)
        self.say(f"Broker {leader} is back, and truncates its log to match the new leader's.")

    def _kill_driver(self) -> None:
        rows = self.driver.landed()
        self.driver.kill()
        self.driver.start()
        self.say(f"Spark has landed {rows:,} flights. Its driver: kill -9, and started again.")

    def _fail_power(self) -> None:
        leader = self.cluster.leader(TOPIC, 0)
        follower = next(one for one in self.cluster.brokers if one != leader)
        truncated = self.cluster.power_loss(follower)[follower]
        gone = sum(was - kept for name, (was, kept) in truncated.items() if name.endswith(".log"))
        self.say(f"Broker {follower} loses its power, and {gone / 1e6:.1f} MB it had not flushed.")
        self.cluster.restart(follower)
        self.say(f"Broker {follower} is back, and copies what it lost from the others.")

    # Output and waiting.

    def say(self, words: str) -> None:
        """Print one line, with the time."""
        self.console.print(f"[dim]{time.monotonic() - self.begun:5.1f} s[/]  {words}")

    def _until(self, share: float) -> None:
        self._wait("flights to be sent", lambda: self.traffic.sent >= COUNT * share)

    def _end(self) -> int:
        """The number of offsets in the topic, all partitions together."""
        leaders = {one: self.cluster.leader(TOPIC, one) for one in range(PARTITIONS)}
        return sum(self.cluster.replica(TOPIC, *place).hw for place in leaders.items())

    def _wait_isr(self, partition: int, size: int) -> None:
        self._wait(
            f"an ISR of {size} of partition {partition}",
            lambda: len(self.cluster.isr(TOPIC, partition)) == size,
        )

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait as long as anything makes progress: records, answers, the table."""
        patience = Patience(self._progress)
        while not condition():
            if self.traffic.failure is not None:
                raise self.traffic.failure
            self.driver.check()
            if patience.is_over:
                raise Failed(f"nothing has moved for {IDLE_S:.0f} s while waiting for {what}")
            time.sleep(PAUSE_S)

    def _progress(self) -> object:
        traffic = self.traffic
        return traffic.sent, traffic.acknowledged, self.driver.landed(), self.driver.progress()
