"""librdkafka writes and reads batches through its own mock broker; we use that over a socket.

The mock broker stores a batch unchanged, so a raw Fetch returns librdkafka's bytes, and with a raw
Produce librdkafka reads ours.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from holdfast.protocol.records import (
    BatchOptions,
    Compression,
    NewRecord,
    batches,
    build_batch,
    check_batch,
    read_records,
)
from holdfast.protocol.records.arrow.reader import read_table
from tests.unit.protocol.records.samples import CODECS, Plain, owned, plain

TOPIC = "records"
VALUES = [b"some value " * 20 + str(nth).encode() for nth in range(30)]


class Mock(NamedTuple):
    """A mock broker that runs as long as its producer."""

    producer: Producer
    address: tuple[str, int]

    def call(self, api: int, version: int, body: bytes) -> bytes:
        """One request without tags, answered without its header."""
        message = struct.pack(">hhih", api, version, 1, -1) + body
        with socket.create_connection(self.address, timeout=60) as connection:
            connection.sendall(struct.pack(">i", len(message)) + message)
            with connection.makefile("rb") as stream:
                (size,) = struct.unpack(">i", stream.read(4))
                return stream.read(size)[4:]


@contextlib.contextmanager
def mock_broker(codec: str, **settings: object) -> Iterator[Mock]:
    quiet = {"log_level": 0, "linger.ms": 200}
    producer = Producer(
        {"test.mock.num.brokers": 1, "compression.type": codec, **quiet, **settings}
    )
    [broker] = producer.list_topics(TOPIC, timeout=60).brokers.values()
    yield Mock(producer, (broker.host, broker.port))
    producer.flush(60)


def name(topic: str) -> bytes:
    return struct.pack(">h", len(topic)) + topic.encode()


def fetch(mock: Mock) -> bytes:
    """Fetch v4 of partition 0 from the start: the records as stored."""
    request = struct.pack(">iiiib", -1, 1000, 1, 1 << 24, 0)
    request += struct.pack(">i", 1) + name(TOPIC) + struct.pack(">iiqi", 1, 0, 0, 1 << 24)
    answer = mock.call(1, 4, request)
    position = 4 + 4 + len(name(TOPIC)) + 4 + 4
    (error, _, _, aborted) = struct.unpack_from(">hqqi", answer, position)
    assert error == 0
    assert aborted <= 0
    return answer[position + 22 + 4 :]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("is_idempotent", [False, True])
def test_we_read_what_librdkafka_writes(codec: Compression, is_idempotent: bool) -> None:
    headers: list[tuple[str, str | bytes | None]] = [("a", b"1"), ("b", None), ("a", b"")]
    with mock_broker(codec.name.lower(), **{"enable.idempotence": is_idempotent}) as mock:
        for nth, value in enumerate(VALUES):
            key = None if nth % 5 == 0 else b"k%d" % nth
            mock.producer.produce(
                TOPIC, value, key, partition=0, timestamp=5_000 + nth, headers=headers
            )
        assert mock.producer.flush(60) == 0
        data = fetch(mock)
    found: list[Plain] = []
    for batch in batches(data):
        check_batch(batch)
        assert batch.header.compression in (codec, Compression.NONE)
        assert (batch.header.producer_id >= 0) == is_idempotent
        found.extend(plain(record) for record in read_records(batch))
    assert [one.value for one in found] == VALUES
    assert [one.timestamp for one in found] == [5_000 + nth for nth in range(len(VALUES))]
    assert found[5].key is None
    assert found[6].key == b"k6"
    assert {one.headers for one in found} == {(("a", b"1"), ("b", None), ("a", b""))}
    assert any(batch.header.compression == codec for batch in batches(data))
    assert read_table(data)["value"].to_pylist() == VALUES


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_reads_what_we_build(codec: Compression) -> None:
    records = [
        NewRecord(value, None if nth % 5 == 0 else b"k%d" % nth, 7_000 + nth, [("h", b"x")])
        for nth, value in enumerate(VALUES)
    ]
    data = bytes(build_batch(records, BatchOptions(compression=codec)))
    with mock_broker("none") as mock:
        request = struct.pack(">hhi", -1, -1, 10_000)  # Produce v7: no transaction, acks=all.
        request += struct.pack(">i", 1) + name(TOPIC) + struct.pack(">iii", 1, 0, len(data)) + data
        answer = mock.call(0, 7, request)
        (_, error) = struct.unpack_from(">ih", answer, 4 + len(name(TOPIC)) + 4)
        assert error == 0
        consumer = Consumer(
            {
                "bootstrap.servers": "{}:{}".format(*mock.address),
                "group.id": "g",
                "check.crcs": True,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        messages = consumer.consume(len(VALUES), timeout=60)
        consumer.close()
    assert [message.error() for message in messages] == [None] * len(VALUES)
    assert [message.value() for message in messages] == VALUES
    assert [message.key() for message in messages] == [owned(record.key) for record in records]
    assert [message.timestamp()[1] for message in messages] == [
        record.timestamp for record in records
    ]
    assert messages[3].headers() == [("h", b"x")]
