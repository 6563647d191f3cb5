"""Verifies a log's files and reports every problem with file, position and offset.

Rules: batches have none of the faults in `segment.damage`; segments follow each other; every index
entry matches the batch it points to; snapshots, transaction indexes and checkpoints can be read and
agree with the batches. Gaps between offsets are counted, but are not a problem: compaction leaves
them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.core import EpochCache
from holdfast.model import EpochEntry, LeaderEpoch, Offset
from holdfast.protocol.records import MalformedBatchError, read_records
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.disk import Disk
from holdfast.storage.file_names import EPOCH_CHECKPOINT, LOG, OFFSET_INDEX, TIME_INDEX
from holdfast.storage.inspect.batch_order import BatchOrder
from holdfast.storage.inspect.log_files import (
    LogFiles,
    checkpointed_epochs,
    read_aborted,
    read_indexes,
    read_producers,
)
from holdfast.storage.inspect.segment_reader import read_segment
from holdfast.storage.segment.batch_scan import FoundBatch
from holdfast.storage.segment.damage import Damage, Doubt, Fault


class Finding(NamedTuple):
    """One problem."""

    file: str
    position: int | None
    offset: int | None
    problem: str


@dataclass(slots=True)
class Examined:
    """The result of examining one log."""

    directory: str
    segments: int = 0
    batches: int = 0
    records: int = 0
    size: int = 0
    gaps: int = 0
    start_offset: int = 0
    end_offset: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    epochs: list[EpochEntry] = field(default_factory=list)
    """The leader epochs in the batches."""


def examine_log(disk: Disk, files: LogFiles, *, deep: bool = False) -> Examined:
    """Read everything; `deep` also parses every record."""
    examination = _Examination(disk, files, deep=deep)
    for base in files.bases:
        examination.segment(base)
    examination.snapshots()
    examination.epochs()
    return examination.result


class _Examination:
    def __init__(self, disk: Disk, files: LogFiles, *, deep: bool) -> None:
        self.disk = disk
        self.files = files
        self.deep = deep
        self.result = Examined(files.directory or ".", len(files.bases))
        self.result.start_offset = files.bases[0]
        self.order = BatchOrder(files.bases[0])
        self.cache = EpochCache()

    def wrong(self, file: str, position: int | None, offset: int | None, problem: str) -> None:
        self.result.findings.append(Finding(file, position, offset, problem))

    def segment(self, base: int) -> None:
        """Verify one segment: its batches, then its other files."""
        path, end = self.files.path(base, LOG), self.order.end
        if end is not None and base < end:
            self.wrong(path, 0, base, f"the segment before it ends at {end}")
        starts: dict[int, int] = {}
        times: list[tuple[int, int]] = []
        for found in read_segment(self.disk, self.files, base, self.order):
            if isinstance(found, Damage):
                self.wrong(path, found.position, self.order.end, found.reason)
                break  # Nothing after it is certain.
            doubts: dict[int, list[Doubt]] = {}
            for doubt in found.doubts:
                doubts.setdefault(doubt.nth, []).append(doubt)
            for nth, batch in enumerate(found.each()):
                self._batch(path, batch, doubts.get(nth, ()))
                starts[batch.position] = batch.header.end_offset - 1
                times.append((batch.header.end_offset - 1, batch.header.max_timestamp))
        self.result.end_offset = self.order.end or base
        self.result.size += self.disk.size(path)
        self._indexes(base, starts, times)
        try:
            read_aborted(self.disk, self.files, base)
        except DamagedFileError as error:
            self.wrong(error.path, None, None, error.reason)

    def _batch(self, path: str, found: FoundBatch, doubts: Iterable[Doubt]) -> None:
        header, result = found.header, self.result
        for doubt in doubts:
            if doubt.fault is Fault.GAP:
                result.gaps += 1
            else:
                self.wrong(path, found.position, header.base_offset, doubt.reason)
        if header.leader_epoch > self.cache.latest_epoch:
            self.cache.assign(LeaderEpoch(header.leader_epoch), Offset(header.base_offset))
        result.batches += 1
        result.records += header.record_count
        if self.deep:
            try:
                for _ in read_records(found.batch()):
                    pass
            except MalformedBatchError as error:
                self.wrong(path, found.position, header.base_offset, error.reason)

    def _indexes(self, base: int, starts: dict[int, int], times: list[tuple[int, int]]) -> None:
        try:
            indexes = read_indexes(self.disk, self.files, base)
        except DamagedFileError as error:
            self.wrong(error.path, None, None, error.reason)
            return
        if indexes.is_padded:
            path = self.files.path(base, OFFSET_INDEX)
            self.result.notes.append(f"{path}: not trimmed; its process runs or was killed")
        for number, entry in enumerate(indexes.offsets.entries() if indexes.offsets else ()):
            if starts.get(entry.position) != entry.offset:
                path = self.files.path(base, OFFSET_INDEX)
                problem = f"no batch at {entry.position} ends with offset {entry.offset}"
                self.wrong(path, number * 8, entry.offset, problem)
        for number, timed in enumerate(indexes.times.entries() if indexes.times else ()):
            place = bisect_left(times, (timed.offset, -(1 << 63)))
            if place == len(times) or times[place][1] != timed.timestamp:
                path = self.files.path(base, TIME_INDEX)
                problem = f"no batch with offset {timed.offset} has time {timed.timestamp}"
                self.wrong(path, number * 12, timed.offset, problem)

    def snapshots(self) -> None:
        """Verify that every snapshot can be read and covers only records below its offset."""
        for offset in self.files.snapshots:
            try:
                entries = read_producers(self.disk, self.files, offset)
            except DamagedFileError as error:
                self.wrong(error.path, None, offset, error.reason)
                continue
            for entry in entries:
                if entry.last_offset >= offset:
                    path = self.files.path(offset, ".snapshot")
                    problem = f"producer {entry.producer_id} wrote {entry.last_offset}"
                    self.wrong(path, None, offset, problem)

    def epochs(self) -> None:
        """Verify that the checkpoint agrees with the batches, as far back as both go."""
        self.result.epochs = list(self.cache.entries)
        prefix = f"{self.files.directory}/" if self.files.directory else ""
        path = f"{prefix}{EPOCH_CHECKPOINT}"
        try:
            entries = checkpointed_epochs(self.disk, self.files)
        except DamagedFileError as error:
            self.wrong(path, None, None, error.reason)
            return
        if entries is None:
            self.result.notes.append(f"{path}: missing")
            return
        known = dict(entries)
        for epoch, start in self.cache.entries:
            if epoch not in known:
                self.wrong(path, None, start, f"epoch {epoch} is missing")
            elif known[epoch] > start > self.result.start_offset:
                self.wrong(
                    path, None, start, f"epoch {epoch} begins at {start}, not {known[epoch]}"
                )
