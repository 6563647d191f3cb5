"""Logs that a real Apache Kafka wrote: compressed, transactional, compacted; clean and killed."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from holdfast.model import TopicPartition
from holdfast.protocol.records import batches, read_records
from holdfast.storage import LogDirectory, LogSettings, RealDisk, aborted_transactions, read
from holdfast.storage.checkpoints.meta_properties import read_meta_properties
from holdfast.storage.file_names import CLEAN_SHUTDOWN
from tests.support.waiting import wait_until
from tests.unit.storage import kafka
from tests.unit.storage.support import open_all, records_of

pytestmark = pytest.mark.slow
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COMPACT = {
    "cleanup.policy": "compact",
    "segment.ms": "200",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
}


def produce(bootstrap: str) -> None:
    for codec in CODECS:
        settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 5}
        producer = Producer({**settings, "enable.idempotence": True})
        for number in range(300):
            value = f"{codec} {number} ".encode() * 5
            producer.produce("mixed", value, b"key", partition=0, headers={"codec": codec})
        assert producer.flush(30) == 0


def transact(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for place in range(3):
            producer.produce("ended", f"{number} {place}".encode(), partition=0)
        producer.flush(30)
        producer.commit_transaction(30) if number % 2 else producer.abort_transaction(30)


def compact(bootstrap: str, folder: Path) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    log = folder / "data" / "kept-0"
    cleaned = folder / "data" / "cleaner-offset-checkpoint"
    for round_ in range(4):
        for number in range(50):
            value = None if number == 7 and round_ == 2 else f"{round_} {number}".encode() * 20
            producer.produce("kept", value, f"k{number}".encode(), partition=0)
        assert producer.flush(30) == 0
        threading.Event().wait(0.4)  # segment.ms: the next append begins a new segment
    producer.produce("kept", b"last", b"end", partition=0)
    assert producer.flush(30) == 0
    wait_until(lambda: "kept 0" in cleaned.read_text(), "cleaning")
    wait_until(lambda: is_small(log), "a smaller log")


def is_small(log: Path) -> bool:
    try:
        return sum(one.stat().st_size for one in log.glob("*.log")) < 15_000
    except FileNotFoundError:
        return False  # the cleaner replaced a segment while we looked


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The logs of a node after a kill (copied while it ran) and after a clean shutdown."""
    folder = tmp_path_factory.mktemp("kafka")
    killed = folder / "killed"
    with kafka.node(folder) as node:
        bootstrap = node.bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap})
        topics = [
            NewTopic("mixed", 1, 1, config={"segment.bytes": "1048576"}),
            NewTopic("ended", 1, 1),
            NewTopic("kept", 1, 1, config=COMPACT),
        ]
        for future in admin.create_topics(topics).values():
            future.result(30)
        produce(bootstrap)
        transact(bootstrap)
        compact(bootstrap, folder)
        node.copy(folder / "data", killed)
    return folder / "data", killed


def settings_of(partition: TopicPartition) -> LogSettings:
    policy = ("compact",) if partition.topic in ("kept", "__consumer_offsets") else ("delete",)
    return LogSettings(cleanup_policy=policy)


@pytest.fixture(params=["clean", "killed"])
def directory(
    request: pytest.FixtureRequest, folders: tuple[Path, Path], tmp_path: Path
) -> LogDirectory:
    """A copy of the directory, opened by us."""
    source = folders[0] if request.param == "clean" else folders[1]
    shutil.copytree(source, tmp_path / "data")
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists() == (request.param == "clean")
    return LogDirectory(RealDisk(tmp_path / "data"), settings_of)


def test_every_partition_opens_and_reads(directory: LogDirectory) -> None:
    open_all(directory)
    assert TopicPartition("mixed", 0) in directory.logs
    for log in directory.logs.values():
        offset = log.log_start_offset
        while data := read(log, offset, 1 << 20):
            for found in batches(data):
                found.check_crc()
                offset = found.header.end_offset  # type: ignore[assignment]
        assert offset == log.log_end_offset
    meta = read_meta_properties(directory.disk)
    assert meta is not None
    assert (meta.cluster_id, meta.node_id) == (kafka.CLUSTER, 1)
    assert directory.topic_id(TopicPartition("mixed", 0)) is not None
    if directory.last_shutdown is not None:
        assert [note for note in directory.notes if "left over" not in note] == []


def test_every_codec_is_read(directory: LogDirectory) -> None:
    log = directory.log(TopicPartition("mixed", 0))
    values = [value for _, value in records_of(log)]
    expected = [f"{codec} {number} ".encode() * 5 for codec in CODECS for number in range(300)]
    assert values == expected
    assert len(log.producers.states) == len(CODECS)


def test_transactions_are_read(directory: LogDirectory) -> None:
    log = directory.log(TopicPartition("ended", 0))
    aborted = aborted_transactions(log, 0, log.log_end_offset)
    hidden = {offset for one in aborted for offset in range(one.first_offset, one.last_offset)}
    seen = [value for offset, value in records_of(log) if offset not in hidden]
    assert seen == [f"{number} {place}".encode() for number in (1, 3, 5) for place in range(3)]
    assert log.producers.last_stable_offset(log.log_end_offset) == log.log_end_offset


def test_a_compacted_log_is_read_with_its_gaps(directory: LogDirectory) -> None:
    log = directory.log(TopicPartition("kept", 0))
    newest: dict[bytes, bytes] = {}
    offset = log.log_start_offset
    count = 0
    while data := read(log, offset, 1 << 20):
        for found in batches(data):
            for record in read_records(found):
                count += 1
                newest[bytes(record.key or b"")] = bytes(record.value or b"")
            offset = found.header.end_offset  # type: ignore[assignment]
    assert count < 201
    assert newest[b"k3"] == b"3 3" * 20
    assert newest[b"end"] == b"last"
