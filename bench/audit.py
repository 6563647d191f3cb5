"""The audit of a ledger, three replicas and a table: wall time, rows per second, memory.

    python -m bench.audit --records 5000000 20000000

Inputs are built in numpy: batches of 64 records with 8-byte keys and 100 random bytes, twelve
partitions, three equal copies, one ledger of as many sends, one Delta table. Every millionth record
is missing in every copy, so that the audit has losses to name. local[2], a driver of 2 GB. The
audit runs in its own process; session and Java included in "whole", not in "audit".
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.rivals import memory_mb
from holdfast.ledger import SENT
from holdfast.model import TopicPartition
from holdfast.protocol.records.batch_header import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
)
from holdfast.protocol.records.crc import crc32c_parts
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import write_offsets
from holdfast.storage.file_names import HIGH_WATERMARKS, RECOVERY_POINTS

SCHEMA = "holdfast-bench-audit/1"
TOPIC = "events"
PARTITIONS = 12
BATCH = 64
VALUE_BYTES = 100
KEY_BYTES = 8
BODY_BYTES = 4 + KEY_BYTES + 2 + VALUE_BYTES + 1
RECORD_BYTES = 2 + BODY_BYTES
VALUE_AT = 2 + 4 + KEY_BYTES + 2
BATCH_BYTES = HEADER_BYTES + BATCH * RECORD_BYTES
CHUNK = 1 << 13
"""Batches created at a time."""
LOSS_EVERY = 1_000_000
NOW_MS = 1_700_000_000_000
BROKERS = ("b1", "b2", "b3")


def zigzag(number: int) -> list[int]:
    """A varint of up to two bytes."""
    coded = number << 1
    return [coded] if coded < 0x80 else [coded & 0x7F | 0x80, coded >> 7]


def records(count: int, rng: np.random.Generator) -> Any:
    """Batches without headers, as (batches, BATCH, RECORD_BYTES)."""
    made = np.zeros((count, BATCH, RECORD_BYTES), np.uint8)
    made[:, :, :2] = zigzag(BODY_BYTES)
    made[:, :, 4] = np.arange(BATCH) * 2
    made[:, :, 5] = KEY_BYTES * 2
    made[:, :, 6 + KEY_BYTES : VALUE_AT] = zigzag(VALUE_BYTES)
    made[:, :, 6 : 6 + KEY_BYTES] = rng.integers(65, 91, (count, BATCH, KEY_BYTES), np.uint8)
    values = np.frombuffer(rng.bytes(count * BATCH * VALUE_BYTES), np.uint8)
    made[:, :, VALUE_AT : VALUE_AT + VALUE_BYTES] = values.reshape(count, BATCH, VALUE_BYTES)
    return made


def stamped(bodies: Any, base: int) -> bytes:
    """The same with headers, at offsets from `base`."""
    count = len(bodies)
    out = np.zeros((count, BATCH_BYTES), np.uint8)
    out[:, HEADER_BYTES:] = bodies.reshape(count, -1)
    length = BATCH_BYTES - LENGTH_END
    header = HEADER.pack(0, length, 1, 2, 0, 0, BATCH - 1, NOW_MS, NOW_MS, -1, -1, -1, BATCH)
    out[:, :HEADER_BYTES] = np.frombuffer(header, np.uint8)
    bases = (base + np.arange(count) * BATCH).astype(">i8")
    out[:, :8] = bases.view(np.uint8).reshape(count, 8)
    data = out.tobytes()
    starts = np.arange(count) * BATCH_BYTES + ATTRIBUTES_POSITION
    spans = np.stack([starts, np.full(count, BATCH_BYTES - ATTRIBUTES_POSITION)], 1)
    sums = crc32c_parts(data, spans.astype(np.uint64).reshape(-1).data)
    out[:, 17:21] = np.array(sums, ">u4").view(np.uint8).reshape(count, 4)
    return out.tobytes()


def sums_of(part: Any) -> Any:
    """CRC-32C of every row of a (rows, bytes) array."""
    data = np.ascontiguousarray(part)
    rows, size = data.shape
    spans = np.stack([np.arange(rows) * size, np.full(rows, size)], 1).astype(np.uint64)
    return np.array(crc32c_parts(data.reshape(-1).data, spans.reshape(-1).data), np.uint32)


class Inputs:
    """Builds a directory of inputs."""

    def __init__(self, root: Path, count: int) -> None:
        self.root, self.count = root, count
        self.rng = np.random.default_rng(1)
        self.sequence = 0
        for broker in BROKERS:
            (root / broker).mkdir(parents=True)
        self.book = root / "ledger" / "run" / "producer"
        self.book.mkdir(parents=True)
        (root / "table").mkdir()

    def build(self) -> int:
        """Build all inputs; returns how many records are missing in every copy."""
        each = self.count // PARTITIONS // BATCH * BATCH
        lost = sum(self._partition(number, each) for number in range(PARTITIONS))
        ends = {TopicPartition(TOPIC, number): each for number in range(PARTITIONS)}
        for broker in BROKERS:
            for name in (HIGH_WATERMARKS, RECOVERY_POINTS):
                write_offsets(RealDisk(self.root / broker), name, ends)
        return lost

    def _partition(self, number: int, each: int) -> int:
        folder = self.root / BROKERS[0] / f"{TOPIC}-{number}"
        folder.mkdir()
        lost = 0
        with (folder / f"{0:020}.log").open("wb") as log:
            for base in range(0, each, CHUNK * BATCH):
                bodies = records(min(CHUNK, (each - base) // BATCH), self.rng)
                first = self._send(bodies, number, base)
                gone = np.flatnonzero((first + np.arange(len(bodies) * BATCH)) % LOSS_EVERY == 0)
                kept = np.ones(len(bodies), np.bool_)
                kept[gone // BATCH] = False
                data = stamped(bodies, base)
                view = memoryview(data)
                for at in np.flatnonzero(kept).tolist() if not kept.all() else ():
                    log.write(view[at * BATCH_BYTES : (at + 1) * BATCH_BYTES])
                if kept.all():
                    log.write(data)
                lost += BATCH * int(np.count_nonzero(~kept))
        for broker in BROKERS[1:]:
            shutil.copytree(folder, self.root / broker / folder.name)
        return lost

    def _send(self, bodies: Any, number: int, base: int) -> int:
        """Write the rows of the ledger and of the table; returns the first sequence."""
        rows = bodies.reshape(-1, RECORD_BYTES)
        count, first = len(rows), self.sequence
        keys = np.ascontiguousarray(rows[:, 6 : 6 + KEY_BYTES])
        values = np.ascontiguousarray(rows[:, VALUE_AT : VALUE_AT + VALUE_BYTES])
        offsets = np.arange(base, base + count)
        sent = (NOW_MS + offsets // 1000) * 1_000_000
        cells = {
            "sequence": np.arange(first, first + count),
            "partition_asked": np.full(count, number, np.int32),
            "key_crc": sums_of(keys),
            "value_crc": sums_of(values),
            "key_len": np.full(count, KEY_BYTES, np.int32),
            "value_len": np.full(count, VALUE_BYTES, np.int32),
            "sent_ns": sent,
            "partition": np.full(count, number, np.int32),
            "offset": offsets,
            "answered_ns": sent + 2_000_000,
            "error": np.zeros(count, np.int16),
            "result": np.full(count, 2, np.uint8),
        }
        facts = {"format": "holdfast-ledger", "version": "1", "run": "run", "kind": "sent"}
        facts |= {"producer": "producer", "topic": TOPIC, "acks": "-1", "idempotent": "True"}
        schema = SENT.cells.with_metadata(facts)
        batch = pa.record_batch([pa.array(cells[name]) for name in schema.names], schema=schema)
        path = self.book / f"{TOPIC}-{first // (CHUNK * BATCH):05}.arrows"
        with path.open("xb") as file, pa.ipc.new_stream(file, schema) as stream:
            stream.write(batch)
        self._table(keys, values, number, offsets, first)
        self.sequence = -(-(first + count) // (CHUNK * BATCH)) * (CHUNK * BATCH)
        return first

    def _table(self, keys: Any, values: Any, number: int, offsets: Any, first: int) -> None:
        def fixed(part: Any) -> Any:
            bounds = np.arange(len(part) + 1, dtype=np.int32) * part.shape[1]
            buffers = [None, pa.py_buffer(bounds), pa.py_buffer(part.reshape(-1))]
            return pa.Array.from_buffers(pa.binary(), len(part), buffers)

        table = pa.table(
            {
                "topic": pa.array([TOPIC]).take(pa.array(np.zeros(len(offsets), np.int32))),
                "partition": pa.array(np.full(len(offsets), number, np.int32)),
                "offset": pa.array(offsets),
                "key": fixed(keys),
                "value": fixed(values),
            }
        )
        pq.write_table(table, self.root / "table" / f"{first:012}.parquet", compression="snappy")


def cpu_of_descendants() -> float:
    """Seconds that Java and its Python workers have used; a busy machine does not change it."""
    parents, used = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended.
        parents[int(folder.name)] = int(fields[1])
        used[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def is_ours(process: int) -> bool:
        while process > 1:  # Up to the first process at most.
            process = parents.get(process, 0)
            if process == os.getpid():
                return True
        return False

    return sum(seconds for process, seconds in used.items() if is_ours(process))


def audit(root: Path) -> dict[str, Any]:
    """The figures of one audit, in its own process."""
    from delta.tables import DeltaTable

    from holdfast.pipeline.audit import AuditInputs, run
    from holdfast.pipeline.spark import running

    conf = {"spark.driver.memory": "2g"}
    with running("bench audit", master="local[2]", conf=conf) as spark:
        table = str(root / "table")
        if not (root / "table" / "_delta_log").exists():
            DeltaTable.convertToDelta(spark, f"parquet.`{table}`")
        before = cpu_of_descendants()
        started = time.perf_counter()
        done = run(
            spark,
            AuditInputs(
                ledger=root / "ledger",
                logs={broker: root / broker for broker in BROKERS},
                table=table,
            ),
        )
        seconds = time.perf_counter() - started
        cpu = cpu_of_descendants() - before
        java = memory_mb(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    return {
        "seconds": round(seconds, 1),
        "acked": done.verdict.acked,
        "lost": done.verdict.lost,
        "in_table": done.verdict.in_table,
        "cpu_seconds": round(cpu, 1),
        "java_mb": round(java),
        "driver_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", type=int, nargs="+", default=[5_000_000, 20_000_000])
    parser.add_argument("--keep", type=Path, help="build the inputs here, and leave them")
    parser.add_argument("--audit", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.audit:
        print(json.dumps(audit(asked.audit)))
        return
    for count in asked.records:
        root = Path(tempfile.mkdtemp(prefix="holdfast-bench-audit-", dir=asked.keep))
        try:
            lost = Inputs(root, count).build()
            started = time.perf_counter()
            command = [sys.executable, "-m", "bench.audit", "--audit", str(root)]
            finished = subprocess.run(  # noqa: S603  # ourselves
                command, check=True, capture_output=True, text=True
            )
            figures = json.loads(finished.stdout)
            assert figures["lost"] == lost, (figures, lost)
            figures |= {"whole_seconds": round(time.perf_counter() - started, 1)}
            figures |= {"records": count, "load": os.getloadavg()[0], "schema": SCHEMA}
            print(json.dumps(figures), flush=True)
        finally:
            if asked.keep is None:
                shutil.rmtree(root)


if __name__ == "__main__":
    main()
