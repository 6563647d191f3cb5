"""A consumer group under chaos: members commit what they have read, leave, and join again."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from holdfast.cluster.chaos.senders import CLIENT
from holdfast.ledger import LedgerConsumer, read_committed

GROUP: Final = "chaos"
MEMBERS: Final = 3
CONSUMER: Final[dict[str, Any]] = {
    **CLIENT,
    "group.id": GROUP,
    "session.timeout.ms": 6_000,
    "heartbeat.interval.ms": 500,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
POLL_S: Final = 0.2
MOST_POLLED: Final = 500

Ends = Mapping[tuple[str, int], int]
"""By topic and partition: the next offset."""


class Reader(threading.Thread):
    """One member on a thread of its own; restless members leave the group now and then."""

    def __init__(
        self, number: int, topics: Sequence[str], bootstrap: str, ledger: Path, rng: Random | None
    ) -> None:
        super().__init__(name=f"reader-{number}", daemon=True)
        self.delivered: dict[tuple[str, int], int] = {}
        """The offset after the last record that was delivered."""
        self.problem = ""
        self._topics = list(topics)
        self._config = {**CONSUMER, "bootstrap.servers": bootstrap, "client.id": self.name}
        self._ledger = ledger
        self._rng = rng
        self._ends = threading.Event()

    def end(self) -> None:
        """Stop reading."""
        self._ends.set()

    def run(self) -> None:
        try:
            while not self._ends.is_set():
                self._belong()
        except KafkaException as error:
            self.problem = f"it could not go on: {error}"

    def _belong(self) -> None:
        """Stay a member, for a while or until the end."""
        consumer = LedgerConsumer(self._config, ledger=self._ledger)
        stays_s = float("inf") if self._rng is None else self._rng.uniform(3.0, 12.0)
        leaves = time.monotonic() + stays_s
        try:
            consumer.subscribe(self._topics)
            while not self._ends.is_set() and time.monotonic() < leaves:
                self._read(consumer)
        finally:
            consumer.close()

    def _read(self, consumer: LedgerConsumer) -> None:
        found = False
        for message in consumer.consume(MOST_POLLED, POLL_S):
            if message.error() is None:
                place = (str(message.topic()), message.partition() or 0)
                self.delivered[place] = (message.offset() or 0) + 1
                found = True
        if found:
            try:
                consumer.commit(asynchronous=True)
            except KafkaException:
                return  # the next commit covers what was delivered


def delivered(readers: Sequence[Reader]) -> dict[tuple[str, int], int]:
    """How far the group has read."""
    ends: dict[tuple[str, int], int] = {}
    for reader in readers:
        for place, end in list(reader.delivered.items()):
            ends[place] = max(end, ends.get(place, 0))
    return ends


def forgotten_commits(bootstrap: str, ledger: Path, ends: Ends, timeout_s: float) -> list[str]:
    """Offsets that the coordinator confirmed as committed and no longer returns."""
    confirmed: dict[tuple[str, int], int] = {}
    for batch in read_committed(ledger):
        for row in batch.to_pylist():
            if row["result"] == "committed":
                place = (row["topic"], row["partition"])
                confirmed[place] = max(row["offset"], confirmed.get(place, 0))
    consumer = Consumer({**CONSUMER, "bootstrap.servers": bootstrap})
    try:
        asked = [TopicPartition(*place) for place in ends]
        known = {
            (one.topic, one.partition): one.offset for one in consumer.committed(asked, timeout_s)
        }
    finally:
        consumer.close()
    return [
        f"{topic}-{partition}: offset {offset} was committed, "
        f"the coordinator has {known[topic, partition]}"
        for (topic, partition), offset in sorted(confirmed.items())
        if known[topic, partition] < offset
    ]
