"""confluent_kafka.Producer with a ledger of the records sent and the answers received.

A row is in the file before librdkafka gets the record, and its answer is in the file before the
application's callback runs. "In the file" means in the page cache. That survives kill -9 and any
other end of the process; it does not survive a power failure, because nothing is flushed.

- acked: the broker answered without an error, and acks was not 0.
- refused: the broker answered the last attempt with an error, or produce() raised KafkaException.
- unknown: anything else. No answer yet; acks=0; an error of librdkafka itself, such as its timeout
  (the record may have been sent, even stored, and only the answer lost); REQUEST_TIMED_OUT.

BufferError leaves no row: the record never left the application.

Every thread has its own rows, so a row needs no lock. The rows of one thread are in the order of
its sends; the sends of two threads have no order. In the ledger each thread is its own producer.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Final

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Producer
from google_crc32c import extend

from holdfast.ledger import settings
from holdfast.ledger.book import Book, Writer
from holdfast.ledger.columns import NONE, OPEN, SENT
from holdfast.ledger.page import DeliveryCallback, Page, now_ns
from holdfast.ledger.records import measured

_produce: Final = Producer.produce


class LedgerProducer(Producer):
    """A drop-in for confluent_kafka.Producer whose ledger is in the folder `ledger`."""

    def __init__(
        self,
        config: dict[str, Any],
        *,
        ledger: str | os.PathLike[str],
        run: str | None = None,
        **more: Any,
    ) -> None:
        config = {**config, **more}
        settings.refuse_silence(config)
        self._default: DeliveryCallback | None = config.pop("on_delivery", None)
        self._acknowledged = settings.acks(config) != 0
        super().__init__(config)
        self._book = Book(
            Path(ledger),
            run,
            str(config.get("client.id", "producer")),
            {
                "acks": settings.acks(config),
                "idempotent": settings.idempotent(config),
                "client": f"confluent-kafka {confluent_kafka.__version__}",
            },
            "producer",
        )
        self._threads = _Threads(self._book)

    @property
    def ledger(self) -> Path:
        """The folder of this producer in the ledger."""
        return self._book.folder

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        callback: DeliveryCallback | None = None,
        on_delivery: DeliveryCallback | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """As confluent_kafka.Producer.produce, with its row written first."""
        try:
            page = self._threads.pages[topic]
        except KeyError:
            page = self._page(topic)
        row = page.used
        if row == page.rows:
            page.next_block()
            row = 0
        page.used = row + 1
        if type(value) is bytes:
            page.value_crc[row] = extend(0, value)
            page.value_len[row] = len(value)
        elif value is not None:
            page.value_crc[row], page.value_len[row] = measured(value)
        if key is not None:
            page.key_crc[row], page.key_len[row] = measured(key)
        if partition != NONE:
            page.partition_asked[row] = partition
        page.callbacks[row] = callback or on_delivery or self._default
        page.sent_ns[row] = now_ns()
        page.result[row] = OPEN
        try:
            if headers is None:
                _produce(self, topic, value, key, partition, page.answers[row], None, timestamp)
            else:
                _produce(
                    self, topic, value, key, partition, page.answers[row], None, timestamp, headers
                )
        except KafkaException as error:
            page.refuse(row, error.args[0].code())
            raise
        except BaseException:  # Not sent: BufferError, or arguments that librdkafka refuses.
            page.give_back(row)
            raise

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        callback: DeliveryCallback | None = None,
        on_delivery: DeliveryCallback | None = None,
    ) -> int:
        """As confluent_kafka.Producer.produce_batch: returns how many were queued."""
        queued = 0
        for message in messages:
            try:
                self.produce(
                    topic,
                    message.get("value"),
                    message.get("key"),
                    message.get("partition", partition),
                    on_delivery=message.get("callback") or on_delivery or callback,
                    timestamp=message.get("timestamp", 0),
                )
            except BufferError:
                message["_error"] = KafkaError(KafkaError._QUEUE_FULL)
            except KafkaException as error:
                message["_error"] = error.args[0]
            else:
                queued += 1
        return queued

    def _page(self, topic: str) -> Page:
        pages = self._threads.pages
        writer = Writer(self._book, SENT, topic, self._threads.stream)
        page = pages[topic] = Page(writer, acknowledged=self._acknowledged)
        return page


class _Threads(threading.local):
    """The pages of each thread. `threading.local` calls `__init__` in each thread that uses it."""

    def __init__(self, book: Book) -> None:
        self.pages: dict[str, Page] = {}
        book.tables.append(self.pages)
        number = len(book.tables)
        self.stream = book.owner if number == 1 else f"{book.owner}.{number}"
