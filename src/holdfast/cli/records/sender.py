"""Sends the records of `produce` and waits for their acknowledgements."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from holdfast.cli.asking import say
from holdfast.cli.records.input import Input
from holdfast.cluster.admin.connection import Connection
from holdfast.cluster.admin.errors import RefusedError, error_of, reason_of

FULL_S: Final = 0.5
PARTITIONER_DECIDES: Final = -1
MOST_NAMED: Final = 10
"""Errors that get a line of their own; the others are counted."""


class Sender:
    """A producer, and what became of its records."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        partition: int | None,
        headers: Sequence[tuple[str, str | bytes | None]],
        report: Callable[[str], None] | None,
    ) -> None:
        self.acknowledged = 0
        self._failures: list[str] = []
        self._failed = 0
        self._topic = topic
        self._partition = PARTITIONER_DECIDES if partition is None else partition
        self._headers = list(headers)
        self._report = report
        config: dict[str, Any] = {"linger.ms": 5, **connection.client_config(say)}
        if not {"acks", "request.required.acks", "enable.idempotence"} & set(config):
            config["enable.idempotence"] = True  # as Kafka's own producer: no duplicates on retry
        try:
            self._producer = Producer(config)
        except KafkaException as error:
            raise error_of("produce", error.args[0]) from None

    def send(self, records: Iterable[Input]) -> None:
        """RefusedError if a record was not acknowledged: it says which one, and why."""
        for one in records:
            self._send(one)
            self._producer.poll(0)
        self._producer.flush()  # ends: message.timeout.ms bounds every record
        if self._failed:
            more = self._failed - len(self._failures)
            words = "; ".join(self._failures) + (f"; and {more} more" if more else "")
            raise RefusedError(f"{self._failed} not acknowledged: {words}")

    def _send(self, one: Input) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    one.value,
                    one.key,
                    headers=self._headers,
                    on_delivery=partial(self._answered, one.place),
                    partition=self._partition,
                )
            except BufferError:  # librdkafka's queue is full
                self._producer.poll(FULL_S)
            except KafkaException as error:
                self._fail(one.place, error.args[0], None)
                return
            else:
                return

    def _answered(self, place: str, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._fail(place, error, message.partition())
            return
        self.acknowledged += 1
        if self._report is not None:
            self._report(
                json.dumps(
                    {
                        "topic": message.topic(),
                        "partition": message.partition(),
                        "offset": message.offset(),
                        "ts": message.timestamp()[1],
                        "from": place,
                    }
                )
            )

    def _fail(self, place: str, error: KafkaError, partition: int | None) -> None:
        self._failed += 1
        if len(self._failures) < MOST_NAMED:
            where = self._topic
            if partition is not None and partition >= 0:
                where += f" [{partition}]"
            self._failures.append(f"{place} to {where}: {reason_of(error)}")
