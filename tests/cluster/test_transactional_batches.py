"""Transactional batches without a coordinator that could end them: they block no reader."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from holdfast.cluster import Cluster
from holdfast.cluster.client.client import Address, Connection
from holdfast.model import EndMarker, ErrorCode
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from holdfast.protocol.records import BatchOptions, build_end_marker
from holdfast.storage import LastKnown, LogSettings, RealDisk, open_log
from tests.real import wire

pytestmark = pytest.mark.slow

NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1) as cluster:
        yield cluster


def transactional(sequence: int = 0) -> BatchOptions:
    return BatchOptions(
        producer_id=4711, producer_epoch=0, base_sequence=sequence, is_transactional=True
    )


def sent(cluster: Cluster, topic: str, records: bytes, transactional_id: str | None) -> ErrorCode:
    """What the broker answers to one batch."""
    entry = cluster.entry(1)
    connection = Connection(Address(entry.host, entry.port), 30.0)
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    try:
        answer = connection.send(request, wire.BY_NAME)
    finally:
        connection.close()
    assert isinstance(answer, ProduceResponse)
    [partition_response] = answer.responses[0].partition_responses
    return ErrorCode(partition_response.error_code)


def committed(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    """What a read_committed consumer gets within a minute, `count` records at most."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "readers",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        return [one.value() for one in consumer.consume(count, 60.0)]
    finally:
        consumer.close()


def test_they_are_refused_and_readers_go_on(cluster: Cluster) -> None:
    cluster.create_topic("refused")
    records = wire.batch(["undecided"], transactional())
    assert sent(cluster, "refused", records, "an id") is ErrorCode.INVALID_TXN_STATE
    without_id = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert sent(cluster, "refused", records, None) is without_id
    marker = bytes(build_end_marker(EndMarker(True, 4711, 0, 0), NOW_MS, 0, 0))
    assert sent(cluster, "refused", marker, "an id") is ErrorCode.INVALID_RECORD
    cluster.produce("refused", ["plain"])
    assert committed(cluster, "refused", 1) == [b"plain"]


def test_a_partition_that_an_older_release_froze_opens_thawed(cluster: Cluster) -> None:
    cluster.create_topic("frozen")
    cluster.produce("frozen", ["before"])
    cluster.stop(1)
    path = cluster.files(1).log
    disk = RealDisk(path)
    log = open_log(disk, "frozen-0", LogSettings(), LastKnown(is_clean=True)).log
    options = BatchOptions(
        base_offset=1,
        leader_epoch=log.epochs.latest_epoch,
        producer_id=4711,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    log.append([bytearray(wire.batch(["undecided"], options))], NOW_MS)
    log.close(NOW_MS)
    cluster.restart(1)
    cluster.wait_leader("frozen")
    cluster.produce("frozen", ["after"])
    assert committed(cluster, "frozen", 3) == [b"before", b"undecided", b"after"]
    assert "transaction will never end" in cluster.files(1).output.read_text(encoding="utf-8")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    [deleted] = admin.delete_records([TopicPartition("frozen", 0, 2)]).values()
    assert deleted.result(60.0).low_watermark == 2
    for end in (cluster.stop, cluster.kill):
        end(1)
        cluster.restart(1)
        cluster.wait_leader("frozen")
        assert committed(cluster, "frozen", 1) == [b"after"]
