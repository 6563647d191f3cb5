"""Offsets of replicas: what a follower answers to a tool, and what a dead broker leaves out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.cluster import Client, Cluster
from holdfast.model import ErrorCode
from holdfast.protocol.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from holdfast.protocol.records import batches, read_records
from tests.commands.shell import Shell

pytestmark = pytest.mark.slow

TOOL = -2
BY_NAME = 12


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """With a topic of three replicas that all have two records."""
    with Cluster(brokers=3) as running:
        running.create_topic("t")
        running.produce("t", ["one", "two"])
        running.wait_isr("t")
        yield running


def fetched(client: Client, broker: int, offset: int, *, partition: int = 0) -> FetchPartitionData:
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1000)
    topics = [FetchTopic(topic="t", partitions=[asked])]
    request = FetchRequest(replica_id=TOOL, max_wait_ms=0, min_bytes=0, topics=topics)
    answer = client.ask(broker, request, FetchResponse, most=BY_NAME)
    [data] = answer.responses[0].partitions
    return data


def test_every_replica_answers_a_tool(cluster: Cluster) -> None:
    with cluster.client() as client:
        for broker in cluster.brokers:
            data = fetched(client, broker, 0)
            assert data.error_code == ErrorCode.NONE
            assert data.log_start_offset == 0
            [batch] = batches(data.records or b"")
            values = [bytes(record.value or b"") for record in read_records(batch)]
            assert values == [b"one", b"two"]
            assert not fetched(client, broker, 2).records
            assert fetched(client, broker, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            unknown = fetched(client, broker, 0, partition=7)
            assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_dead_broker_s_replica_has_no_offsets(cluster: Cluster) -> None:
    shell = Shell(cluster.bootstrap, cluster.brokers, "holdfast")
    leader = cluster.leader("t")
    dead = next(one for one in cluster.brokers if one != leader)
    cluster.kill(dead)
    try:
        [topic] = shell.json("topics", "describe", "-t", "t")["topics"]
        replicas = {one["broker"]: one for one in topic["partitions"][0]["replicas"]}
        assert replicas[dead]["log_end_offset"] is None
        assert replicas[dead]["high_watermark"] is None
        assert replicas[leader]["log_end_offset"] == 2
        rows = [line.split()[-4:] for line in shell.lines("topics", "describe", "-t", "t")[2:]]
        assert [row[1:] for row in rows if row[0] == str(dead)] == [["-", "-", "-"]]
    finally:
        cluster.restart(dead)
