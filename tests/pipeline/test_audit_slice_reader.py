"""Stretches of a log, read from its files: segments, indexes, damage, and what may be torn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.pipeline.audit.replicas.replica_files import find_replicas
from holdfast.pipeline.audit.replicas.slice_reader import Slice, read_slice
from holdfast.pipeline.audit.replicas.truth import Replica
from holdfast.protocol.records import batches
from holdfast.storage import LogSettings, RealDisk
from tests.unit.storage.support import CLEAN, NOW, batch, opened

BATCHES, EACH = 40, 3
END = BATCHES * EACH


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Several segments, with the indexes that a clean shutdown leaves."""
    settings = LogSettings(segment_bytes=1200, index_interval_bytes=150)
    log = opened(RealDisk(tmp_path), settings, CLEAN, "t-0").log
    for base in range(0, END, EACH):
        made = batch(base, [b"value %d" % (base + nth) for nth in range(EACH)], epoch=base // 30)
        log.append([made], NOW)
    log.close(NOW)
    assert len(list((tmp_path / "t-0").glob("*.log"))) > 3
    assert any(path.stat().st_size for path in (tmp_path / "t-0").glob("*.index"))
    return tmp_path


def replica(root: Path) -> Replica:
    [[found]] = find_replicas({"b1": root}, ["t"]).partitions.values()
    return found


def offsets(part: Slice) -> list[int]:
    found: list[int] = part.records["offset"].tolist()
    return found


def read(found: Replica, first: int = 0, until: int = END, *, settled: int = 0) -> Slice:
    return read_slice(found.segments, first, until, settled=settled, is_decoded=True)


def test_the_ends_come_from_the_files(root: Path) -> None:
    found = replica(root)
    assert (found.start, found.end, found.epoch) == (0, END, (END - 1) // 30)


@pytest.mark.parametrize("span", [1, 2, 7, 50, END])
def test_stretches_together_are_the_log(root: Path, span: int) -> None:
    found = replica(root)
    parts = [read(found, first, first + span) for first in range(0, END, span)]
    assert [one for part in parts for one in offsets(part)] == list(range(END))
    assert not any(part.unreadable for part in parts)


def test_an_index_that_lies_is_not_followed(root: Path) -> None:
    found = replica(root)
    for path in (root / "t-0").glob("*.index"):
        entries = np.frombuffer(path.read_bytes(), ">u4").copy()
        entries[1::2] += 1
        path.write_bytes(entries.tobytes() + bytes(80))
    assert offsets(read(found, END - 5)) == list(range(END - 5, END))


def test_a_damaged_batch_is_skipped_and_reported(root: Path) -> None:
    found = replica(root)
    damage(Path(found.segments[1].path), b"value")
    part = read(found)
    [hole] = part.unreadable
    assert (hole.until - hole.first, hole.first) == (EACH, found.segments[1].base)
    assert "the CRC does not match" in hole.reason
    assert offsets(part) == [one for one in range(END) if not hole.first <= one < hole.until]


def test_after_a_broken_length_the_segment_is_unreadable(root: Path) -> None:
    found = replica(root)
    path = Path(found.segments[1].path)
    content = bytearray(path.read_bytes())
    content[8:12] = b"\x7f\xff\xff\xff"
    path.write_bytes(content)
    [hole] = read(found).unreadable
    assert (hole.first, hole.until) == (found.segments[1].base, found.segments[2].base)


@pytest.mark.parametrize(("settled", "holes"), [(0, 0), (END, 1)])
def test_a_torn_end_is_damage_only_below_what_was_settled(
    root: Path, settled: int, holes: int
) -> None:
    path = Path(replica(root).segments[-1].path)
    path.write_bytes(path.read_bytes()[:-5])
    found = replica(root)
    assert found.end == END - EACH
    part = read(found, settled=settled)
    assert offsets(part) == list(range(END - EACH))
    assert [(one.first, one.until) for one in part.unreadable] == [(END - EACH, END)] * holes


def test_a_segment_that_retention_removed_meanwhile_is_no_damage(root: Path) -> None:
    found = replica(root)
    Path(found.segments[0].path).unlink()
    part = read(found)
    assert not part.unreadable
    assert offsets(part) == list(range(found.segments[1].base, END))


def damage(path: Path, what: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(what)] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("segment", [1, -1])
def test_a_last_batch_whose_count_is_damaged_is_unreadable_as_a_whole(
    root: Path, segment: int
) -> None:
    found = replica(root)
    path = Path(found.segments[segment].path)
    content = bytearray(path.read_bytes())
    last = len(content) - [*batches(bytes(content))][-1].header.size
    content[last + 23 : last + 27] = bytes(4)
    path.write_bytes(content)
    part = read(found, settled=END)
    [hole] = part.unreadable
    end = found.segments[segment].span.upper or END
    assert (hole.first, hole.until) == (end - EACH, end)
    assert offsets(part) == [one for one in range(END) if not hole.first <= one < hole.until]


def test_a_damaged_batch_reaches_no_further_than_its_segment(root: Path) -> None:
    """Its last offset delta may be what is damaged."""
    found = replica(root)
    [*_, (position, header)] = [
        (one.position, one.header) for one in batches(Path(found.segments[1].path).read_bytes())
    ]
    content = bytearray(Path(found.segments[1].path).read_bytes())
    content[position + 24] ^= 1
    Path(found.segments[1].path).write_bytes(content)
    [hole] = read(found).unreadable
    assert (hole.first, hole.until) == (header.base_offset, found.segments[2].base)
