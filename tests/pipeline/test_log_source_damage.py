"""Damaged, torn, vanishing and growing logs: what can be read is read, and damage is a row."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from holdfast.protocol.records import BatchOptions, NewRecord, build_batch, crc32c
from holdfast.protocol.records.batch_header import ATTRIBUTES_POSITION, CRC_POSITION, HEADER_BYTES
from tests.pipeline import log_files as files
from tests.unit.storage.support import batch

BATCHES = 7
BAD = 3
"""The batch that is damaged: the fourth of seven."""
VALUES = 3
UNSUMMED = {*range(8), *range(12, 16)}
"""Base offset and leader epoch lie outside the CRC."""
BASE_OFFSET_HIGH = range(7)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One segment of seven batches of one size, without indexes."""
    files.write_log(tmp_path, files.plain_batches(BATCHES, values=VALUES))
    files.drop_indexes(tmp_path)
    return tmp_path


def seal(root: Path) -> None:
    """A second segment makes the first one a finished one."""
    [first] = files.segment_files(root)
    later = files.plain_batches(1, values=VALUES, first=BATCHES * VALUES)
    first.with_name(f"{BATCHES * VALUES:020d}.log").write_bytes(later[0])


def damaged(data: bytes, position: int, value: int | None = None) -> bytes:
    changed = bytearray(data)
    changed[position] = changed[position] ^ 0xFF if value is None else value
    return bytes(changed)


def others() -> list[int]:
    """The offsets of all batches but the bad one."""
    bad = range(BAD * VALUES, (BAD + 1) * VALUES)
    return [offset for offset in range(BATCHES * VALUES) if offset not in bad]


@pytest.mark.parametrize("is_sealed", [False, True])
@pytest.mark.parametrize("flip", [0x01, 0x10, 0x80, 0xFF])
def test_a_flipped_byte_costs_its_batch_and_no_other(
    root: Path, is_sealed: bool, flip: int
) -> None:
    [file] = files.segment_files(root)
    data = file.read_bytes()
    size = len(data) // BATCHES
    if is_sealed:
        seal(root)
    for place in range(size):
        if place in UNSUMMED:
            continue
        position = BAD * size + place
        file.write_bytes(damaged(data, position, data[position] ^ flip))
        found = files.rows(root)
        assert len(files.errors(found)) == 1, (place, files.errors(found))
        assert [one for one in files.offsets(found) if one < BATCHES * VALUES] == others(), place
        [error] = [row for row in found if row["error"] is not None]
        assert error["position"] == BAD * size
        assert error["segment"] == file.name
        assert f"bytes {BAD * size} to {(BAD + 1) * size}: " in error["error"]
        assert error["offset"] in (BAD * VALUES, None)
        assert error["value"] is None


