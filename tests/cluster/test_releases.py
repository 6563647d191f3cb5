"""Data directories of earlier releases open, with everything in them."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from holdfast.cluster import Cluster

pytestmark = pytest.mark.slow
ARCHIVES = sorted((Path(__file__).parent / "releases").glob("*.tar.xz"))
OLD_IS_KEPT = {"log.retention.ms": "-1", "offsets.retention.minutes": "2147483647"}
SENT, AFTER = 1500, 10


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_a_data_directory_of_a_release_opens(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    with Cluster(tmp_path, config=OLD_IS_KEPT) as cluster:
        for partition in (0, 1):
            cluster.wait_isr("events", partition)
            values = [(value or b"").rstrip(b".") for value in cluster.consume("events", partition)]
            assert values[:SENT] == [b"event %d" % n for n in range(partition, 2 * SENT, 2)]
            assert values[SENT:] == [b"after the kill %d" % n for n in range(partition, 20, 2)]
        assert cluster.consume("facts") == [b"one", b"two"]
        assert committed(cluster) == [SENT, SENT]
        for partition in (0, 1):
            assert cluster.produce("events", ["today"], partition) == SENT + AFTER
        cluster.assert_no_acked_loss()


def committed(cluster: Cluster) -> list[int]:
    """The committed offset of the group `readers`."""
    config = {"bootstrap.servers": cluster.bootstrap, "group.id": "readers", "log_level": 0}
    consumer = Consumer(config)
    try:
        asked = [TopicPartition("events", partition) for partition in (0, 1)]
        return [one.offset for one in consumer.committed(asked, 30.0)]
    finally:
        consumer.close()
