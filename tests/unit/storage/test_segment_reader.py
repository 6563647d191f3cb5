"""The reader of segments that may be damaged or change: every fault has its name and its place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.protocol.records import crc32c
from holdfast.protocol.records.batch_header import ATTRIBUTES_POSITION, CRC_POSITION
from holdfast.storage import RealDisk, examine_log
from holdfast.storage.inspect.log_files import log_files
from holdfast.storage.inspect.segment_reader import (
    FAR,
    SegmentFile,
    list_segments,
    opened,
    read_segment,
    segment_at,
)
from holdfast.storage.segment import batch_scan
from holdfast.storage.segment.batch_scan import Run
from holdfast.storage.segment.damage import Damage, Fault
from tests.unit.storage.support import batch

BATCHES, EACH = 5, 3
BAD = 2
"""The batch that is spoiled."""
LENGTH, EPOCH, MAGIC, DELTA, COUNT = 8, 12, 16, 23, 57
"""Positions of fields in a header."""
Edit = Callable[[bytearray], object]


def batches(first: int = 0, epoch: int = 4) -> list[bytearray]:
    """Of one size."""
    return [batch(first + nth * EACH, [b"value"] * EACH, epoch=epoch) for nth in range(BATCHES)]


SIZE = len(batches()[0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sealed segment and an active one."""
    for first in (0, BATCHES * EACH):
        (tmp_path / f"{first:020d}.log").write_bytes(b"".join(batches(first)))
    return tmp_path


def segments(folder: Path) -> tuple[SegmentFile, ...]:
    disk = RealDisk(folder, read_only=True)
    return list_segments(disk, log_files(disk, ""))


def read(segment: SegmentFile) -> list[Run | Damage]:
    with opened(segment) as reader:
        return [] if reader is None else list(reader.read(0, reader.end))


def faults(found: list[Run | Damage]) -> list[tuple[Fault, int]]:
    """Names and positions."""
    named = []
    for one in found:
        if isinstance(one, Damage):
            named.append((one.fault, one.position))
        else:
            places = one.places()
            named += [(doubt.fault, one.start + places[doubt.nth]) for doubt in one.doubts]
    return named


def bases(found: list[Run | Damage]) -> list[int]:
    return [fields[0] for one in found if isinstance(one, Run) for fields in one.batches]


def put(content: bytearray, position: int, size: int, number: int) -> None:
    content[position : position + size] = number.to_bytes(size, "big", signed=True)


def with_true_crc(edit: Edit) -> Edit:
    def edited(one: bytearray) -> None:
        edit(one)
        crc = crc32c(bytes(one[ATTRIBUTES_POSITION:]))
        one[CRC_POSITION:ATTRIBUTES_POSITION] = crc.to_bytes(4, "big")

    return edited


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (lambda one: put(one, MAGIC, 1, 1), Fault.MAGIC),
        (lambda one: put(one, LENGTH, 4, 20), Fault.LENGTH),
        (lambda one: put(one, LENGTH, 4, -5), Fault.LENGTH),
        (lambda one: put(one, LENGTH, 4, 1 << 30), Fault.TRUNCATED),
        (lambda one: put(one, LENGTH, 4, SIZE), Fault.CRC),
        (lambda one: put(one, SIZE - 1, 1, 7), Fault.CRC),
        (lambda one: put(one, DELTA, 4, 1), Fault.CRC),
        (with_true_crc(lambda one: put(one, COUNT, 4, EACH + 1)), Fault.COUNTS),
        (lambda one: put(one, 0, 8, 1 << 40), Fault.STRAY),
        (lambda one: put(one, 0, 8, BAD * EACH - 2), Fault.BACKWARD),
        (lambda one: put(one, 0, 8, BAD * EACH + 5), Fault.LEAP),
        (lambda one: put(one, EPOCH, 4, 3), Fault.EPOCH_DOWN),
    ],
)
@pytest.mark.parametrize("nth", [0, 1])
def test_a_fault_has_its_name_and_its_place(
    folder: Path, edit: Edit, fault: Fault, nth: int
) -> None:
    path = Path(segments(folder)[nth].path)
    made = batches()
    if nth:
        # The same batch, in a log without earlier segments.
        Path(segments(folder)[0].path).unlink()
        path = path.rename(folder / f"{0:020d}.log")
        path.write_bytes(b"".join(made))
    edit(made[BAD])
    path.write_bytes(b"".join(made))
    found = read(segments(folder)[0])
    first, *rest = faults(found)
    assert first == (fault, BAD * SIZE)
    assert rest in ([], [(Fault.GAP, (BAD + 1) * SIZE)])  # Its offsets are missing.
    others = [base for base in bases(found) if base in (0, 3, 9, 12)]
    assert others == [0, 3, 9, 12]  # One bad batch costs its own records and no others.
    [finding] = examine_log(RealDisk(folder), log_files(RealDisk(folder), "")).findings[:1]
    assert (Path(finding.file).name, finding.position) == (path.name, BAD * SIZE)


