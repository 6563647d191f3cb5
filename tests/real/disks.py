"""Reads the records in brokers' files with the tools of storage, while they run or after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from holdfast.cluster import Cluster
from holdfast.protocol.records import Batch, batches, read_records
from holdfast.storage import RealDisk, examine_log
from holdfast.storage.file_names import LOG
from holdfast.storage.inspect.log_files import log_files
from tests.support.waiting import wait_until


class Written(NamedTuple):
    """One record in a file."""

    offset: int
    leader_epoch: int
    label: str


def _batches(cluster: Cluster, broker: int, partition: str) -> Iterator[Batch]:
    folder = cluster.files(broker).log
    if not (folder / partition).is_dir():
        return
    files = log_files(RealDisk(folder, read_only=True), partition)
    for base in files.bases:
        content = (folder / files.path(base, LOG)).read_bytes()
        yield from batches(content, partial_end=True)


def written(cluster: Cluster, broker: int, partition: str) -> list[Written]:
    """Every record of a partition in a broker's files."""
    return [
        Written(record.offset, batch.header.leader_epoch, str(record.value or b"", "utf-8"))
        for batch in _batches(cluster, broker, partition)
        for record in read_records(batch)
    ]


def assert_equal_logs(cluster: Cluster, brokers: Sequence[int], partition: str, end: int) -> None:
    """All replicas have the same bytes below an offset, and storage finds nothing wrong with them.

    A replica's segments may begin elsewhere, so bytes are compared batch by batch.
    """
    contents = {
        broker: [
            bytes(batch.view)
            for batch in _batches(cluster, broker, partition)
            if batch.header.base_offset < end
        ]
        for broker in brokers
    }
    first = contents[brokers[0]]
    for broker, content in contents.items():
        assert content == first, f"{partition}: brokers {brokers[0]} and {broker} differ"
        wait_until(
            partial(_is_whole, cluster, broker, partition), f"broker {broker} has a whole log"
        )


def _is_whole(cluster: Cluster, broker: int, partition: str) -> bool:
    """A running broker may still have to write a new epoch to its file."""
    disk = RealDisk(cluster.files(broker).log, read_only=True)
    return not examine_log(disk, log_files(disk, partition), deep=True).findings


def assert_agreed(cluster: Cluster) -> None:
    """Every partition is whole, and its replicas have the same bytes below the high watermark."""
    with cluster.client() as client:
        found = client.metadata().topics
    for topic in found:
        assert topic.name is not None
        for one in topic.partitions:
            index = one.partition_index
            leader = cluster.wait_leader(topic.name, index)
            cluster.wait_isr(topic.name, index)
            end = cluster.replica(topic.name, index, leader).hw
            assert_equal_logs(cluster, one.replica_nodes, f"{topic.name}-{index}", end)
