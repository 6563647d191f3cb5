"""How near storage comes to the bare calls it is made of, as ratios of one run.

    append     16 KiB batches into a log          against os.write of the same bytes and sizes
    parsed     the same, headers handed in, as a broker does that has checked them
    read       1 MiB at a time, by offset         against os.pread of the same bytes and sizes
    recovery   a segment verified and indexed     against CRC-32C over the same file
    open       1,000 partitions of one segment; and 100 clean segments against 10

Rounds alternate between the two sides, and a ratio is the median of the rounds' ratios: a busy
machine slows both down. Exit code 0 always: a shared machine is no place for a verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.model import TopicPartition
from holdfast.protocol.records import BatchBuilder, crc32c, parse_header, stamp, stamped
from holdfast.storage import LastKnown, LogDirectory, LogSettings, RealDisk, open_log, read

SCHEMA = "holdfast-bench-storage/2"
BATCH_BYTES = 16 << 10
READ_BYTES = 1 << 20
NOW = 1_700_000_000_000
SETTINGS = LogSettings()


class Spent(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


class Ratio(NamedTuple):
    """Ours against the bare call, in bytes per second."""

    ratio: float
    cpu_ratio: float
    """By CPU time: everything is in the page cache, and other work on the machine counts less."""
    ours_mb_s: float
    bare_mb_s: float


def new_batch() -> bytearray:
    """About 16 KiB of records of 1 KiB."""
    builder = BatchBuilder()
    while builder.size < BATCH_BYTES - 1100:
        builder.append(os.urandom(1024), timestamp=NOW)
    return builder.build()


def compared(ours: Callable[[], Spent], bare: Callable[[], Spent], size: int, rounds: int) -> Ratio:
    """The median of the rounds; one round to warm up."""
    ours()
    bare()
    pairs = [(ours(), bare()) for _ in range(rounds)]
    return Ratio(
        statistics.median(theirs.wall / mine.wall for mine, theirs in pairs),
        statistics.median(theirs.cpu / mine.cpu for mine, theirs in pairs),
        size / statistics.median(mine.wall for mine, _ in pairs) / 1e6,
        size / statistics.median(theirs.wall for _, theirs in pairs) / 1e6,
    )


def seconds(run: Callable[[], object]) -> Spent:
    """How long it takes."""
    started, busy = time.perf_counter(), time.process_time()
    run()
    return Spent(time.perf_counter() - started, time.process_time() - busy)


def append(folder: Path, size: int, rounds: int, *, parsed: bool = False) -> Ratio:
    """Into the page cache on both sides; files are removed between the rounds."""
    batch = new_batch()
    header = parse_header(batch)
    count = size // len(batch)
    records = 15

    def ours() -> Spent:
        disk = RealDisk(folder)
        disk.create_directory("append-0")
        log = open_log(disk, "append-0", SETTINGS).log

        def run() -> None:
            for number in range(count):
                stamp(batch, 0, number * records, 0)
                log.append([batch], NOW)

        def run_parsed() -> None:
            for number in range(count):
                stamp(batch, 0, number * records, 0)
                log.append([batch], NOW, [stamped(header, number * records, 0)])

        spent = seconds(run_parsed if parsed else run)
        log.abandon()
        remove(folder / "append-0")
        return spent

    def bare() -> Spent:
        path = folder / "bare"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)

        def run() -> None:
            for _ in range(count):
                os.write(descriptor, batch)

        spent = seconds(run)
        os.close(descriptor)
        path.unlink()
        return spent

    return compared(ours, bare, count * len(batch), rounds)


def filled(folder: Path, name: str, size: int) -> Path:
    """A log of one segment; its file."""
    disk = RealDisk(folder)
    disk.create_directory(name)
    log = open_log(disk, name, LogSettings(segment_bytes=(1 << 31) - 1)).log
    batch = new_batch()
    while log.active.size < size:
        stamp(batch, 0, log.log_end_offset, 0)
        log.append([batch], NOW)
    log.close(NOW)
    return folder / name / f"{0:020d}.log"


def reading(folder: Path, path: Path, rounds: int) -> Ratio:
    """The whole log from its start, as a consumer that is behind."""
    size = path.stat().st_size
    log = open_log(RealDisk(folder), path.parent.name, SETTINGS, LastKnown(is_clean=True)).log
    descriptor = os.open(path, os.O_RDONLY)
    records = 15

    def ours() -> None:
        offset = 0
        per_read = READ_BYTES // (size * records // log.log_end_offset) * records
        while offset < log.log_end_offset:
            data = read(log, offset, READ_BYTES)
            assert data
            offset += per_read

    def bare() -> None:
        for position in range(0, size, READ_BYTES):
            data = os.pread(descriptor, READ_BYTES, position)
            assert data

    found = compared(lambda: seconds(ours), lambda: seconds(bare), size, rounds)
    os.close(descriptor)
    log.abandon()
    return found


def recovery(folder: Path, path: Path, rounds: int) -> Ratio:
    """Everything verified, against reading and summing the file in pieces of 1 MiB."""
    size = path.stat().st_size
    settings = LogSettings(segment_bytes=(1 << 31) - 1)

    def ours() -> None:
        done = open_log(RealDisk(folder), path.parent.name, settings)
        assert done.report.verified_bytes == size
        done.log.abandon()

    def bare() -> None:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(READ_BYTES):
                crc32c(piece)

    return compared(lambda: seconds(ours), lambda: seconds(bare), size, rounds)


def opening(folder: Path, partitions: int) -> dict[str, float]:
    """Seconds for many partitions, and the cost of clean segments."""
    disk = RealDisk(folder / "many")
    disk.create_directory("")
    batch = new_batch()
    directory = LogDirectory(disk, lambda _: SETTINGS)
    for number in range(partitions):
        log = directory.create(TopicPartition("t", number), None)
        stamp(batch, 0, 0, 0)
        log.append([batch], NOW)
    directory.close(NOW, 1)
    again = LogDirectory(RealDisk(folder / "many"), lambda _: SETTINGS)
    spent = seconds(lambda: [again.log(one) for one in tuple(again.partitions)]).wall
    again.close(NOW, 1)
    few, many = segments(folder, 10), segments(folder, 100)
    pairs = [(seconds(few).wall, seconds(many).wall) for _ in range(60)]
    return {
        "partitions_s": spent,
        "segments_10_s": min(one for one, _ in pairs),
        "segments_100_s": min(one for _, one in pairs),
    }


def segments(folder: Path, count: int) -> Callable[[], None]:
    """Opens a clean log of so many segments."""
    name = f"segments-{count}"
    disk = RealDisk(folder)
    disk.create_directory(name)
    settings = LogSettings(segment_bytes=BATCH_BYTES)
    batch = new_batch()
    log = open_log(disk, name, settings).log
    for _ in range(count):
        stamp(batch, 0, log.log_end_offset, 0)
        log.append([batch], NOW)
    log.close(NOW)

    def run() -> None:
        open_log(disk, name, settings, LastKnown(is_clean=True)).log.abandon()

    return run


def remove(folder: Path) -> None:
    """A directory of files."""
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Storage against the bare calls.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--mib", type=int, default=1024, help="bytes of the segment to recover")
    parser.add_argument("--rounds", type=int, default=5, help="rounds a figure")
    parser.add_argument("--partitions", type=int, default=1000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as name:
        folder = Path(name)
        size = options.mib << 20
        ratios = {"append": append(folder, min(size, 256 << 20), options.rounds)}
        ratios["parsed"] = append(folder, min(size, 256 << 20), options.rounds, parsed=True)
        path = filled(folder, "filled-0", size)
        ratios["read"] = reading(folder, path, options.rounds)
        ratios["recovery"] = recovery(folder, path, options.rounds)
        opened = opening(folder, options.partitions)
    if options.json:
        figures = {key: ratio._asdict() for key, ratio in ratios.items()}
        print(json.dumps({"schema": SCHEMA, **figures, "open": opened}))
        return 0
    targets = {"append": 0.5, "parsed": 0.5, "read": 0.7, "recovery": 0.5}
    for key, (ratio, cpu, mine, bare) in ratios.items():
        print(
            f"{key:9} {ratio:5.2f} of bare, {cpu:.2f} by CPU time (target {targets[key]}); "
            f"{mine:.0f} and {bare:.0f} MB/s"
        )
    print(f"open      {opened['partitions_s']:.2f} s for {options.partitions} partitions")
    factor = opened["segments_100_s"] / opened["segments_10_s"]
    print(f"          100 clean segments cost {factor:.1f} times 10 (target 3)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
