"""The effects of a log's settings on the files of a running broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.model import ErrorCode
from holdfast.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from holdfast.protocol.records import BatchOptions, Compression
from tests.settings.conftest import QUICK, Give, Given
from tests.settings.servers import Sent, Server, Servers, now_ms, record
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

KIB, MIB = 1 << 10, 1 << 20
HOUR_MS = 3_600_000
SMALL_SEGMENTS = {"segment.bytes": str(MIB)}
BOTH = pytest.mark.parametrize


def send_to_both(given: Given, count: int, size: int, age_ms: int = 0) -> None:
    """Send the same batches to both topics."""
    for server, topic in (given[:2], given[2:]):
        for _ in range(count):
            sent = server.send(topic, [record(bytes(size), age_ms=age_ms)])
            assert sent.error is ErrorCode.NONE


def start_of(server: Server, topic: str) -> int:
    start = server.replica(topic)["log_start"]
    assert isinstance(start, int)
    return start


def wait_start(server: Server, topic: str, start: int) -> None:
    wait_until(lambda: start_of(server, topic) == start, f"{topic} starts at {start}")


def is_rolled_by(given: Given, send: Callable[[Server, str], None]) -> None:
    """One topic gets a second segment, the other does not."""

    def look() -> bool:
        send(given.server, given.topic)
        return given.server.segments(given.topic) > 1

    wait_until(look, "a second segment")
    send(given.other_server, given.other)
    assert given.other_server.segments(given.other) == 1


@BOTH("name", ["segment.bytes", "log.segment.bytes"])
def test_segment_bytes(given: Give, name: str) -> None:
    def send(server: Server, topic: str) -> None:
        for _ in range(3):
            server.send(topic, [record(bytes(400 * KIB))])

    is_rolled_by(given(name, str(MIB)), send)


def test_internal_segment_bytes(given: Give) -> None:
    def send(server: Server, topic: str) -> None:
        for _ in range(3):
            server.send(topic, [record(bytes(KIB))])

    is_rolled_by(given("internal.segment.bytes", str(2 * KIB)), send)


@BOTH("name", ["segment.ms", "log.roll.ms"])
def test_segment_ms(given: Give, name: str) -> None:
    """A log rolls by the timestamps of its records."""

    def send(server: Server, topic: str) -> None:
        server.send(topic, [record(age_ms=HOUR_MS)])
        server.send(topic, [record()])

    is_rolled_by(given(name, "60000"), send)


@BOTH("name", ["segment.index.bytes", "log.index.size.max.bytes"])
def test_segment_index_bytes(given: Give, name: str) -> None:
    """A full index ends its segment."""

    def send(server: Server, topic: str) -> None:
        for _ in range(10):
            server.send(topic, [record(bytes(5 * KIB))])

    is_rolled_by(given(name, "32"), send)


@BOTH("name", ["index.interval.bytes", "log.index.interval.bytes"])
def test_index_interval_bytes(given: Give, name: str) -> None:
    """One index entry per so many bytes, in a sealed segment."""
    config = SMALL_SEGMENTS
    pair = given(name, str(300 * KIB), config)
    sizes = []
    for server, topic in (pair[:2], pair[2:]):

        def is_sealed(server: Server = server, topic: str = topic) -> bool:
            server.send(topic, [record(bytes(50 * KIB))])
            return server.segments(topic) > 1

        wait_until(is_sealed, "a sealed segment")
        sizes.append(entries(server.files(topic, "*.index")[0]))
    few, many = sizes
    assert 0 < few < 5
    assert many > 15


def entries(path: Path) -> int:
    """Entries of an offset index; preallocated ones are zero."""
    data = path.read_bytes()
    return sum(1 for at in range(0, len(data), 8) if any(data[at : at + 8]))


@BOTH("name", ["retention.ms", "log.retention.ms"])
def test_retention_ms(given: Give, name: str) -> None:
    pair = given(name, "60000")
    send_to_both(pair, 3, 100, age_ms=120_000)
    wait_until(lambda: start_of(pair.server, pair.topic) == 3, "old records are gone")
    assert start_of(pair.other_server, pair.other) == 0


@BOTH("name", ["retention.bytes", "log.retention.bytes"])
def test_retention_bytes(given: Give, name: str) -> None:
    pair = given(name, str(MIB), SMALL_SEGMENTS)
    send_to_both(pair, 8, 500 * KIB)
    wait_until(lambda: start_of(pair.server, pair.topic) > 0, "the oldest segments are gone")
    assert start_of(pair.other_server, pair.other) == 0


@BOTH("name", ["file.delete.delay.ms", "log.segment.delete.delay.ms"])
def test_file_delete_delay_ms(given: Give, name: str) -> None:
    """A removed segment keeps its files for a minute, or for the configured time."""
    pair = given(name, "0", {"retention.ms": "60000"})
    send_to_both(pair, 1, 100, age_ms=120_000)
    for server, topic in (pair[:2], pair[2:]):
        wait_start(server, topic, 1)
    # The log renames its files after the new start offset is on disk.
    wait_until(lambda: bool(pair.other_server.files(pair.other, "*.log.deleted")), "they are kept")
    wait_until(lambda: len(pair.server.files(pair.topic, "*.log*")) == 1, "no file is left")
    assert pair.other_server.files(pair.other, "*.log.deleted")


@BOTH("name", ["max.message.bytes", "message.max.bytes"])
def test_max_message_bytes(given: Give, name: str) -> None:
    pair = given(name, "1000")
    large = [record(bytes(1000))]

    def is_refused() -> bool:
        return pair.server.send(pair.topic, large).error is ErrorCode.MESSAGE_TOO_LARGE

    wait_until(is_refused, "a large batch is refused")
    assert pair.server.send(pair.topic, [record(bytes(800))]).error is ErrorCode.NONE
    assert pair.other_server.send(pair.other, large).error is ErrorCode.NONE


@BOTH("name", ["compression.type", "broker:compression.type"])
def test_compression_type(given: Give, name: str) -> None:
    """Uncompressed batches are stored in the codec of the topic."""
    pair = given(name, "zstd")

    def codec(server: Server, topic: str) -> int:
        server.send(topic, [record(bytes(1000))])
        return server.headers(topic)[-1].compression

    wait_until(lambda: codec(*pair[:2]) == Compression.ZSTD, "batches are compressed")
    assert codec(*pair[2:]) == Compression.NONE


@BOTH("name", ["message.timestamp.type", "log.message.timestamp.type"])
def test_message_timestamp_type(given: Give, name: str) -> None:
    pair = given(name, "LogAppendTime")
    began = now_ms()

    def time_of(server: Server, topic: str) -> int:
        server.send(topic, [record(age_ms=HOUR_MS)])
        return server.headers(topic)[-1].max_timestamp

    wait_until(lambda: time_of(*pair[:2]) >= began, "the broker's clock counts")
    assert time_of(*pair[2:]) < began


@BOTH("name", ["message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms"])
def test_message_timestamp_before_max_ms(given: Give, name: str) -> None:
    pair = given(name, "60000")
    is_refused_for_its_time(pair, age_ms=HOUR_MS)


@BOTH("name", ["message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms"])
def test_message_timestamp_after_max_ms(given: Give, name: str) -> None:
    pair = given(name, "60000")
    is_refused_for_its_time(pair, age_ms=-HOUR_MS // 2)


def is_refused_for_its_time(pair: Given, age_ms: int) -> None:
    def refused() -> bool:
        sent = pair.server.send(pair.topic, [record(age_ms=age_ms)])
        return sent.error is ErrorCode.INVALID_TIMESTAMP

    wait_until(refused, "a record is refused for its timestamp")
    assert pair.server.send(pair.topic, [record()]).error is ErrorCode.NONE
    assert pair.other_server.send(pair.other, [record(age_ms=age_ms)]).error is ErrorCode.NONE


def test_producer_id_expiration_ms(given: Give) -> None:
    """A duplicate batch is recognised, until its producer is forgotten."""
    pair = given("producer.id.expiration.ms", "1")
    first, again = idempotent(*pair[2:])
    assert again() == first
    first_of_two, again_of_two = idempotent(*pair[:2])
    wait_until(lambda: again_of_two() != first_of_two, "the batch is appended again")
    assert again() == first


def idempotent(server: Server, topic: str) -> tuple[Sent, Callable[[], Sent]]:
    """The answer to a new producer's first batch, and a function to send it again."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    answer = server.ask(request, InitProducerIdResponse)
    made = BatchOptions(producer_id=answer.producer_id, producer_epoch=0, base_sequence=0)
    sent = server.send(topic, [record()], made)
    assert sent.error is ErrorCode.NONE
    return sent, lambda: server.send(topic, [record()], made)


