"""Loading a coordinator's partition from a real log: slices, transactions, unusable records."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.broker.coordinator.log_loader import SLICE_RECORDS, LogLoader
from holdfast.core.groups import Groups, GroupSettings
from holdfast.model import CommittedOffset, Offset, OffsetRecord, TopicPartition
from holdfast.protocol.coordinator_records import decode_record, encode_record, subscribed_topics
from holdfast.protocol.records import BatchOptions
from holdfast.storage import Log, LogOfflineError, LogSettings, RealDisk
from tests.unit.storage.support import DIRECTORY, NOW, batch, marker, open_

WHERE = TopicPartition("topic", 0)


class OffsetsLog:
    """A log, and the groups that are loaded from it."""

    def __init__(self, path: Path) -> None:
        self.log: Log = open_(RealDisk(path), LogSettings())
        self.groups = Groups(GroupSettings(), subscribed_topics)

    def write(self, *offsets: int, producer_id: int = -1) -> None:
        """One batch that commits these offsets one after the other."""
        pairs = [
            encode_record(OffsetRecord("g", WHERE, CommittedOffset(Offset(one)))) for one in offsets
        ]
        options = BatchOptions()
        if producer_id >= 0:
            options = BatchOptions(
                producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
            )
        values, keys = [value for _, value in pairs], [key for key, _ in pairs]
        self.append(batch(self.log.log_end_offset, values, keys=keys, options=options))

    def append(self, data: bytearray) -> None:
        self.log.append([data], NOW)

    def loader(self) -> LogLoader:
        end = self.log.log_end_offset
        return LogLoader(self.log, end, "groups", decode_record, self.groups.replay)

    def load(self) -> LogLoader:
        loader = self.loader()
        while loader.step():
            pass
        return loader

    def offset(self) -> int:
        self.groups.loaded(0)
        found = self.groups.fetch_offsets("g").offsets
        return found[WHERE].offset if found else -1


@pytest.fixture
def offsets_log(tmp_path: Path) -> OffsetsLog:
    """An empty log."""
    return OffsetsLog(tmp_path)


def test_the_last_record_counts_and_reading_is_done_in_slices(offsets_log: OffsetsLog) -> None:
    for _ in range(3):
        offsets_log.write(*range(SLICE_RECORDS))
    loader = offsets_log.loader()
    assert [loader.step() for _ in range(4)] == [True, True, True, False]
    assert (loader.records, offsets_log.offset()) == (3 * SLICE_RECORDS, SLICE_RECORDS - 1)


def test_records_appended_during_loading_are_not_read(offsets_log: OffsetsLog) -> None:
    offsets_log.write(1)
    loader = offsets_log.loader()
    offsets_log.write(2)
    assert not loader.step()
    assert offsets_log.offset() == 1


@pytest.mark.parametrize(("is_commit", "offset"), [(True, 2), (False, 1)])
def test_offsets_of_a_transaction_count_if_it_was_committed(
    offsets_log: OffsetsLog, is_commit: bool, offset: int
) -> None:
    offsets_log.write(1)
    offsets_log.write(2, producer_id=7)
    offsets_log.append(marker(2, 7, is_commit=is_commit))
    assert (offsets_log.load().skipped, offsets_log.offset()) == (0, offset)


def test_an_open_transaction_counts_for_nothing(offsets_log: OffsetsLog) -> None:
    offsets_log.write(1)
    offsets_log.write(2, producer_id=7)
    assert (offsets_log.load().skipped, offsets_log.offset()) == (1, 1)


def test_a_record_that_cannot_be_used_is_left_out_and_reported(offsets_log: OffsetsLog) -> None:
    offsets_log.append(batch(0, [b"\0\0"], keys=[b"\0\x63"]))
    offsets_log.write(4)
    loader = offsets_log.load()
    assert (loader.skipped, offsets_log.offset()) == (1, 4)
    assert loader.first_skipped == "records of kind 99 are unknown"


def test_a_damaged_batch_takes_the_log_offline(offsets_log: OffsetsLog, tmp_path: Path) -> None:
    offsets_log.write(4)
    file = next((tmp_path / DIRECTORY).glob("*.log"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(LogOfflineError, match="groups cannot be loaded"):
        offsets_log.load()
