"""Slices that a slow reader holds while the log goes on living."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from holdfast.model import Offset, TopicPartition
from holdfast.storage import (
    Disk,
    HeldSlice,
    Log,
    LogClosedError,
    LogDirectory,
    LogSettings,
    RealDisk,
    SliceCutError,
    locate,
    read,
    real_disk,
)
from tests.unit.storage.support import NOW, batch, fill, open_, remove_due, retain

ONE_SEGMENT = LogSettings(index_interval_bytes=100)
PARTITION = TopicPartition("events", 0)


def held(log: Log, offset: int = 0, max_bytes: int = 1 << 20) -> tuple[HeldSlice, bytes]:
    """A slice in the hand of a reader, and the bytes it should give."""
    found = locate(log, offset, max_bytes)
    assert found is not None
    return found.hold(), found.read()


def drained(slow: HeldSlice, most: int = 37) -> bytes:
    with slow:
        return b"".join(iter(lambda: slow.read(most), b""))


def test_a_held_slice_is_read_in_pieces(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 3)
    slow, expected = held(log)
    assert drained(slow) == expected
    assert log.segments[0].readers == []


def test_it_outlives_retention_and_the_removal_of_its_file(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 30)
    slow, expected = held(log)
    path = log.segments[0].file.path
    log.advance_start_to(log.active.base_offset)
    retain(log, log.log_end_offset, NOW)
    remove_due(log, NOW + 10 * log.settings.file_delete_delay_ms)
    assert not disk.exists(path + ".deleted")
    assert drained(slow) == expected


def test_it_outlives_its_log_and_is_not_the_next_logs(disk: Disk) -> None:
    directory = LogDirectory(disk, lambda _: ONE_SEGMENT)
    log = directory.create(PARTITION, None)
    log.append([batch(0, [b"old"])], NOW)
    slow, expected = held(log)
    directory.delete(PARTITION, uuid.UUID(int=1), NOW)
    directory.create(PARTITION, None).append([batch(0, [b"new"])], NOW)
    directory.take_due(NOW + 10 * ONE_SEGMENT.file_delete_delay_ms).run()
    assert drained(slow) == expected
    with pytest.raises(LogClosedError):
        read(log, 0, 100)
    with pytest.raises(LogClosedError):
        log.append([batch(1)], NOW)


def test_it_outlives_a_shortage_of_descriptors(
    machine_disk: RealDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_disk, "OPEN_FILES", 2)
    log = open_(machine_disk)
    fill(log, 60)
    log.flush(NOW)
    slow, expected = held(log)
    for segment in log.segments:
        segment.file.read(0, 1)
    assert drained(slow) == expected


def test_a_cut_below_its_end_ends_it(disk: Disk) -> None:
    log = open_(disk, ONE_SEGMENT)
    fill(log, 10)
    slow, _ = held(log)
    slow.read(100)
    log.truncate_to(Offset(8), NOW)
    fill(log, 10, epoch=1)
    with pytest.raises(SliceCutError), slow:
        slow.read(100)
    assert log.active.readers == []


def test_a_cut_behind_its_end_does_not_matter(disk: Disk) -> None:
    log = open_(disk, ONE_SEGMENT)
    fill(log, 10)
    found = locate(log, 0, 1 << 20, upto=8)
    assert found is not None
    slow, expected = found.hold(), found.read()
    log.truncate_to(Offset(8), NOW)
    fill(log, 10, epoch=1)
    assert drained(slow) == expected


def test_a_dropped_segment_is_given_as_it_was(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 30)
    slow, expected = held(log, int(log.segments[2].base_offset))
    log.truncate_to(Offset(log.segments[1].base_offset), NOW)
    assert drained(slow) == expected


def test_a_file_that_ends_too_early_is_a_cut_not_a_wait(
    machine_disk: RealDisk, tmp_path: Path
) -> None:
    log = open_(machine_disk, ONE_SEGMENT)
    fill(log, 10)
    slow, _ = held(log)
    os.truncate(tmp_path / log.active.file.path, 50)  # Somebody else's doing.
    with pytest.raises(SliceCutError):
        drained(slow)


def test_the_system_sends_it_through_a_socket(machine_disk: RealDisk) -> None:
    log = open_(machine_disk, ONE_SEGMENT)
    fill(log, 300, size=1000)
    slow, expected = held(log)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    got = b""
    with slow, ours, theirs:
        while slow.left:
            try:
                slow.send(ours.fileno(), 10_000)
            except BlockingIOError:
                got += theirs.recv(1 << 16)
        assert slow.send(ours.fileno()) == 0
        ours.close()
        while piece := theirs.recv(1 << 16):
            got += piece
    assert got == expected


def test_sending_stops_at_a_cut(machine_disk: RealDisk) -> None:
    log = open_(machine_disk, ONE_SEGMENT)
    fill(log, 10)
    slow, _ = held(log)
    ours, theirs = socket.socketpair()
    with slow, ours, theirs:
        slow.send(ours.fileno(), 100)
        log.truncate_to(Offset(5), NOW)
        with pytest.raises(SliceCutError):
            slow.send(ours.fileno(), 100)


def test_a_simulated_disk_has_no_sendfile_and_says_so(disk: Disk) -> None:
    log = open_(disk)
    fill(log, 1)
    slow, expected = held(log)
    with slow:
        if slow.fileno() < 0:
            with pytest.raises(OSError, match="read instead"):
                slow.send(0)
        assert slow.read(1 << 20) == expected


def test_asyncio_sends_it(machine_disk: RealDisk) -> None:
    log = open_(machine_disk, ONE_SEGMENT)
    fill(log, 300, size=1000)
    slow, expected = held(log)

    async def send() -> bytes:
        ours, theirs = socket.socketpair()
        reader, _writer = await asyncio.open_connection(sock=theirs)
        _, writer = await asyncio.open_connection(sock=ours)
        receiving = asyncio.create_task(reader.read(-1))
        loop = asyncio.get_running_loop()
        with slow:
            file = cast("BinaryIO", slow)  # It asks for a descriptor and nothing else.
            size = await loop.sendfile(writer.transport, file, slow.position, slow.left)
            slow.passed(size)
            assert slow.left == 0
        writer.close()
        got = await receiving
        _writer.close()
        return got

    assert asyncio.run(send()) == expected