def test_a_gap_is_named_and_is_no_finding(folder: Path) -> None:
    made = batches()
    del made[BAD]
    Path(segments(folder)[0].path).write_bytes(b"".join(made))
    found = read(segments(folder)[0])
    assert faults(found) == [(Fault.GAP, BAD * SIZE)]
    examined = examine_log(RealDisk(folder), log_files(RealDisk(folder), ""))
    assert (examined.gaps, examined.findings) == (1, [])


@pytest.mark.parametrize(("nth", "fault"), [(0, Fault.TRUNCATED), (1, Fault.TORN_TAIL)])
@pytest.mark.parametrize("left", [1, 20, 70])
def test_only_the_last_segment_may_end_within_a_batch(
    folder: Path, nth: int, fault: Fault, left: int
) -> None:
    path = Path(segments(folder)[nth].path)
    os.truncate(path, (BATCHES - 1) * SIZE + left)
    found = read(segments(folder)[nth])
    assert faults(found) == [(fault, (BATCHES - 1) * SIZE)]
    # A verification reports both.
    findings = examine_log(RealDisk(folder), log_files(RealDisk(folder), "")).findings
    assert [Path(one.file).name for one in findings] == [path.name]


def test_zeros_after_the_last_batch_are_a_torn_tail(folder: Path) -> None:
    path = Path(segments(folder)[1].path)
    os.truncate(path, BATCHES * SIZE + 10_000)
    assert faults(read(segments(folder)[1])) == [(Fault.TORN_TAIL, BATCHES * SIZE)]


def test_a_segment_that_was_removed_has_no_reader(folder: Path) -> None:
    first, _ = segments(folder)
    Path(first.path).unlink()
    assert read(first) == []


def test_what_is_appended_after_the_listing_is_not_read(folder: Path) -> None:
    _, last = segments(folder)
    with Path(last.path).open("ab") as file:
        file.write(batch(2 * BATCHES * EACH, [b"later"]))
    found = read(last)
    assert (len(bases(found)), faults(found)) == (BATCHES, [])


@pytest.mark.parametrize("nth", [0, 1])
@pytest.mark.parametrize("size", [SIZE, SIZE + 30, 2 * SIZE - 1])
def test_a_file_that_gets_shorter_while_it_is_read_is_not_damaged(
    folder: Path, nth: int, size: int
) -> None:
    segment = segments(folder)[nth]
    with opened(segment) as reader:
        assert reader is not None
        os.truncate(segment.path, size)
        found = list(reader.read(0, reader.end))
    assert faults(found) == [(Fault.SHRUNK, SIZE)]
    assert len(bases(found)) == 1


