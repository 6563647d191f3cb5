"""Anomalies planted in what a real cluster and a real LedgerProducer left behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.cluster import Cluster
from holdfast.ledger import CONSUMED, LedgerProducer, read_ledger
from holdfast.pipeline.audit.replicas.replica_files import find_replicas
from holdfast.protocol.records import crc32c
from holdfast.protocol.records.arrow.reader import read_table
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import read_epochs, write_epochs
from holdfast.storage.file_names import EPOCH_CHECKPOINT
from tests.pipeline.audit_reference import Content, Line
from tests.pipeline.audit_world import NAME, TOPIC, batches

BROKERS = (1, 2, 3)
RECORDS = 60
Edit = Callable[[Line], object]


def value(number: int) -> bytes:
    return b"value %d" % number


class Estate:
    """The directories of one cluster and its ledger; `copy` gives one to spoil."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def ledger(self) -> Path:
        return self.root / "ledger"

    @property
    def logs(self) -> dict[str, Path]:
        return {f"b{one}": self.root / "cluster" / "brokers" / str(one) / "log" for one in BROKERS}

    @property
    def leader(self) -> str:
        """Who led last: brokers that shut down hand over, so nobody knows beforehand."""
        [replicas] = find_replicas(self.logs, [TOPIC]).partitions.values()
        return replicas[0].broker

    @property
    def followers(self) -> list[str]:
        return [broker for broker in self.logs if broker != self.leader]

    def copy(self, to: Path) -> Estate:
        shutil.copytree(self.root, to)
        return Estate(to)

    def log(self, broker: str) -> Path:
        return self.logs[broker] / str(NAME) / f"{0:020}.log"

    def line(self, broker: str | None = None) -> Line:
        """A broker's log; the leader's unless another is named."""
        content = self.log(broker or self.leader).read_bytes()
        return {
            row["offset"]: (row["leader_epoch"], (row["key"], row["value"]))
            for row in read_table(content).to_pylist()
        }

    def edit(self, plant: Edit, *brokers: str) -> None:
        """Write the logs again, of all brokers unless some are named. Indexes stay as they were."""
        for broker in brokers or self.logs:
            line = self.line(broker)
            plant(line)
            self.log(broker).write_bytes(b"".join(batches(line)))

    def edit_ledger(self, plant: Callable[[list[dict[str, Any]]], object]) -> None:
        """The ledger as Parquet, with other rows."""
        tables = [pa.Table.from_batches([batch]) for batch in read_ledger(self.ledger)]
        rows = pa.concat_tables(tables).to_pylist()
        plant(rows)
        [old] = self.ledger.rglob("*.arrows")
        old.unlink()
        pq.write_table(pa.Table.from_pylist(rows, tables[0].schema), old.with_suffix(".parquet"))

    def consumed(self, polls: list[tuple[int, Content]]) -> Path:
        return write_consumed(self.root / "consumed", TOPIC, polls)


def write_consumed(root: Path, topic: str, polls: list[tuple[int, Content]]) -> Path:
    """A consumer's ledger of these deliveries."""
    folder = root / "run" / "consumer"
    folder.mkdir(parents=True)
    rows = [
        {
            **dict.fromkeys(CONSUMED.logical.names),
            "run": "run",
            "consumer": "consumer",
            "group": "group",
            "sequence": nth,
            "poll": nth,
            "assignment": 1,
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "key_crc": None if key is None else crc32c(key),
            "value_crc": None if what is None else crc32c(what),
            "key_len": None if key is None else len(key),
            "value_len": None if what is None else len(what),
            "polled_ms": 1,
            "result": "processed",
        }
        for nth, (offset, (key, what)) in enumerate(polls)
    ]
    pq.write_table(pa.Table.from_pylist(rows, CONSUMED.logical), folder / f"{topic}-00000.parquet")
    return root


def make_estate(root: Path) -> Estate:
    """Three brokers, one partition, RECORDS acknowledged records in many batches."""
    with Cluster(root / "cluster", brokers=3) as cluster:
        cluster.create_topic(TOPIC, partitions=1)
        config = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0}
        producer = LedgerProducer(config, ledger=root / "ledger")
        for number in range(RECORDS):
            producer.produce(TOPIC, value(number), key=b"key %d" % (number % 7), partition=0)
            if number % 3 == 2:
                producer.flush()
        assert producer.flush(30) == 0
        del producer
    estate = Estate(root)
    for broker in estate.logs:
        _forget_handovers(estate.log(broker).parent)
    return estate


def _forget_handovers(folder: Path) -> None:
    """A broker that shuts down hands over, or not: no record is of such an epoch."""
    disk = RealDisk(folder)
    epochs = read_epochs(disk, EPOCH_CHECKPOINT) or []
    write_epochs(disk, EPOCH_CHECKPOINT, [one for one in epochs if one.start_offset < RECORDS])
