"""confluent_kafka.Consumer with a ledger of the messages delivered, processed and committed.

- delivered: poll() or consume() is about to return the message to the application. The row is
  written before that.
- processed: the application asked for more messages, so it is done with those it had, or it called
  `processed(message)`. An application that hands messages to other threads creates the consumer
  with `explicit=True`; then only that call counts. commit() and close() do not count, because
  applications often call them after a failure.
- committed: the coordinator answered a commit, the application's or an automatic one; one row per
  partition. A commit without an answer has no row, so the group may be ahead of the ledger by the
  commit in flight. Offsets that a transactional producer commits for its consumer
  (send_offsets_to_transaction) do not pass through here and have no row either.

`assignment` counts how many times something other than the log set the positions: assignments and
seeks. Between two rows of one partition with the same number, the log caused a jump or a step back,
not the application. "Written" means in the page cache, as in the producer. Use the consumer from
one thread at a time, as confluent-kafka's; any thread may call `processed`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from holdfast.ledger.blocks import Cells
from holdfast.ledger.book import Book, Writer
from holdfast.ledger.columns import COMMITTED, CONSUMED, DONE, OPEN, REFUSED, Kind
from holdfast.ledger.records import measured

Rebalanced = Callable[[Consumer, list[TopicPartition]], None]
_now_ns: Final = time.time_ns


class LedgerConsumer(Consumer):
    """A drop-in for confluent_kafka.Consumer whose ledger is in the folder `ledger`."""

    def __init__(
        self,
        config: dict[str, Any],
        *,
        ledger: str | os.PathLike[str],
        run: str | None = None,
        explicit: bool = False,
        **more: Any,
    ) -> None:
        config = {**config, **more}
        self._on_commit: Callable[..., None] | None = config.get("on_commit")
        super().__init__({**config, "on_commit": self._committed})
        group = str(config.get("group.id", ""))
        self._book = Book(
            Path(ledger),
            run,
            str(config.get("client.id", "consumer")),
            {"group": group, "client": f"confluent-kafka {confluent_kafka.__version__}"},
            "consumer",
        )
        self._rows = _Rows(self._book, CONSUMED)
        self._commits = _Rows(self._book, COMMITTED)
        self._explicit = explicit
        self._polls = 0
        self._assignment = 0
        self._open: dict[tuple[str, int, int], tuple[Cells, int]] = {}
        """Rows delivered and not processed; a second delivery of a message replaces its row."""

    @property
    def ledger(self) -> Path:
        """The folder of this consumer in the ledger."""
        return self._book.folder

    def poll(self, timeout: float = -1) -> Message | None:
        """As confluent_kafka.Consumer.poll; what was delivered before counts as processed."""
        self._asked()
        message = super().poll(timeout)
        if message is not None:
            self._delivered((message,))
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """As confluent_kafka.Consumer.consume; what was delivered before counts as processed."""
        self._asked()
        messages = super().consume(num_messages, timeout)
        self._delivered(messages)
        return messages

    def processed(self, message: Message) -> None:
        """Record that the application is done with a message."""
        place = (str(message.topic()), message.partition() or 0, message.offset() or 0)
        if (row := self._open.pop(place, None)) is not None:
            _done(*row)

    def _asked(self) -> None:
        self._polls += 1
        while not self._explicit and self._open:
            _done(*self._open.popitem()[1])

    def _delivered(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if message.error() is not None:
                continue  # An event, such as the end of a partition, not a record.
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            cells, row = self._rows.take(str(topic))
            cells["poll"][row] = self._polls
            cells["assignment"][row] = self._assignment
            cells["partition"][row] = partition
            cells["offset"][row] = offset
            epoch = message.leader_epoch()
            cells["leader_epoch"][row] = -1 if epoch is None else epoch
            cells["key_crc"][row], cells["key_len"][row] = measured(message.key())
            cells["value_crc"][row], cells["value_len"][row] = measured(message.value())
            cells["polled_ns"][row] = _now_ns()
            cells["result"][row] = OPEN
            self._open[str(topic), partition or 0, offset or 0] = (cells, row)

    # Commits.

    def commit(  # type: ignore[override]  # one signature for its six overloads
        self,
        message: Message | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """As confluent_kafka.Consumer.commit; a synchronous answer becomes a row."""
        given: dict[str, Any] = {"message": message, "offsets": offsets}
        given = {name: value for name, value in given.items() if value is not None}
        try:
            commit: Callable[..., list[TopicPartition] | None] = super().commit
            answered = commit(**given, asynchronous=asynchronous)
        except KafkaException as error:
            for one in offsets or _after(message):
                self._note_commit(error.args[0], one)
            raise
        for one in answered or ():
            self._note_commit(one.error, one)
        return answered

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for one in partitions:
            self._note_commit(error or one.error, one)
        if self._on_commit is not None:
            self._on_commit(error, partitions)

    def _note_commit(self, error: KafkaError | None, one: TopicPartition) -> None:
        if one.offset < 0:
            return  # There was nothing to commit.
        cells, row = self._commits.take(one.topic)
        cells["partition"][row] = one.partition
        cells["offset"][row] = one.offset
        cells["committed_ns"][row] = _now_ns()
        cells["error"][row] = 0 if error is None else error.code()
        cells["result"][row] = DONE if error is None else REFUSED

    # Positions.

    def subscribe(
        self,
        topics: list[str],
        on_assign: Rebalanced | None = None,
        on_revoke: Rebalanced | None = None,
        on_lost: Rebalanced | None = None,
    ) -> None:
        """As confluent_kafka.Consumer.subscribe."""
        others = {"on_revoke": on_revoke, "on_lost": on_lost}
        given = {name: callback for name, callback in others.items() if callback is not None}

        def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            self._assignment += 1
            if on_assign is not None:
                on_assign(consumer, partitions)

        super().subscribe(topics, on_assign=assigned, **given)

    def assign(self, partitions: list[TopicPartition]) -> None:
        """As confluent_kafka.Consumer.assign."""
        self._assignment += 1
        super().assign(partitions)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """As confluent_kafka.Consumer.incremental_assign."""
        self._assignment += 1
        super().incremental_assign(partitions)

    def seek(self, partition: TopicPartition) -> None:
        """As confluent_kafka.Consumer.seek."""
        self._assignment += 1
        super().seek(partition)


def _after(message: Message | None) -> list[TopicPartition]:
    if message is None:
        return []
    offset = (message.offset() or 0) + 1
    return [TopicPartition(str(message.topic()), message.partition() or 0, offset)]


def _done(cells: Cells, row: int) -> None:
    cells["processed_ns"][row] = _now_ns()
    cells["result"][row] = DONE


class _Rows:
    """The next unused row of each topic. Any thread may use it: commit callbacks run in poll()."""

    def __init__(self, book: Book, kind: Kind) -> None:
        self._book = book
        self._kind = kind
        self._lock = threading.RLock()
        self._writers: dict[str, Writer] = {}
        self._free: dict[str, tuple[int, int, Cells]] = {}
        book.tables.append(self._free)

    def take(self, topic: str) -> tuple[Cells, int]:
        """Reserve a row."""
        with self._lock:
            used, rows, cells = self._free.get(topic, (0, 0, {}))
            if used == rows:
                writer = self._writers.get(topic)
                if writer is None:
                    writer = Writer(self._book, self._kind, topic, self._book.owner)
                    self._writers[topic] = writer
                rows, cells = writer.next_block()
                used = 0
            self._free[topic] = (used + 1, rows, cells)
            return cells, used