def test_a_file_that_the_cleaner_replaced_is_read_to_its_own_end(folder: Path) -> None:
    first, _ = segments(folder)
    swap = Path(first.path).with_suffix(".swap")
    swap.write_bytes(batches()[BAD])
    swap.replace(first.path)
    with opened(first) as reader:
        assert reader is not None
        assert reader.is_replaced
        assert bases(list(reader.read(0, reader.end))) == [BAD * EACH]


@pytest.mark.parametrize("padding", [0, 800])
def test_an_index_is_a_hint_and_may_end_with_zeros(folder: Path, padding: int) -> None:
    first, _ = segments(folder)
    entries = [(nth * EACH + EACH - 1, nth * SIZE) for nth in range(1, BATCHES)]
    content = b"".join(number.to_bytes(4, "big") for entry in entries for number in entry)
    Path(first.path).with_suffix(".index").write_bytes(content + bytes(padding))
    with opened(first) as reader:
        assert reader is not None
        found = [reader.start_below(offset) // SIZE for offset in (0, EACH, 2 * EACH, 13, FAR)]
        assert found == [0, 0, 1, 3, BATCHES - 1]
        assert [reader.align(nth * SIZE + 1) // SIZE for nth in range(BATCHES)] == [1, 2, 3, 4, 5]
    put(changed := bytearray(content), 12, 4, SIZE + 1)
    Path(first.path).with_suffix(".index").write_bytes(changed)
    with opened(first) as reader:
        assert reader is not None
        assert reader.start_below(3 * EACH) == 0  # The entry does not lead to its batch.


def test_a_rolled_log_is_read_as_it_was_listed(folder: Path) -> None:
    """The last segment was growing when it was listed, and has a successor now."""
    listed = segments(folder)
    (folder / f"{2 * BATCHES * EACH:020d}.log").write_bytes(b"")
    assert [faults(read(one)) for one in listed] == [[], []]


def test_a_damaged_length_is_not_read_into_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_scan, "LARGE_BYTES", 1 << 20)
    monkeypatch.setattr(batch_scan, "CHUNK_BYTES", 1 << 16)
    first, _ = segments(folder)
    os.truncate(first.path, 4 << 20)
    with Path(first.path).open("r+b") as file:
        file.seek(BAD * SIZE + LENGTH)
        file.write((3 << 20).to_bytes(4, "big"))
    sizes = []
    with opened(segment_at(first.path, BATCHES * EACH)) as reader:
        assert reader is not None
        file_of_reader = reader.file

        class Recording:
            """The file, and the size of each read."""

            path = file_of_reader.path

            def read(self, position: int, size: int) -> bytes:
                sizes.append(size)
                return file_of_reader.read(position, size)

        reader.file = Recording()  # type: ignore[assignment]
        found = list(reader.read(0, reader.end, run_bytes=1 << 16))
    assert faults(found)[0] == (Fault.LENGTH, BAD * SIZE)
    assert bases(found) == [0, 3, 9, 12]
    assert max(sizes) <= (1 << 20) + 100


def test_offsets_and_epochs_are_compared_across_segments(folder: Path) -> None:
    disk = RealDisk(folder)
    Path(segments(folder)[1].path).write_bytes(b"".join(batches(BATCHES * EACH, epoch=3)))
    findings = examine_log(disk, log_files(disk, "")).findings
    assert [one.problem for one in findings] == ["leader epoch 3 after 4"] * BATCHES
    assert [faults(list(read_segment(disk, log_files(disk, ""), BATCHES * EACH)))] == [[]]


def test_an_offset_that_was_changed_costs_one_finding(folder: Path) -> None:
    """The batches after it are not compared with it."""
    made = batches()
    put(made[BAD], 0, 8, BAD * EACH + 5)
    Path(segments(folder)[0].path).write_bytes(b"".join(made))
    disk = RealDisk(folder)
    [finding] = examine_log(disk, log_files(disk, "")).findings
    assert (finding.position, finding.offset) == (BAD * SIZE, BAD * EACH + 5)
