"""Snapshot and replay give the producer states that the running log had."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import ProducerStates
from holdfast.model import NO_PRODUCER, BatchHeader, EndMarker, ErrorCode, Offset
from holdfast.protocol.records import (
    BatchOptions,
    NewRecord,
    build_batch,
    build_end_marker,
    parse_header,
)
from holdfast.simulation.disk.byte_disk import ByteDisk
from holdfast.storage import LastKnown, Log, LogSettings, open_log
from holdfast.storage.producers.replay import snapshot_offsets

NOW = 1_700_000_000_000
SMALL = LogSettings(segment_bytes=250, index_interval_bytes=100)
DIRECTORY = "t-0"


class Sent(NamedTuple):
    """One batch, as the producers below send it."""

    producer: int
    kind: str
    records: int


kinds = st.sampled_from(("plain", "plain", "open", "commit", "abort", "bump", "fence", "odd"))
producers = st.sampled_from((-1, 7, 8))
copied = st.builds(Sent, producers, kinds, st.integers(1, 3))
assigned = st.builds(
    Sent, producers, st.sampled_from(("plain", "plain", "bump")), st.integers(1, 3)
)
"""A leader refuses transactional batches and markers; a follower copies them."""
turns = st.lists(
    st.lists(copied, min_size=1, max_size=4) | st.lists(assigned, min_size=1, max_size=6),
    min_size=1,
    max_size=12,
)


class Writer:
    """Sends batches to a log, as the leader of a partition or a follower does."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.epochs: dict[int, int] = {}
        self.sequences: dict[int, int] = {}

    def turn(self, sent: list[Sent]) -> None:
        """Assign some batches, then write them one by one, so that a roll may come between them."""
        end, batches = self.log.log_end_offset, []
        is_leader = all(one.kind in ("plain", "bump") for one in sent)
        for one in sent:
            data = self._batch(one, end, NOW + end)
            header = parse_header(data).to_model()
            if is_leader and header.producer_id != NO_PRODUCER:
                self.log.producers.assign(header, header.base_offset)
            batches.append(data)
            end = header.end_offset
        for data in batches:
            self.log.append([data], NOW)
        self.log.producers.written()

    def _batch(self, sent: Sent, offset: int, timestamp: int) -> bytearray:
        producer, kind, records = sent
        if producer < 0 or kind == "odd":
            options = BatchOptions(base_offset=offset, leader_epoch=0)
            return build_batch([NewRecord(b"x", None, timestamp)] * records, options)
        if kind in ("bump", "fence"):
            self.epochs[producer] = self.epochs.get(producer, 0) + 1
            self.sequences[producer] = 0
        epoch = self.epochs.get(producer, 0)
        if kind in ("commit", "abort", "fence"):
            marker = EndMarker(kind == "commit", producer, epoch, offset)
            return build_end_marker(marker, timestamp, offset, 0)
        first = self.sequences.get(producer, 0)
        self.sequences[producer] = first + records
        options = BatchOptions(
            base_offset=offset,
            leader_epoch=0,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=first,
            is_transactional=kind == "open",
        )
        return build_batch([NewRecord(b"x", None, timestamp)] * records, options)


def written(turns_: list[list[Sent]]) -> Log:
    disk = ByteDisk()
    disk.create_directory(DIRECTORY)
    writer = Writer(open_log(disk, DIRECTORY, SMALL).log)
    for number, turn in enumerate(turns_):
        writer.turn(turn)
        if number % 2:
            writer.log.flush(NOW)
    return writer.log


def assert_same(recovered: ProducerStates, live: ProducerStates, end: Offset) -> None:
    """The same producers, the same verdicts on retries, the same last stable offset.

    At the end of the log: a snapshot does not know whether the markers before it are committed.
    """
    assert recovered.states == live.states
    assert recovered.last_stable_offset(end) == live.last_stable_offset(end)
    for state in live.states.values():
        for seen in state.batches:
            count, first = seen.end_offset - seen.base_offset, seen.base_sequence
            again = BatchHeader(
                count,
                producer_id=state.producer_id,
                producer_epoch=state.producer_epoch,
                base_sequence=first,
            )
            assert recovered.check(again) == live.check(again) == (ErrorCode.NONE, seen)


@given(turns=turns, is_clean=st.booleans(), has_snapshots=st.booleans())
def test_a_restart_knows_what_the_log_knew(
    turns: list[list[Sent]], is_clean: bool, has_snapshots: bool
) -> None:
    log = written(turns)
    known = LastKnown(is_clean, log.recovery_point)
    if is_clean:
        log.close(NOW)
    for offset in () if has_snapshots else snapshot_offsets(log.disk, DIRECTORY):
        log.disk.remove(f"{DIRECTORY}/{offset:020d}.snapshot")
    again = open_log(log.disk, DIRECTORY, SMALL, known).log
    assert_same(again.producers, log.producers, log.log_end_offset)


@given(turns=turns, kept=st.integers(0, 60))
def test_a_truncated_log_knows_what_a_log_without_the_tail_knows(
    turns: list[list[Sent]], kept: int
) -> None:
    log = written(turns)
    shared = log.producers
    end = log.truncate_to(Offset(min(kept, log.log_end_offset)), NOW)
    assert log.producers is shared, "the core has the same object"
    for offset in snapshot_offsets(log.disk, DIRECTORY):
        log.disk.remove(f"{DIRECTORY}/{offset:020d}.snapshot")
    replayed = open_log(log.disk, DIRECTORY, SMALL).log
    assert replayed.log_end_offset == end
    assert_same(log.producers, replayed.producers, end)
