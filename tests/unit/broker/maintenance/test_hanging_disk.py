"""A disk that hangs in a checkpoint or a removal: the event loop still serves clients."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from holdfast.broker.faults.faulty_disk import FULL, DiskFault, FaultyDisk
from holdfast.broker.node import Broker
from holdfast.model import Offset, TopicPartition
from holdfast.protocol.messages.metadata import MetadataRequest
from holdfast.storage.file_names import HIGH_WATERMARKS, RECOVERY_POINTS
from tests.support.stuck_disk import Hits, StuckDisk
from tests.support.waiting import eventually
from tests.unit.broker.three import Three
from tests.unit.storage.support import batch

TURNS = 200


def flushes_a_checkpoint(what: str, path: str) -> bool:
    return what == "flush" and path.startswith(RECOVERY_POINTS)


def flushes_names(what: str, path: str) -> bool:
    return (what, path) == ("flush_directory", "")


def removes_a_deleted_log(what: str, path: str) -> bool:
    return what == "remove" and "-delete/" in path


async def turn(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


OFTEN = {"replica.high.watermark.checkpoint.interval.ms": "20", "log.segment.delete.delay.ms": "0"}


async def started(three: Three, folder: Path) -> tuple[Broker, StuckDisk]:
    """One broker on a disk that can hang, which checkpoints and deletes as often as it can."""
    disk = StuckDisk(folder / "log")
    (folder / "log").mkdir()
    broker = three.make(1, {str(folder / "log"): disk})
    await broker.start()
    return broker, disk


@pytest.mark.parametrize("hits", [flushes_a_checkpoint, flushes_names, removes_a_deleted_log])
def test_clients_are_answered_while_the_disk_hangs(tmp_path: Path, hits: Hits) -> None:
    async def run() -> None:
        three = Three(tmp_path, OFTEN)
        broker, disk = await started(three, tmp_path)
        log = TopicPartition("gone", 0)
        broker.directory.create(log, uuid.UUID(int=1))
        disk.hang(hits)
        broker.directory.delete(log, uuid.UUID(int=2), 0)
        try:
            await eventually(lambda: bool(disk.hanging), "the disk hangs")
            await turn(TURNS)
            answer = await three.ask(broker, MetadataRequest(topics=[]))
            assert [one.node_id for one in answer.brokers] == [1]
            assert disk.hanging, "the answer came while the disk was hanging"
        finally:
            disk.release()
        await broker.stop()
        assert not disk.gave_up, "nothing on the loop waited for the disk"

    asyncio.run(run())


def test_a_stop_waits_for_the_checkpoint_in_progress(tmp_path: Path) -> None:
    async def run() -> None:
        three = Three(tmp_path, OFTEN)
        broker, disk = await started(three, tmp_path)
        disk.hang(flushes_a_checkpoint)
        await eventually(lambda: bool(disk.hanging), "the disk hangs")
        stopping = asyncio.ensure_future(broker.stop())
        await turn(TURNS)
        assert not stopping.done()
        disk.release()
        await stopping
        names = sorted(one.name for one in (tmp_path / "log").iterdir())
        assert not [one for one in names if one.endswith((".new", ".tmp"))]
        assert HIGH_WATERMARKS in names

    asyncio.run(run())


def test_segments_leave_a_disk_that_is_too_full_for_a_checkpoint(tmp_path: Path) -> None:
    """Otherwise retention could never free space."""

    async def run() -> None:
        three = Three(tmp_path, OFTEN)
        (tmp_path / "log").mkdir()
        disk = FaultyDisk(tmp_path / "log")
        broker = three.make(1, {str(tmp_path / "log"): disk})
        await broker.start()
        log = broker.directory.create(TopicPartition("large", 0), uuid.UUID(int=1))
        for offset in range(8):
            log.append([batch(offset)], 0)
            log.roll(0)
        disk.fail(DiskFault(FULL))
        log.advance_start_to(Offset(5))
        try:
            await eventually(lambda: log.segments[0].base_offset == 5, "the segments have left")
        finally:
            disk.clear_faults()
        assert log.offline is None
        await broker.stop()

    asyncio.run(run())
