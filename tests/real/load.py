"""Produces continuously while a test breaks brokers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from holdfast.cluster import Cluster
from holdfast.cluster.waiting import wait_for

PAUSE_S = 0.002
WAIT_S = 300.0
CLIENT = {
    "message.timeout.ms": 60_000,
    "socket.connection.setup.timeout.ms": 3000,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.interval.ms": 1000,
}


class Load:
    """A thread that produces with acks=all and idempotence, and keeps the cluster's ledger."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.sent = 0
        self.errors: list[str] = []

    def start(self, topic: str) -> None:
        """Write to all partitions of a topic until `stop`."""
        self._thread = threading.Thread(target=self._run, args=(topic,), name="load", daemon=True)
        self._thread.start()
        self.wait_more(10)

    def _run(self, topic: str) -> None:
        producer = self._cluster.producer(CLIENT)

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                self.errors.append(str(error))

        while not self._stop.wait(PAUSE_S):
            producer.produce(topic, f"record {self.sent}", on_delivery=delivered)
            self.sent += 1
        if producer.flush(WAIT_S):
            self.errors.append("records without an answer")

    @property
    def acknowledged(self) -> int:
        return len(self._cluster.ledger.acknowledgements)

    def wait_more(self, count: int) -> None:
        """Until that many more records have been acknowledged: it goes on."""
        wanted = self.acknowledged + count
        wait_for(
            lambda: True if self.acknowledged >= wanted else None,
            WAIT_S,
            lambda: f"{self.acknowledged} of {wanted} records are acknowledged",
        )

    def during(self, work: Callable[[], None]) -> None:
        """Do something, and see that writing goes on afterwards."""
        work()
        self.wait_more(20)

    def stop(self) -> None:
        """Every record has an answer, and a good one."""
        if self._thread is None:
            return
        self._stop.set()
        self._thread.join()
        self._thread = None
        assert not self.errors, self.errors[:3]