def test_a_base_offset_that_cannot_be_in_the_segment_is_damage(root: Path) -> None:
    [file] = files.segment_files(root)
    data = file.read_bytes()
    seal(root)
    for place in BASE_OFFSET_HIGH:
        file.write_bytes(damaged(data, BAD * (len(data) // BATCHES) + place))
        found = files.rows(root)
        [error] = files.errors(found)
        assert "offsets" in error
        assert files.offsets(found)[: len(others())] == others()


@pytest.mark.parametrize("index", ["none", "true", "of zeros", "of lies"])
def test_batches_after_a_hole_are_found_with_any_index(tmp_path: Path, index: str) -> None:
    files.write_log(tmp_path, files.plain_batches(60))
    [file] = files.segment_files(tmp_path)
    listed = file.with_suffix(".index")
    if index == "none":
        files.drop_indexes(tmp_path)
    elif index == "of zeros":
        listed.write_bytes(bytes(1 << 16))
    elif index == "of lies":
        entries = range(1, len(listed.read_bytes()) // 8 + 1)
        listed.write_bytes(
            b"".join(nth.to_bytes(4, "big") + (nth * 101).to_bytes(4, "big") for nth in entries)
        )
    data = bytearray(file.read_bytes())
    size = len(data) // 60
    data[20 * size - 30 : 30 * size + 30] = Random(1).randbytes(10 * size + 60)
    file.write_bytes(data)
    for split_bytes in (500, 1 << 20):
        found = files.rows(tmp_path, splitBytes=str(split_bytes))
        assert files.offsets(found) == [*range(19 * 3), *range(31 * 3, 60 * 3)]
        # The first batch that is damaged has a header; what follows has none.
        assert len(files.errors(found)) in (1, 2)


def test_a_hole_of_zeros_in_the_middle_is_damage(root: Path) -> None:
    [file] = files.segment_files(root)
    data = bytearray(file.read_bytes())
    size = len(data) // BATCHES
    data[BAD * size : (BAD + 1) * size] = bytes(size)
    file.write_bytes(data)
    found = files.rows(root)
    assert files.offsets(found) == others()
    assert len(files.errors(found)) == 1


def test_a_torn_tail_of_the_last_segment_is_no_error(root: Path) -> None:
    [file] = files.segment_files(root)
    data = file.read_bytes()
    size = len(data) // BATCHES
    for end in range((BATCHES - 1) * size, len(data)):
        file.write_bytes(data[:end])
        found = files.rows(root)
        assert files.offsets(found) == list(range((BATCHES - 1) * VALUES)), end
        assert files.errors(found) == []


def test_zeros_after_the_last_batch_were_never_written(root: Path) -> None:
    [file] = files.segment_files(root)
    os.truncate(file, file.stat().st_size + 100_000)
    found = files.rows(root)
    assert files.offsets(found) == list(range(BATCHES * VALUES))
    assert files.errors(found) == []


def test_a_truncated_finished_segment_is_an_error(root: Path) -> None:
    [file] = files.segment_files(root)
    seal(root)
    os.truncate(file, file.stat().st_size - 1)
    found = files.rows(root)
    [error] = files.errors(found)
    assert error.startswith(f"{files.DIRECTORY}/{file.name}: bytes ")
    assert files.offsets(found) == [*range(18), 21, 22, 23]


def test_records_that_lie_under_a_true_crc_cost_their_batch_only(root: Path) -> None:
    [file] = files.segment_files(root)
    data = bytearray(file.read_bytes())
    size = len(data) // BATCHES
    start = BAD * size
    data[start + HEADER_BYTES] ^= 0x02  # The first record's length.
    crc = crc32c(bytes(data[start + ATTRIBUTES_POSITION : start + size]))
    data[start + CRC_POSITION : start + ATTRIBUTES_POSITION] = crc.to_bytes(4, "big")
    file.write_bytes(data)
    found = files.rows(root)
    assert files.offsets(found) == others()
    [error] = [row for row in found if row["error"]]
    assert (error["offset"], error["position"]) == (BAD * VALUES, start)
    # The batch itself is good: its bytes are what the producer sent.
    assert [row["error"] for row in files.read(files.batch_reader(root))] == [None] * BATCHES


def test_batches_inside_values_are_not_taken_for_batches(tmp_path: Path) -> None:
    """After damage the next batch is searched for, and a value may look like one."""
    inner = build_batch([NewRecord(b"not a record of this log")], BatchOptions(base_offset=1))
    made = [batch(nth, [bytes(inner) + b"tail" if nth else b"x" * 50]) for nth in range(4)]
    files.write_log(tmp_path, made)
    files.drop_indexes(tmp_path)
    [file] = files.segment_files(tmp_path)
    data = file.read_bytes()
    second = len(made[0])
    # The second batch loses its magic, so that the search starts in front of its value.
    file.write_bytes(damaged(data, second + 16))
    found = files.rows(tmp_path)
    assert files.offsets(found) == [0, 2, 3]
    assert len(files.errors(found)) == 1


def test_old_message_formats_are_reported_as_such(root: Path) -> None:
    [file] = files.segment_files(root)
    data = file.read_bytes()
    file.write_bytes(damaged(data, BAD * (len(data) // BATCHES) + 16, value=1))
    [error] = files.errors(files.rows(root))
    assert "message format 1" in error


# While a broker is at work.


def test_a_segment_that_vanishes_after_planning_is_no_error(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(30), segment_bytes=1_000)
    planned = files.reader(tmp_path)
    splits = planned.partitions()
    first, *_ = files.segment_files(tmp_path)
    second = files.segment_files(tmp_path)[1]
    first.unlink()
    found = [row for split in splits for part in planned.read(split) for row in part.to_pylist()]
    assert files.offsets(found) == list(range(int(second.stem), 90))
    assert files.errors(found) == []


def test_a_log_that_is_truncated_after_planning_is_no_error(root: Path) -> None:
    [file] = files.segment_files(root)
    size = file.stat().st_size // BATCHES
    planned = files.reader(root, splitBytes="300")
    splits = planned.partitions()
    os.truncate(file, 2 * size)
    found = [row for split in splits for part in planned.read(split) for row in part.to_pylist()]
    assert files.offsets(found) == list(range(2 * VALUES))
    assert files.errors(found) == []


def test_what_is_appended_after_planning_is_not_read(root: Path) -> None:
    [file] = files.segment_files(root)
    planned = files.reader(root)
    splits = planned.partitions()
    with file.open("ab") as log:
        log.write(files.plain_batches(1, first=BATCHES * VALUES)[0])
    found = [row for split in splits for part in planned.read(split) for row in part.to_pylist()]
    assert files.offsets(found) == list(range(BATCHES * VALUES))


def test_a_segment_that_the_cleaner_replaces_is_read_once_as_it_is(root: Path) -> None:
    [file] = files.segment_files(root)
    planned = files.reader(root, splitBytes="200")
    splits = planned.partitions()
    assert len(splits) > 2
    kept = files.plain_batches(BATCHES)[BAD]
    swap = file.with_suffix(".swap")
    swap.write_bytes(bytes(kept))
    swap.replace(file)
    found = [row for split in splits for part in planned.read(split) for row in part.to_pylist()]
    assert files.offsets(found) == [9, 10, 11]
    assert files.errors(found) == []


def test_nothing_is_written_locked_or_repaired(root: Path) -> None:
    [file] = files.segment_files(root)
    os.truncate(file, file.stat().st_size - 5)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")}
    files.rows(root)
    after = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")}
    assert after == before
