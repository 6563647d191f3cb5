"""The effects of the settings of replication: leaders, throttles and sessions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.cluster.client.admin import reassign
from holdfast.model import ErrorCode
from holdfast.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tests.settings.servers import BROKER, BY_NAME, TOPIC, Servers, record
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

PATIENT = {"broker.session.timeout.ms": "600000"}
NEAREST = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
ODD = PATIENT | {
    "replica.lag.time.max.ms": "1000",
    "replica.selector.class": NEAREST,
    "min.insync.replicas": "2",
}
RACK = "attic"
MIB = 1 << 20


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Broker 1 has the settings; broker 2 can be paused without losing its session."""
    servers = Servers(
        tmp_path_factory.mktemp("replicas"), ODD, PATIENT | {"broker.rack": RACK}, PATIENT
    )
    try:
        servers.start(controller=3)
        yield servers
    finally:
        servers.close()


def isr(servers: Servers, topic: str, leader: int) -> set[int]:
    return set(servers[leader].replica(topic)["isr"])


def wait_isr(servers: Servers, topic: str, leader: int, wanted: set[int]) -> None:
    wait_until(lambda: isr(servers, topic, leader) == wanted, f"the ISR of {topic} is {wanted}")


def test_replica_lag_time_max_ms(three: Servers) -> None:
    """replica.lag.time.max.ms is one second at broker 1 and 30 seconds at broker 3.

    The remaining ISR then shows min.insync.replicas: broker 1 requires two replicas, except for
    the topic that requires one.
    """
    config = {"min.insync.replicas": "1"}
    slow, quick, own = three.topic(3, 2), three.topic(1, 2), three.topic(1, 2, config=config)
    for topic, leader in ((slow, 3), (quick, 1), (own, 1)):
        assert three[leader].send(topic, [record()]).error is ErrorCode.NONE
    three[2].pause()
    try:
        for topic, leader in ((slow, 3), (quick, 1), (own, 1)):
            three[leader].send(topic, [record()], acks=1)
        wait_until(lambda: isr(three, quick, 1) == isr(three, own, 1) == {1}, "broker 2 is out")
        assert isr(three, slow, 3) == {2, 3}
        assert three[1].send(quick, [record()]).error is ErrorCode.NOT_ENOUGH_REPLICAS
        assert three[1].send(own, [record()]).error is ErrorCode.NONE
    finally:
        three[2].resume()
    wait_until(lambda: isr(three, quick, 1) == {1, 2}, "broker 2 is back")


def test_replica_selector_class(three: Servers) -> None:
    """replica.selector.class and broker.rack: a consumer is sent to the replica in its rack."""
    near, leaders = three.topic(1, 2), three.topic(3, 2)

    def sent_to(leader: int, topic: str) -> int:
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MIB)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
            rack_id=RACK,
        )
        [response] = three[leader].ask(request, FetchResponse, BY_NAME).responses[0].partitions
        assert not response.error_code
        return response.preferred_read_replica

    wait_until(lambda: sent_to(1, near) == 2, "broker 2 is the nearest")
    assert sent_to(3, leaders) == -1


@pytest.mark.parametrize(
    ("rate", "replicas", "broker"),
    [
        ("leader.replication.throttled.rate", "leader.replication.throttled.replicas", 1),
        ("follower.replication.throttled.rate", "follower.replication.throttled.replicas", 3),
    ],
)
def test_throttles(three: Servers, rate: str, replicas: str, broker: int) -> None:
    """A throttled replica waits while another is copied; without the rate both are copied."""
    slow, quick = three.topic(1), three.topic(1)
    for topic in (slow, quick):
        for _ in range(5):
            sent = three[1].send(topic, [record(bytes(MIB - 1000))])
            assert sent.error is ErrorCode.NONE
    three.alter(TOPIC, slow, replicas, f"0:{broker}")
    three.alter(BROKER, str(broker), rate, "1000")
    three.settle(broker)
    try:
        with three.client() as client:
            for topic in (slow, quick):
                reassign(client, topic, 0, [1, 3])
        wait_until(lambda: isr(three, quick, 1) == {1, 3}, "the other copy is made")
        assert isr(three, slow, 1) == {1}
    finally:
        three.alter(BROKER, str(broker), rate, None)
    wait_until(lambda: isr(three, slow, 1) == {1, 3}, "the copy is made")


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Broker 1 is the controller; broker 2's session expires after a second, broker 3's later."""
    sessions = [{"broker.session.timeout.ms": one} for one in ("600000", "1000", "600000")]
    servers = Servers(tmp_path_factory.mktemp("sessions"), *sessions)
    try:
        servers.start(controller=1)
        yield servers
    finally:
        servers.close()


def test_broker_session_timeout_ms(mortal: Servers) -> None:
    """broker.session.timeout.ms: a second at broker 2."""

    def alive() -> set[int]:
        return {one.node_id for one in mortal.metadata(mortal[1]).brokers}

    mortal[2].pause()
    mortal[3].pause()
    try:
        wait_until(lambda: alive() == {1, 3}, "broker 2 is taken for dead")
    finally:
        mortal[2].resume()
        mortal[3].resume()
    wait_until(lambda: alive() == {1, 2, 3}, "broker 2 is back")


def test_unclean_leader_election_enable(mortal: Servers) -> None:
    """unclean.leader.election.enable, for one topic and then for all.

    Broker 3 lacks the records that broker 2 accepted alone, and broker 2 is down.
    """
    unclean = mortal.topic(2, 3, config={"unclean.leader.election.enable": "true"})
    clean = mortal.topic(2, 3)
    for topic in (unclean, clean):
        assert mortal[2].send(topic, [record()]).error is ErrorCode.NONE
    mortal[3].kill()
    for topic in (unclean, clean):
        wait_isr(mortal, topic, 2, {2})
        assert mortal[2].send(topic, [record()]).error is ErrorCode.NONE
    mortal[2].kill()
    mortal[3].start()
    wait_until(lambda: mortal.partition(unclean).leader_id == 3, "broker 3 leads")
    assert mortal.partition(clean).leader_id == -1
    mortal.alter(BROKER, "", "unclean.leader.election.enable", "true")
    try:
        wait_until(lambda: mortal.partition(clean).leader_id == 3, "broker 3 leads this one, too")
    finally:
        mortal.alter(BROKER, "", "unclean.leader.election.enable", None)
        mortal[2].start()
