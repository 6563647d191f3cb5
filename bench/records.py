"""Record batches: ours against others, as ratios of CPU time in one run.

    walk      headers only, batch after batch: what the broker does with a produce or a fetch
    crc       the CRC of 16 KiB through a view (a copy first), against google-crc32c over bytes
    build     records into a batch
    read      a batch into Python records
    arrow     batches into an Arrow table, against aiokafka's compiled reader that fills lists and
              hands them to Arrow; once without and once with the CRC, on both sides

A ratio above 1 says that ours is faster. Sides are alternated within each round, so that a busy
machine slows both; the ratio is the median over the rounds. The rival of `arrow` fills four columns
(offset, timestamp, key, value); ours fills all thirteen.

Batches are about 16 KiB, as producers send by default; "big" ones hold a megabyte. "mixed" sizes
vary from half to one and a half times the size named. Exit code 0 always: a shared machine is no
place for a verdict.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import google_crc32c
import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords

from holdfast.protocol.records import BatchBuilder, NewRecord, batches, build_batch, crc32c
from holdfast.protocol.records import read_records as read_ours
from holdfast.protocol.records.arrow.reader import read_table
from holdfast.protocol.records.batch_header import ATTRIBUTES_POSITION, stamp

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import default_records as kafka_python
    from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

# Without a package that is not ours to use, kafka-python sums in Python, and nothing else of its
# building would be seen. It gets the same CRC as we do.
kafka_python.calc_crc32c = lambda view: google_crc32c.value(bytes(view))

SCHEMA = "holdfast-bench-records/1"
BATCH_BYTES = 16 << 10
BIG_BATCH_BYTES = 1 << 20
TOTAL_BYTES = 8 << 20


class Case(NamedTuple):
    """One line of the table: the same work by two sides, `units` of it in a call."""

    name: str
    rival_name: str
    unit: str
    units: int
    ours: Callable[[], object]
    rival: Callable[[], object]


class Result(NamedTuple):
    """Nanoseconds of CPU a unit, best of the rounds, and the median of the rounds' ratios."""

    case: str
    rival: str
    unit: str
    ours_ns: float
    rival_ns: float
    ratio: float
    worst_ratio: float


