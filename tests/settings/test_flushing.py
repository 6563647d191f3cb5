"""The effects of the settings of flushes and checkpoints: after a power loss, and in files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.model import ErrorCode
from holdfast.storage.power_loss.unflushed_bytes import take_unflushed, unflushed_of
from tests.settings.conftest import Give
from tests.settings.servers import Server, Servers, record
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

BOTH = pytest.mark.parametrize


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Broker 1 with the defaults, and two that flush."""
    servers = Servers(
        tmp_path_factory.mktemp("flushing"),
        {"replica.high.watermark.checkpoint.interval.ms": "3600000"},
        {"log.flush.interval.messages": "2"},
        {
            "log.flush.scheduler.interval.ms": "50",
            "replica.high.watermark.checkpoint.interval.ms": "50",
        },
    )
    try:
        servers.start()
        yield servers
    finally:
        servers.close()


def flushed(server: Server, topic: str) -> int:
    end = server.replica(topic)["flushed_offset"]
    assert isinstance(end, int)
    return end


def send(server: Server, topic: str, count: int) -> None:
    for _ in range(count):
        assert server.send(topic, [record()]).error is ErrorCode.NONE


def power_loss(*servers: Server) -> None:
    """Kill all brokers, and remove from their files what they had not flushed."""
    for server in servers:
        server.kill()
    for server in servers:
        take_unflushed(str(server.log_dir), str(unflushed_of(server.log_dir)))


def test_flush_messages(three: Servers) -> None:
    """Four acknowledged records: flush.messages=2 and log.flush.interval.messages=2 keep them."""
    own = three.topic(1, config={"flush.messages": "2"})
    page_cache, brokers_own = three.topic(1), three.topic(2)
    for server, topic in ((1, own), (1, page_cache), (2, brokers_own)):
        send(three[server], topic, 4)
    power_loss(three[1], three[2])
    for number in (1, 2):
        three[number].start()
    for topic, leader in ((own, 1), (page_cache, 1), (brokers_own, 2)):
        three.wait_leader(topic, leader)
    left = [
        three[leader].replica(topic)["leo"]
        for topic, leader in ((own, 1), (page_cache, 1), (brokers_own, 2))
    ]
    assert left == [4, 0, 4]


@BOTH("name", ["flush.ms", "log.flush.interval.ms"])
def test_flush_ms(given: Give, name: str) -> None:
    pair = given(name, "50")
    for server, topic in (pair[2:], pair[:2]):
        send(server, topic, 3)

    def is_flushed() -> bool:
        return flushed(*pair[:2]) == 3

    wait_until(is_flushed, "what was sent is flushed")
    assert flushed(*pair[2:]) == 0


def test_log_flush_scheduler_interval_ms(three: Servers) -> None:
    """log.flush.scheduler.interval.ms is the default of log.flush.interval.ms."""
    page_cache, topic = three.topic(1), three.topic(3)
    send(three[1], page_cache, 3)
    send(three[3], topic, 3)
    wait_until(lambda: flushed(three[3], topic) == 3, "what was sent is flushed")
    assert flushed(three[1], page_cache) == 0


def test_replica_high_watermark_checkpoint_interval_ms(three: Servers) -> None:
    """replica.high.watermark.checkpoint.interval.ms: an hour at broker 1."""
    topics = {1: three.topic(1), 3: three.topic(3)}
    for number, topic in topics.items():
        send(three[number], topic, 3)

    def is_written(number: int) -> bool:
        path = three[number].log_dir / "replication-offset-checkpoint"
        return path.exists() and f"{topics[number]} 0 3\n" in path.read_text()

    wait_until(lambda: is_written(3), "broker 3 writes its checkpoint")
    assert not is_written(1)
