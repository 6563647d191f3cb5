"""Batches, logs and disks for the tests of storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.model import EndMarker, Offset, TopicPartition
from holdfast.protocol.records import (
    BatchOptions,
    NewRecord,
    batches,
    build_batch,
    build_end_marker,
    read_records,
)
from holdfast.storage import (
    Cleaner,
    LastKnown,
    Log,
    LogDirectory,
    LogSettings,
    OpenedLog,
    Progress,
    Removal,
    apply_retention,
    open_log,
    read,
)
from holdfast.storage.cleaner.compaction import Cleaning
from holdfast.storage.disk import Disk
from holdfast.storage.retention import dropped_below

DIRECTORY = "events-0"
NOW = 1_700_000_000_000
SMALL = LogSettings(segment_bytes=1_000, index_interval_bytes=100)
CLEAN = LastKnown(is_clean=True)


def batch(
    base_offset: int,
    values: Sequence[bytes | None] = (b"x",),
    *,
    epoch: int = 0,
    timestamp: int = NOW,
    keys: Sequence[bytes | None] | None = None,
    options: BatchOptions | None = None,
) -> bytearray:
    """A stamped batch with these values."""
    base = options if options is not None else BatchOptions()
    stamped = BatchOptions(
        base_offset=base_offset,
        leader_epoch=epoch,
        compression=base.compression,
        producer_id=base.producer_id,
        producer_epoch=base.producer_epoch,
        base_sequence=base.base_sequence,
        is_transactional=base.is_transactional,
    )
    names: Sequence[bytes | None] = keys if keys is not None else [None] * len(values)
    records = [
        NewRecord(value, key, timestamp + place)
        for place, (value, key) in enumerate(zip(values, names, strict=True))
    ]
    return build_batch(records, stamped)


def produced(
    base_offset: int,
    producer_id: int,
    base_sequence: int,
    values: Sequence[bytes] = (b"x",),
    *,
    is_transactional: bool = False,
    epoch: int = 0,
) -> bytearray:
    """A batch of an idempotent or transactional producer."""
    options = BatchOptions(
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
    )
    return batch(base_offset, values, options=options, epoch=epoch)


def marker(base_offset: int, producer_id: int, *, is_commit: bool, epoch: int = 0) -> bytearray:
    """The control batch that ends a transaction."""
    return build_end_marker(EndMarker(is_commit, producer_id, 0, 7), NOW, base_offset, epoch)


def opened(
    disk: Disk,
    settings: LogSettings = SMALL,
    known: LastKnown | None = None,
    directory: str = DIRECTORY,
) -> OpenedLog:
    """Open the log; create it if necessary."""
    if not disk.exists(directory):
        disk.create_directory(directory)
        disk.flush_directory("")
    return open_log(disk, directory, settings, known if known is not None else LastKnown())


def open_(disk: Disk, settings: LogSettings = SMALL, known: LastKnown | None = None) -> Log:
    """The log alone."""
    return opened(disk, settings, known).log


def fill(log: Log, count: int, size: int = 100, *, epoch: int = 0, step_ms: int = 0) -> None:
    """Append single records of `size` bytes, with their offsets as values."""
    for number in range(count):
        offset = log.log_end_offset
        value = f"{epoch}:{offset}:".encode().ljust(size, b".")
        log.append([batch(offset, [value], epoch=epoch, timestamp=NOW + number * step_ms)], NOW)


def reopened(log: Log, *, is_clean: bool = False, recovery_point: int | None = None) -> Log:
    """The same directory opened again, after a clean shutdown or as after kill -9."""
    point = log.recovery_point if recovery_point is None else Offset(recovery_point)
    if is_clean:
        log.close(NOW)
    known = LastKnown(
        is_clean=is_clean, recovery_point=point, log_start_offset=log.log_start_offset
    )
    return open_log(log.disk, log.directory, log.settings, known).log


def values_of(log: Log, start: int | None = None, max_bytes: int = 1 << 20) -> list[bytes]:
    """All values from an offset on, read as a consumer does."""
    return [value for _, value in records_of(log, start, max_bytes)]


def records_of(
    log: Log, start: int | None = None, max_bytes: int = 1 << 20
) -> Iterator[tuple[int, bytes]]:
    """Offsets and values, read as a consumer does."""
    offset = log.log_start_offset if start is None else start
    while True:  # Each round moves on by a batch, or ends.
        data = read(log, offset, max_bytes)
        if not data:
            return
        for found in batches(data):
            found.check_crc()
            if not found.header.is_control:
                for record in read_records(found):
                    if record.offset >= offset:
                        yield record.offset, bytes(record.value or b"")
            last = found.header.end_offset
        offset = Offset(last)


def remove_due(log: Log, now_ms: int) -> int:
    """Remove the files of a log whose delay is over; returns how many."""
    paths = log.deletions.take_due(now_ms)
    Removal(log.disk, (), paths).run()
    return len(paths)


def open_all(directory: LogDirectory) -> dict[TopicPartition, OSError]:
    """Open every log as a broker does; returns the logs on which the disk fails."""
    failed: dict[TopicPartition, OSError] = {}
    for opening in directory.openings():
        try:
            opening.run()
        except OSError as error:
            failed[opening.partition] = error
        else:
            opening.end()
    directory.not_opened(failed)
    return failed


def retain(log: Log, high_watermark: int, now_ms: int) -> int:
    """Apply retention as a broker does after the checkpoint; returns how many segments left."""
    start = apply_retention(log, high_watermark, now_ms)
    return sum(1 for _ in dropped_below(log, start, now_ms))


def clean(log: Log, first_dirty: int, high_watermark: int, now_ms: int) -> Cleaning:
    """Clean all that can be cleaned in one call."""
    cleaner = Cleaner(log, first_dirty, high_watermark, now_ms)
    while cleaner.step() is not Progress.DONE:  # Ends with the log.
        pass
    return cleaner.result
