"""Incremental fetch sessions: a partition that a request omits keeps its fetch offset.

Apache Kafka 4.3.1 answered the same requests in the same way.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from holdfast.cluster import Cluster
from holdfast.cluster.client.client import Address, Connection
from holdfast.cluster.waiting import wait_for
from holdfast.model import ErrorCode
from holdfast.protocol.messages.fetch import (
    FetchForgottenTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from holdfast.protocol.records import batches
from tests.real.wire import BY_NAME

pytestmark = pytest.mark.slow

PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1) as cluster:
        yield cluster


class Session:
    """A client's session with broker 1, and its expected state."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        places: dict[int, int],
        follower: int = -1,
        forget: tuple[int, ...] = (),
    ) -> None:
        self._topic = topic
        self._follower = follower
        entry = cluster.entry(1)
        self._connection = Connection(Address(entry.host, entry.port), 10.0)
        self._id, self._epoch = 0, 0
        self.places: dict[int, int] = {}
        """The fetch offset of each partition of the session."""
        self.marks: dict[int, int] = {}
        """The high watermarks of the last answer."""
        self.errors: dict[int, int] = {}
        """The errors of the last answer."""
        self.first = self.ask(places, forget)
        """The answer to the request that opened the session."""

    def close(self) -> None:
        self._connection.close()

    def ask(self, places: dict[int, int], forget: tuple[int, ...] = ()) -> dict[int, int]:
        """Name these offsets; returns the first offset of the received records, by partition."""
        self.places.update(places)
        for partition in forget if self._epoch else ():
            self.places.pop(partition, None)
        named = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in places.items()
        ]
        forgotten = FetchForgottenTopic(topic=self._topic, partitions=[*forget])
        answer = self._connection.send(
            FetchRequest(
                replica_id=self._follower,
                max_wait_ms=0,
                min_bytes=1,
                session_id=self._id,
                session_epoch=self._epoch,
                topics=[FetchTopic(topic=self._topic, partitions=named)] if named else [],
                forgotten_topics_data=[forgotten],
            ),
            BY_NAME,
        )
        assert isinstance(answer, FetchResponse)
        assert answer.error_code == ErrorCode.NONE
        self._id, self._epoch = answer.session_id, self._epoch + 1
        partitions = [one for topic in answer.responses for one in topic.partitions]
        self.errors = {one.partition_index: one.error_code for one in partitions if one.error_code}
        self.marks = {one.partition_index: one.high_watermark for one in partitions}
        return {
            one.partition_index: next(batches(memoryview(one.records))).header.base_offset
            for one in partitions
            if one.records
        }


def test_records_that_a_client_threw_away_come_again(cluster: Cluster) -> None:
    """As it does when a group rebalances while they are on their way."""
    cluster.create_topic("thrown-away", 2)
    with closing(Session(cluster, "thrown-away", {0: 0, 1: 0})) as session:
        cluster.produce("thrown-away", ["a"], partition=0)
        assert session.ask({}) == {0: 0}
        assert session.ask({}) == {0: 0}
        cluster.produce("thrown-away", ["b"], partition=1)
        assert session.ask({0: 1}) == {1: 0}
        assert session.ask({}) == {1: 0}
        assert session.ask({}, forget=(1,)) == {}
        assert session.ask({0: 0}) == {0: 0}


def test_a_partition_that_the_broker_hosts_later_is_read_without_being_named_again(
    cluster: Cluster,
) -> None:
    """A client omits it: its position and its leader epoch, if it knows one, have not changed."""
    with closing(Session(cluster, "later", {0: 0})) as session:
        assert session.errors == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        cluster.create_topic("later", 1)
        cluster.produce("later", ["a"])
        assert (session.ask({}), session.errors) == ({0: 0}, {})


def test_a_partition_that_a_request_names_and_forgets_is_forgotten(cluster: Cluster) -> None:
    """As in Kafka's FetchSession.update; a request that opens a session forgets nothing."""
    cluster.create_topic("both", 2)
    for partition in (0, 1):
        cluster.produce("both", ["a"], partition=partition)
    with closing(Session(cluster, "both", {0: 0}, forget=(0,))) as session:
        assert session.first == {0: 0}
        assert session.ask({0: 0, 1: 0}, forget=(1,)) == {0: 0}
        assert session.ask({}) == {0: 0}
        assert session.ask({1: 0}, forget=(0,)) == {1: 0}


@pytest.mark.parametrize("seed", range(5))
def test_every_partition_with_something_to_send_is_sent(cluster: Cluster, seed: int) -> None:
    rng, topic = random.Random(seed), f"walk-{seed}"
    cluster.create_topic(topic, PARTITIONS)
    ends = dict.fromkeys(range(PARTITIONS), 0)
    with closing(Session(cluster, topic, {0: 0, 1: 0})) as session:
        for _ in range(100):
            if rng.random() < 0.3:
                grown = rng.randrange(PARTITIONS)
                cluster.produce(topic, ["value"], partition=grown)
                ends[grown] += 1
            some = [one for one in ends if rng.random() < 0.3]
            forget = tuple(one for one in ends if rng.random() < 0.1)
            got = session.ask({one: rng.randint(0, ends[one]) for one in some}, forget)
            assert got == {one: at for one, at in session.places.items() if at < ends[one]}
            assert not session.errors


def test_a_follower_receives_the_high_watermark_again_if_it_repeats_its_offset() -> None:
    """It may have discarded the answer with it: records that it already had came along."""
    with Cluster(brokers=3, config={"replica.lag.time.max.ms": "60000"}) as cluster:
        cluster.create_topic("t", assignment={0: [1, 2, 3]})
        cluster.wait_isr("t")
        cluster.kill(3)
        cluster.wait_isr("t", isr=[1, 2])
        cluster.pause(2)
        with closing(Session(cluster, "t", {0: 0}, follower=3)) as session:
            cluster.produce("t", ["value"], acks=1)
            assert (session.ask({}), session.marks) == ({0: 0}, {0: 0})
            cluster.resume(2)
            wait_for(lambda: cluster.replica("t", 0, 1).hw or None, 60.0, lambda: "it is committed")
            assert (session.ask({}), session.marks) == ({0: 0}, {0: 1})
            assert (session.ask({0: 1}), session.marks) == ({}, {0: 1})
            assert (session.ask({}), session.marks) == ({}, {})