# Settings that only a file has, and that finer units override.


@pytest.fixture(scope="module")
def in_units(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Broker 1 has hours, broker 2 minutes, broker 3 a long check interval."""
    hours = QUICK | {"log.retention.hours": "2", "log.roll.hours": "1"}
    minutes = QUICK | {"log.retention.minutes": "60"}
    servers = Servers(tmp_path_factory.mktemp("units"), hours, minutes, {})
    try:
        servers.start()
        yield servers
    finally:
        servers.close()


def test_log_retention_hours_and_minutes(in_units: Servers) -> None:
    """log.retention.hours=2 and log.retention.minutes=60: at 90 minutes only the second acts."""
    by_hours, by_minutes = in_units.topic(1), in_units.topic(2)
    in_units[1].send(by_hours, [record(age_ms=90 * 60_000)])
    in_units[2].send(by_minutes, [record(age_ms=90 * 60_000)])
    wait_until(lambda: start_of(in_units[2], by_minutes) == 1, "older than 60 minutes")
    assert start_of(in_units[1], by_hours) == 0
    older = in_units.topic(1)
    in_units[1].send(older, [record(age_ms=3 * HOUR_MS)])
    wait_until(lambda: start_of(in_units[1], older) == 1, "older than 2 hours")


def test_log_roll_hours(in_units: Servers) -> None:
    """log.roll.hours=1 against the default of a week."""
    segments = []
    for broker in (1, 2):
        topic = in_units.topic(broker, config={"retention.ms": "-1"})
        in_units[broker].send(topic, [record(age_ms=2 * HOUR_MS)])
        in_units[broker].send(topic, [record()])
        segments.append(in_units[broker].segments(topic))
    assert segments == [2, 1]


def test_log_retention_check_interval_ms(in_units: Servers) -> None:
    """log.retention.check.interval.ms: by default there is no check for five minutes."""
    config = {"retention.ms": "60000"}
    rarely, often = in_units.topic(3, config=config), in_units.topic(1, config=config)
    for broker, topic in ((3, rarely), (1, often)):
        in_units[broker].send(topic, [record(age_ms=HOUR_MS)])
    wait_until(lambda: start_of(in_units[1], often) == 1, "old records are gone")
    assert start_of(in_units[3], rarely) == 0
