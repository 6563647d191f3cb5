"""flush.messages=N on real brokers with slow disks: what a power failure of all of them may take.

The guarantee: the acknowledgement of the batch that brings the unflushed records to N leaves when
everything up to it is flushed on the replicas that counted. So a power failure of all brokers takes
at most the N-1 newest acknowledged records.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.cluster import Cluster
from holdfast.cluster.client.client import KafkaError
from holdfast.cluster.client.records import produce
from holdfast.model import ErrorCode
from holdfast.protocol.records import NewRecord
from tests.support.waiting import wait_until

SOON_S = 2.0
"""A producer's patience: shorter than a slow flush, long enough for anything else."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        yield cluster


def send(cluster: Cluster, topic: str, *values: str) -> ErrorCode:
    """One batch; what the leader answers."""
    with cluster.client() as client:
        records = [NewRecord(value.encode()) for value in values]
        try:
            produce(client, topic, 0, records, acks=-1, timeout_s=SOON_S)
        except KafkaError as error:
            return ErrorCode(error.code)
    return ErrorCode.NONE


def lose_power(cluster: Cluster, topic: str) -> list[bytes | None]:
    """All brokers at the same moment; what the topic has when they are back."""
    cluster.power_loss(*cluster.brokers)
    cluster.restart(*cluster.brokers)
    cluster.wait_leader(topic)
    cluster.wait_isr(topic, isr=cluster.brokers)
    return cluster.consume(topic)


@pytest.mark.slow
@pytest.mark.parametrize("messages", [2, 5])
def test_what_is_acknowledged_while_the_disks_are_slow(cluster: Cluster, messages: int) -> None:
    topic = f"every-{messages}"
    cluster.create_topic(topic, config={"flush.messages": str(messages)})
    first = [f"first-{number}" for number in range(messages)]
    assert send(cluster, topic, *first) is ErrorCode.NONE
    wait_until(
        lambda: all(
            cluster.replica(topic, 0, one).flushed_offset == messages for one in cluster.brokers
        ),
        "all replicas have flushed the first batch",
    )
    for broker in cluster.brokers:
        cluster.slow_flush(broker, f"{topic}-0")
    # Fewer than N unflushed: acknowledged, and a power failure may take them.
    for number in range(messages - 1):
        assert send(cluster, topic, f"free-{number}") is ErrorCode.NONE
    # The Nth has to wait for a flush that takes longer than its producer waits.
    assert send(cluster, topic, "held") is ErrorCode.REQUEST_TIMED_OUT
    assert lose_power(cluster, topic)[:messages] == [one.encode() for one in first]

    # With disks as they should be again, every acknowledgement of N records is kept.
    kept = len(cluster.consume(topic))
    batches = [[f"{number}-{place}" for place in range(messages)] for number in range(6)]
    for batch in batches:
        assert send(cluster, topic, *batch) is ErrorCode.NONE
    sent = [value.encode() for batch in batches for value in batch]
    assert lose_power(cluster, topic)[kept:] == sent