def new_records(size: int, count: int, rng: random.Random, *, mixed: bool) -> list[NewRecord]:
    records = []
    for nth in range(count):
        value_bytes = rng.randrange(size // 2, size * 3 // 2) if mixed else size
        key = b"key-%08d" % rng.randrange(10**8)
        records.append(NewRecord(rng.randbytes(value_bytes), key, 1_794_726_597_000 + nth))
    return records


def log_of(size: int, batch_bytes: int, *, mixed: bool) -> tuple[bytes, int]:
    """A log of some megabytes, and how many records it holds."""
    rng = random.Random(7)
    per_batch = max(1, batch_bytes // (size + 20))
    out, count = bytearray(), 0
    while len(out) < TOTAL_BYTES:
        batch = build_batch(new_records(size, per_batch, rng, mixed=mixed))
        stamp(batch, 0, count, 3)
        out += batch
        count += per_batch
    return bytes(out), count


def fill_arrow(data: bytes, *, check_crc: bool) -> Any:
    """The compiled reader of aiokafka, its records into lists, the lists into Arrow."""
    offsets: list[int] = []
    timestamps: list[int] = []
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    memory = AiokafkaRecords(data)
    while memory.has_next():
        batch = memory.next_batch()
        if check_crc:
            assert batch.validate_crc()
        for record in batch:
            offsets.append(record.offset)
            timestamps.append(record.timestamp)
            keys.append(record.key)
            values.append(record.value)
    return pa.table(
        {
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array(timestamps, pa.int64()),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def arrow_cases() -> Iterator[Case]:
    for size, label in ((100, "100 B"), (1024, "1 KiB")):
        for batch_bytes, kind in ((BATCH_BYTES, ""), (BIG_BATCH_BYTES, ", big")):
            for mixed in (False, True):
                data, count = log_of(size, batch_bytes, mixed=mixed)
                name = f"arrow {label}{', mixed' if mixed else ''}{kind}"
                ours, rival = read_table(data), fill_arrow(data, check_crc=True)
                for column in rival.column_names:
                    assert ours[column].to_pylist() == rival[column].to_pylist()
                for check_crc in (False, True):
                    yield Case(
                        name + (", crc" if check_crc else ""),
                        "aiokafka",
                        "record",
                        count,
                        partial(read_table, data, check_crc=check_crc),
                        partial(fill_arrow, data, check_crc=check_crc),
                    )


def walk(kind: Any, data: bytes) -> None:
    memory = kind(data)
    while memory.has_next():
        batch = memory.next_batch()
        assert batch.base_offset >= 0


def walk_ours(data: bytes) -> None:
    for batch in batches(data):
        assert batch.header.base_offset >= 0


def walk_cases() -> Iterator[Case]:
    data, _ = log_of(100, BATCH_BYTES, mixed=False)
    count = sum(1 for _ in batches(data))
    for rival_name, rival in (("aiokafka", AiokafkaRecords), ("kafka-python", KafkaPythonRecords)):
        yield Case(
            "walk 16 KiB batches",
            rival_name,
            "batch",
            count,
            partial(walk_ours, data),
            partial(walk, rival, data),
        )


def crc_cases() -> Iterator[Case]:
    # Over a whole log, not one batch again and again: a copy whose target lies 1 to 31 bytes after
    # its source, modulo the page, takes ten times as long, and one batch may happen to lie so.
    data, _ = log_of(100, BATCH_BYTES, mixed=False)
    views = [batch.view[ATTRIBUTES_POSITION:] for batch in batches(data)]
    owned = [bytes(view) for view in views]
    yield Case(
        "crc 16 KiB, a view",
        "bare bytes",
        "batch",
        len(views),
        lambda: [crc32c(view) for view in views],
        lambda: [google_crc32c.value(one) for one in owned],
    )


def build_ours(records: list[NewRecord]) -> bytearray:
    builder = BatchBuilder()
    for record in records:
        builder.append(record.value, record.key, record.timestamp)
    return builder.build()


def build_other(kind: Any, records: list[NewRecord]) -> object:
    builder = kind(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for nth, record in enumerate(records):
        builder.append(nth, record.timestamp, record.key, record.value, [])
    return builder.build()


def read_all(data: bytes) -> int:
    return sum(1 for batch in batches(data) for _ in read_ours(batch))


def read_other(kind: Any, data: bytes) -> int:
    memory = kind(data)
    count = 0
    while memory.has_next():
        for _ in memory.next_batch():
            count += 1
    return count


def build_and_read_cases() -> Iterator[Case]:
    builders = (
        ("aiokafka", AiokafkaBuilder),
        ("kafka-python", kafka_python.DefaultRecordBatchBuilder),
    )
    readers = (("aiokafka", AiokafkaRecords), ("kafka-python", KafkaPythonRecords))
    for size, label in ((100, "100 B"), (1024, "1 KiB")):
        records = new_records(size, 2_000, random.Random(7), mixed=False)
        data = bytes(build_ours(records))
        for name, builder in builders:
            yield Case(
                f"build {label}",
                name,
                "record",
                len(records),
                partial(build_ours, records),
                partial(build_other, builder, records),
            )
        for name, reader in readers:
            yield Case(
                f"read {label}",
                name,
                "record",
                len(records),
                partial(read_all, data),
                partial(read_other, reader, data),
            )


def cost(work: Callable[[], object]) -> float:
    start = time.process_time_ns()
    work()
    return float(time.process_time_ns() - start)


def measure(case: Case, rounds: int) -> Result:
    """Both sides in turn, the order changing from round to round; a first round is not counted."""
    case.ours()
    case.rival()
    ours, rival = [], []
    gc.collect()
    gc.disable()
    for nth in range(rounds):
        if nth % 2:
            ours.append(cost(case.ours))
            rival.append(cost(case.rival))
        else:
            rival.append(cost(case.rival))
            ours.append(cost(case.ours))
    gc.enable()
    ratios = [theirs / own for theirs, own in zip(rival, ours, strict=True)]
    return Result(
        case.name,
        case.rival_name,
        case.unit,
        min(ours) / case.units,
        min(rival) / case.units,
        statistics.median(ratios),
        min(ratios),
    )


def main() -> int:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="cases whose name starts so")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    if not options.json:
        print(f"{'case':32} {'against':14} {'ours':>10} {'theirs':>10} {'ratio':>6} {'worst':>6}")
    for cases in (walk_cases, crc_cases, build_and_read_cases, arrow_cases):
        for case in cases():
            if not case.name.startswith(options.only):
                continue
            result = measure(case, options.rounds)
            results.append(result)
            if not options.json:
                print(
                    f"{result.case:32} {result.rival:14} {result.ours_ns:7.0f} ns "
                    f"{result.rival_ns:7.0f} ns {result.ratio:6.2f} {result.worst_ratio:6.2f}"
                )
    if options.json:
        rows = [result._asdict() for result in results]
        print(json.dumps({"schema": SCHEMA, "rounds": options.rounds, "results": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
