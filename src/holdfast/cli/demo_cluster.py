"""The cluster's part of the tour: real brokers, real traffic, a leader killed, nothing lost.

Every record that was acknowledged is noted with its offset, and looked for at the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.table import Table

from holdfast.cli.demo_parts import heading
from holdfast.cli.errors import BadInput
from holdfast.cluster import Cluster, ClusterError

TOPIC = "orders"
PARTITIONS = 6
BATCH = 50
CALM_S = 2.0
DEADLINE_S = 30.0


class Traffic:
    """A producer for each partition: sends acks=all batches until it is told to stop."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stop = threading.Event()
        self.last_answer_s = [0.0] * PARTITIONS
        """When each partition last acknowledged something."""
        self._threads = [
            threading.Thread(target=self._send, args=(partition,), daemon=True)
            for partition in range(PARTITIONS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _send(self, partition: int) -> None:
        number = 0
        while not self._stop.is_set():
            values = [f"order {partition}-{number + place}" for place in range(BATCH)]
            try:
                self._cluster.produce(TOPIC, values, partition)
            except (ClusterError, OSError):
                # As a careful producer does: what was not acknowledged is sent again.
                self._stop.wait(0.01)
                continue
            number += BATCH
            self.last_answer_s[partition] = time.monotonic()

    def wait(self, what: str, condition: Callable[[], bool]) -> float:
        """How long it took until the condition held."""
        begun = time.monotonic()
        while not condition():
            if time.monotonic() - begun > DEADLINE_S:
                raise ClusterError(f"{what}: not within {DEADLINE_S:.0f} s")
            time.sleep(0.005)
        return time.monotonic() - begun


def tell(console: Console) -> bool:
    """Whether every acknowledged record was found."""
    heading(console, "1. A cluster of three brokers, and a leader that dies")
    begun = time.monotonic()
    try:
        with Cluster() as cluster:
            cluster.create_topic(TOPIC, PARTITIONS)
            took = time.monotonic() - begun
            console.print(f"Three brokers and a topic with {PARTITIONS} partitions: {took:.1f} s.")
            return _tell(console, cluster)
    except ClusterError as error:
        raise BadInput(str(error)) from None


def _tell(console: Console, cluster: Cluster) -> bool:
    ledger = cluster.ledger
    with Traffic(cluster) as traffic:
        traffic.wait("the first answers", lambda: all(traffic.last_answer_s))
        time.sleep(CALM_S)
        leader = cluster.leader(TOPIC, 0)
        console.print(
            f"{len(ledger.promises):,} records acknowledged by acks=all. "
            f"Broker {leader} leads partition 0: kill -9."
        )
        led = [one for one in range(PARTITIONS) if cluster.leader(TOPIC, one) == leader]
        cluster.kill(leader)
        killed = time.monotonic()
        away = traffic.wait(
            "a new leader's answer", lambda: all(traffic.last_answer_s[one] > killed for one in led)
        )
        heir = cluster.leader(TOPIC, 0)
        console.print(
            f"Broker {heir} leads now; all partitions acknowledge again after {away * 1000:.0f} ms."
        )
        time.sleep(CALM_S)
        cluster.restart(leader)
        back = traffic.wait("the ISR", lambda: _is_whole(cluster))
        console.print(f"Broker {leader} is back, has caught up and is in sync: {back:.1f} s.")
        time.sleep(CALM_S / 2)
    return _report(console, cluster)


def _is_whole(cluster: Cluster) -> bool:
    return all(len(cluster.isr(TOPIC, one)) == 3 for one in range(PARTITIONS))


def _report(console: Console, cluster: Cluster) -> bool:
    findings = cluster.acked_loss()
    promised = len(cluster.ledger.promises)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("acknowledged", "found", "lost", "refused batches, sent again"):
        table.add_column(title, justify="right")
    table.add_row(
        f"{promised:,}",
        f"{promised - len(findings):,}",
        f"[{'red' if findings else 'green'}]{len(findings):,}[/]",
        f"{-(-cluster.ledger.refused // BATCH):,}",
    )
    console.print(table)
    for finding in findings[:10]:
        console.print(f"  {finding}", markup=False)
    return not findings
