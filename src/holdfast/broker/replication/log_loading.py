"""Opens the logs of a broker when it starts."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from holdfast.broker.log_lines import LogLines
from holdfast.broker.replication.partition import Partition
from holdfast.model import TopicPartition
from holdfast.storage import LogDirectories, LogOpening

RECOVERY_THREADS: Final = 4
"""Logs that are opened at the same time."""


async def open_logs(
    loop: asyncio.AbstractEventLoop, directories: LogDirectories
) -> tuple[list[LogOpening], dict[TopicPartition, OSError]]:
    """Open every log; returns the partitions whose disk failed too.

    After a crash this reads everything that was not flushed. Threads do that, so that the event
    loop continues.
    """
    openings = directories.openings()
    with ThreadPoolExecutor(RECOVERY_THREADS, thread_name_prefix="recovery") as threads:
        started = [loop.run_in_executor(threads, one.run) for one in openings]
        results = await asyncio.gather(*started, return_exceptions=True)
    opened: list[LogOpening] = []
    failed = directories.lost()
    for opening, result in zip(openings, results, strict=True):
        if isinstance(result, OSError):
            failed[opening.partition] = result
        elif result is not None:
            raise result
        else:
            opened.append(opening)
    directories.not_opened(failed)
    return opened, failed


def end_open_transactions(partition: Partition, log: LogLines) -> None:
    """End open transactions that we or an earlier leader accepted without a coordinator.

    Nothing can commit or abort them, and they would block read_committed consumers for ever.
    """
    abandoned = partition.log.producers.abandon_open()
    if abandoned:
        log.warning(
            "a transaction will never end: read_committed readers see its records",
            partition=str(partition.name),
            first_offset=min(abandoned.values()),
            producers=len(abandoned),
        )
