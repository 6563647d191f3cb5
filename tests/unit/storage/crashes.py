"""Runs a scenario on a log, and checks every crash that could happen during it.

`CrashCheckedLog` changes a log directory on a simulated disk, and keeps what must be there after a
crash. Before each change to the disk it opens every state that a crash at this point may leave (up
to a bound) and checks:

- the log has nothing that was not appended, or that was truncated before;
- the log is a contiguous part of what was appended, with everything that was flushed;
- epochs and producers match the batches; every record is found; the log can grow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from holdfast.core import EpochCache, ProducerStates
from holdfast.model import Offset, TopicPartition
from holdfast.protocol.records import batches
from holdfast.simulation.disk.byte_disk import ByteDisk, Step
from holdfast.storage import BackgroundFlush, Log, LogDirectory, LogSettings, read
from holdfast.storage.producers.producer_snapshot import ProducerEntry
from holdfast.storage.producers.replay import headers_from, replay, snapshot_offsets
from tests.support.crash_states import Bound, CrashState, crash_states
from tests.unit.storage.support import NOW, batch, marker, produced, remove_due

PARTITION = TopicPartition("t", 0)
SETTINGS = LogSettings(segment_bytes=330, index_interval_bytes=60, file_delete_delay_ms=0)

Held = dict[int, bytes]
"""The batch at each offset."""


@dataclass
class Expected:
    """What a crash at this point may leave."""

    now: Held = field(default_factory=dict)
    """The content of the log."""
    after: Held = field(default_factory=dict)
    """Its content when the current call returns."""
    flushed: Held = field(default_factory=dict)
    """The content that must survive."""
    start: int = 0
    """Records below this may be gone: a call has deleted them."""


class CrashCheckedLog:
    """A log directory with one log, and all its possible crashes."""

    def __init__(self, bound: Bound, *, depth: int = 1, settings: LogSettings = SETTINGS) -> None:
        self.bound = bound
        self.depth = depth
        self.settings = settings
        self.expected = Expected()
        self.epoch = 0
        self.crashes = 0
        self.disk = ByteDisk()
        self.disk.on_step = lambda step: self._crash(self.disk, step, depth)
        self.directory = self._open(self.disk)
        self.log = self.directory.create(PARTITION, None)
        self.sequence = 0

    def _open(self, disk: ByteDisk) -> LogDirectory:
        return LogDirectory(disk, lambda partition: self.settings)

    # Operations.

    def _do(self, change: Callable[[], object], after: Held) -> None:
        self.expected.after = after
        change()
        self.expected.now = after

    def append(self, count: int = 1, *, per_call: int = 1, gap: int = 0) -> None:
        """Append single records, `per_call` of them in each call.

        `gap`: how many offsets are missing before each, as in a copy of a compacted log.
        """
        for _ in range(count):
            after = dict(self.expected.now)
            buffers = []
            for number in range(per_call):
                offset = self.log.log_end_offset + number + gap
                value = f"{self.epoch}/{offset}/{self.crashes % 97}".encode()
                buffers.append(produced(offset, 5, self.sequence, [value], epoch=self.epoch))
                self.sequence += 1
                after[offset] = bytes(buffers[-1])
            self._do(partial(self.log.append, buffers, NOW), after)

    def transaction(self, *, is_commit: bool) -> None:
        """Append one transactional record and its marker."""
        offset = self.log.log_end_offset
        first = produced(offset, 9, offset, is_transactional=True, epoch=self.epoch)
        last = marker(offset + 1, 9, is_commit=is_commit, epoch=self.epoch)
        after = {**self.expected.now, offset: bytes(first), offset + 1: bytes(last)}
        self._do(lambda: self.log.append([first, last], NOW), after)

    def elect(self) -> None:
        """Use a new leader epoch from now on."""
        self.epoch += 1

    def flush(self) -> None:
        """Flush; everything so far must survive."""
        self.log.flush(NOW)
        self.expected.flushed = dict(self.expected.now)

    def flush_in_background(
        self, meanwhile: Callable[[], None], *, runs_first: bool = False
    ) -> None:
        """Flush as a broker does: what was written when it began must survive after its end."""
        flush = BackgroundFlush(self.log)
        if not runs_first:
            meanwhile()
        flush.run()
        if runs_first:
            meanwhile()
        point = flush.end(None, NOW)
        now = self.expected.now
        self.expected.flushed |= {at: data for at, data in now.items() if at < point}

    def checkpoint(self) -> None:
        """Write the checkpoints of all logs."""
        self.directory.write_checkpoints({PARTITION: Offset(self.log.log_end_offset)})

    def truncate(self, offset: int) -> None:
        """Truncate the log."""
        kept = {at: data for at, data in self.expected.now.items() if at < offset}
        flushed = self.expected.flushed
        self.expected.flushed = {at: data for at, data in flushed.items() if at < offset}
        self._do(lambda: self.log.truncate_to(Offset(offset), NOW), kept)
        # A truncation flushes what remains of its segment; nothing is claimed about others.

    def restart(self, offset: int) -> None:
        """Delete everything and restart at `offset`."""
        self.expected.flushed = {}
        self.expected.start = 0
        self._do(lambda: self.log.restart_at(Offset(offset), NOW), {})

    def delete_records(self, offset: int) -> None:
        """Move the log start, and drop whole segments below it, as a broker does."""
        self.expected.start = offset
        self.log.advance_start_to(Offset(offset))
        write = self.directory.checkpoint({PARTITION: Offset(self.log.log_end_offset)})
        write.work.flush()
        self.directory.checkpoints.put_in_place(write)
        write.work.close()
        write.work.flush_names()
        for _ in self.directory.dropping(write, NOW):
            pass
        remove_due(self.log, NOW + 1)

    def restart_cleanly(self) -> None:
        """Close and open again."""
        assert self.directory.close(NOW, 1)
        self.expected.flushed = dict(self.expected.now)
        self.directory = self._open(self.disk)
        self.log = self.directory.log(PARTITION)
        assert self.log.log_end_offset == max(self.expected.now, default=-1) + 1

    # Crashes.

    def _crash(self, disk: ByteDisk, step: Step | None, depth: int) -> None:
        if depth == 0:
            return
        bound = self.bound if depth == self.depth else Bound(states=4, tear_points=1)
        bound = bound._replace(seed=bound.seed + disk.steps)
        for state in crash_states(disk, step, bound):
            self.crashes += 1
            self._judge(state, f"{state.what} at {step and step[:2]}", depth)

    def _judge(self, state: CrashState, what: str, depth: int) -> None:
        disk = state.disk
        disk.on_step = lambda step: self._crash(disk, step, depth - 1)
        directory = self._open(disk)
        if PARTITION not in directory.partitions:
            assert not self.expected.flushed, what
            return
        log = directory.log(PARTITION)
        disk.on_step = None
        self._compare(log, what)
        check_consistency(log, what)
        end = log.log_end_offset
        log.append([batch(end, [b"more"], epoch=self.epoch + 1)], NOW)
        assert read(log, end, 1000), what

    def _compare(self, log: Log, what: str) -> None:
        expected = self.expected
        held = held_by(log)
        offsets = list(held)
        span = range(log.log_start_offset, log.log_end_offset)
        pieces = [[at for at in sorted(of) if at in span] for of in (expected.now, expected.after)]
        assert offsets in pieces, (what, offsets, "records in between are missing")
        for offset, data in held.items():
            assert data in (expected.now.get(offset), expected.after.get(offset)), (what, offset)
        for offset, data in expected.flushed.items():
            if offset >= expected.start:
                assert held.get(offset) == data, (what, offset, "flushed and lost")


def held_by(log: Log) -> Held:
    """Every batch by its offset, read one at a time; single records only."""
    held: Held = {}
    offset = log.log_start_offset
    while data := read(log, offset, 1):  # Each round moves on by a batch.
        [found] = batches(data)
        found.check_crc()
        held[found.header.base_offset] = bytes(data)
        offset = Offset(found.header.end_offset)
    return held


def check_consistency(log: Log, what: str) -> None:
    """Check that epochs and producers match the batches."""
    headers = [found.header for _, found in headers_from(log.segments, log.log_start_offset)]
    rebuilt = EpochCache.rebuilt_from(header.to_model() for header in headers)
    for header in headers:
        assert log.epochs.epoch_at(Offset(header.base_offset)) == header.leader_epoch, what
    assert log.epochs.latest_epoch == rebuilt.latest_epoch, what
    replayed, snapshots = ProducerStates(), snapshot_offsets(log.disk, log.directory)
    bounds = log.log_start_offset, log.log_end_offset
    replay(replayed, log.disk, log.directory, log.segments, *bounds, snapshots)
    # Without the batches before the last ones: the cleaner may have removed them.
    assert _entries(log.producers) == _entries(replayed), what
    newest = {
        header.producer_id: header.end_offset - 1 for header in headers if not header.is_control
    }
    for producer in log.producers.states.values():
        if producer.producer_id in newest and producer.batches:
            assert producer.last_offset == newest[producer.producer_id], what
    for segment in log.segments:
        for place in segment.index().entries():
            assert segment.base_offset <= place.offset < log.log_end_offset, what


def _entries(producers: ProducerStates) -> dict[int, ProducerEntry]:
    states = producers.states
    return {producer_id: ProducerEntry.of(state) for producer_id, state in states.items()}
