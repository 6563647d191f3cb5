"""The effects of the cleaner's settings on running brokers, with one-kilobyte segments."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.cluster import Client
from holdfast.cluster.client.records import Span, read_all
from holdfast.cluster.processes.ports import HOST
from holdfast.model import ErrorCode
from tests.settings.conftest import QUICK, Give, Given
from tests.settings.servers import BROKER, PATIENCE_S, Server, Servers, record
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

COMPACTED = {"cleanup.policy": "compact", "internal.segment.bytes": "1024"}
BOTH = pytest.mark.parametrize
DAY_MS = 86_400_000


def send_rounds(server: Server, topic: str, rounds: int = 20, age_ms: int = 0) -> None:
    """Values of five keys, again and again."""
    for _ in range(rounds):
        for key in range(5):
            made = record(bytes(100), b"key %d" % key, age_ms)
            assert server.send(topic, [made]).error is ErrorCode.NONE


def kept(server: Server, topic: str) -> int:
    """The number of records in the files."""
    return sum(header.record_count for header in server.headers(topic))


def is_cleaned(server: Server, topic: str) -> bool:
    return kept(server, topic) < 50


def only_the_first_is_cleaned(pair: Given) -> None:
    for server, topic in (pair[2:], pair[:2]):
        send_rounds(server, topic)
    wait_until(lambda: is_cleaned(*pair[:2]), "the first topic is cleaned")
    assert kept(*pair[2:]) == 100


def only_the_other_is_cleaned(pair: Given) -> None:
    for server, topic in (pair[:2], pair[2:]):
        send_rounds(server, topic)
    wait_until(lambda: is_cleaned(*pair[2:]), "the other topic is cleaned")
    assert kept(*pair[:2]) == 100


@BOTH("name", ["cleanup.policy", "log.cleanup.policy"])
def test_cleanup_policy(given: Give, name: str) -> None:
    only_the_first_is_cleaned(given(name, "compact", {"internal.segment.bytes": "1024"}))


@BOTH("name", ["min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio"])
def test_min_cleanable_dirty_ratio(given: Give, name: str) -> None:
    """A log that was never cleaned is fully dirty, and no ratio is above 1."""
    only_the_other_is_cleaned(given(name, "1.0", COMPACTED))


@BOTH("name", ["min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"])
def test_min_compaction_lag_ms(given: Give, name: str) -> None:
    only_the_other_is_cleaned(given(name, str(DAY_MS), COMPACTED))


@BOTH("name", ["max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"])
def test_max_compaction_lag_ms(given: Give, name: str) -> None:
    """Records that have waited for long are cleaned, however few they are."""
    never = COMPACTED | {"min.cleanable.dirty.ratio": "1.0"}
    only_the_first_is_cleaned(given(name, "1", never))


@BOTH("name", ["delete.retention.ms", "log.cleaner.delete.retention.ms"])
def test_delete_retention_ms(given: Give, name: str) -> None:
    """A tombstone is removed after its retention time; the default is one day."""
    pair = given(name, "0", COMPACTED)
    for server, topic in (pair[:2], pair[2:]):
        made = record(b"", b"gone")._replace(value=None)
        assert server.send(topic, [made]).error is ErrorCode.NONE
    sent = [1]

    def look() -> bool:
        # The second cleaning after the tombstone removes it, if its time is over.
        for server, topic in (pair[2:], pair[:2]):
            send_rounds(server, topic, rounds=5)
        sent[0] += 25
        return not has_tombstone(*pair[:2])

    wait_until(look, "the tombstone is gone")
    wait_until(lambda: kept(*pair[2:]) < sent[0], "the other topic is cleaned, too")
    assert has_tombstone(*pair[2:])


def has_tombstone(server: Server, topic: str) -> bool:
    """Reads as a consumer: files may be missing while the cleaner replaces them."""
    with Client([(HOST, server.port)], timeout_s=PATIENCE_S) as client:
        return any(one.key == b"gone" for one in read_all(client, topic, 0, Span(0, 1), PATIENCE_S))


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Broker 1 cleans, broker 2 never does, broker 3 checks once an hour."""
    off = QUICK | {"log.cleaner.enable": "false"}
    rarely = {"log.cleaner.backoff.ms": "3600000"}
    servers = Servers(tmp_path_factory.mktemp("cleaners"), QUICK, off, rarely)
    try:
        servers.start()
        yield servers
    finally:
        servers.close()


def test_log_cleaner_enable(three: Servers) -> None:
    """log.cleaner.enable=false at broker 2."""
    topics = {broker: three.topic(broker, config=COMPACTED) for broker in (2, 1)}
    for broker, topic in topics.items():
        send_rounds(three[broker], topic)
    wait_until(lambda: is_cleaned(three[1], topics[1]), "broker 1 cleans")
    assert kept(three[2], topics[2]) == 100


def test_log_cleaner_backoff_ms(three: Servers) -> None:
    """log.cleaner.backoff.ms is an hour at broker 3, until it is changed at run time."""
    topics = {broker: three.topic(broker, config=COMPACTED) for broker in (3, 1)}
    for broker, topic in topics.items():
        send_rounds(three[broker], topic)
    wait_until(lambda: is_cleaned(three[1], topics[1]), "broker 1 cleans")
    assert kept(three[3], topics[3]) == 100
    three.alter(BROKER, "3", "log.cleaner.backoff.ms", "100")
    wait_until(lambda: is_cleaned(three[3], topics[3]), "broker 3 cleans")
