"""Producers under chaos: each sends at its own rate and writes one ledger row per send.

A value names its producer and a sequence number, so no two sends are equal and duplicates can be
found.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from holdfast.ledger import LedgerProducer

ONCE: Final = "once"
"""The topic of patient idempotent producers: every record is there at most once, and in order."""
LEAST: Final = "at-least-once"
"""The topic of the other producers: a retry may write a record twice."""
RATE: Final = 200
"""Records per second and producer."""
STEP_S: Final = 0.02
LAST_ANSWERS_S: Final = 150.0
"""Longer than any message.timeout.ms below."""
PADDING: Final = bytes(range(64, 128)) * 8

CLIENT: Final[dict[str, Any]] = {
    "log_level": 0,  # brokers that are down are expected here
    "socket.timeout.ms": 6_000,
    "reconnect.backoff.max.ms": 1_000,
    "topic.metadata.refresh.interval.ms": 5_000,
}
"""Short timeouts: a disconnected link reports nothing."""
PRODUCER: Final[dict[str, Any]] = {
    **CLIENT,
    "linger.ms": 5,
    "request.timeout.ms": 5_000,
    "message.timeout.ms": 120_000,
    "queue.buffering.max.messages": 5_000,
}


@dataclass(frozen=True, slots=True)
class Role:
    """One producer: its name, its topic, and how it differs from the others."""

    name: str
    topic: str
    settings: Mapping[str, Any] = field(default_factory=dict)


_ONCE: Final = {"enable.idempotence": True}
_PLAIN: Final = {"enable.idempotence": False, "acks": "all"}
SAFE_ROLES: Final = (
    Role("once", ONCE, {**_ONCE, "compression.type": "lz4"}),
    Role("once-one-by-one", ONCE, {**_ONCE, "max.in.flight.requests.per.connection": 1}),
    Role("idempotent-hasty", LEAST, {**_ONCE, "message.timeout.ms": 4_000}),
    Role("plain-patient", LEAST, {**_PLAIN, "compression.type": "gzip"}),
    Role("plain-no-retry", LEAST, {**_PLAIN, "retries": 0, "compression.type": "zstd"}),
)
"""A hasty producer, or one that does not retry, has sends without an answer or with an error.

A hasty idempotent producer may write duplicates: librdkafka begins a new epoch when a message times
out, and sends under it the messages that were in flight (confluentinc/librdkafka#4953, #2188).
"""
_ONE: Final = {"enable.idempotence": False, "acks": "1"}
UNSAFE_ROLES: Final = (
    Role("leader-patient", LEAST, _ONE),
    Role("leader-hasty", LEAST, {**_ONE, "message.timeout.ms": 4_000}),
    Role("all-patient", LEAST, _PLAIN),
)


class Sender(threading.Thread):
    """One producer on a thread of its own."""

    def __init__(self, role: Role, bootstrap: str, ledger: Path, partitions: int) -> None:
        super().__init__(name=role.name, daemon=True)
        self.role = role
        self.problem = ""
        """Why it had to end early, in a sentence."""
        self.acknowledged = 0
        self._partitions = partitions
        self._ends = threading.Event()
        config = {"bootstrap.servers": bootstrap, "client.id": role.name, "error_cb": self._erred}
        self._producer = LedgerProducer({**PRODUCER, **config, **role.settings}, ledger=ledger)
        self._sent = 0

    def end(self) -> None:
        """Send no more; `join` waits for the last answers."""
        self._ends.set()

    def forget(self) -> None:
        """Wait for no answers."""
        self._producer.purge()

    def run(self) -> None:
        try:
            begun = time.monotonic()
            while not self._ends.is_set() and not self.problem:
                for _ in range(max(1, int(RATE * STEP_S))):
                    self._send()
                self._producer.poll(0)
                # A producer that had to wait does not catch up afterwards.
                begun = max(begun + STEP_S, time.monotonic() - 1.0)
                self._ends.wait(max(0.0, begun - time.monotonic()))
            waits = self._producer.flush(LAST_ANSWERS_S)
            if waits and not self.problem:
                self.problem = f"{waits} sends were never answered"
        except KafkaException as error:
            self.problem = self.problem or f"it could not send: {error}"

    def _send(self) -> None:
        number = self._sent
        value = b"%s %d " % (self.role.name.encode(), number)
        value += PADDING[: number * 37 % len(PADDING)]
        while not self._ends.is_set():
            try:
                self._producer.produce(
                    self.role.topic,
                    value,
                    b"%d" % (number % 100),
                    number % self._partitions,
                    on_delivery=self._delivered,
                )
            except BufferError:  # the queue is full: wait until a broker answers
                self._producer.poll(0.1)
            else:
                self._sent += 1
                return

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error is None:
            self.acknowledged += 1

    def _erred(self, error: KafkaError) -> None:
        """A fatal error: an idempotent producer can no longer keep its guarantee."""
        if error.fatal():
            self.problem = f"librdkafka gave up: {error.str()}"
