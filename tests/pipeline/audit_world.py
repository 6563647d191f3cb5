"""Worlds for the audit: copies as real log directories, sends and readings as packs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.model import TopicPartition
from holdfast.pipeline.audit.findings.details import KIND_NAMES, PLACES
from holdfast.pipeline.audit.jobs.backends import judged_here
from holdfast.pipeline.audit.jobs.row_sources import (
    DELIVERED,
    READ,
    SENT,
    Gathered,
)
from holdfast.pipeline.audit.jobs.row_types import ROW, Table, content
from holdfast.pipeline.audit.jobs.stretch_job import Context, Pack, Packs, present
from holdfast.pipeline.audit.judge.reconcile import Topic, settle_topics
from holdfast.pipeline.audit.judge.stretch_verdict import Expectation
from holdfast.pipeline.audit.replicas.replica_files import find_replicas
from holdfast.protocol.records import BatchOptions, crc32c
from holdfast.protocol.records.batch_builder import BatchBuilder
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import write_offsets
from holdfast.storage.file_names import HIGH_WATERMARKS, LOG_STARTS
from tests.pipeline.audit_reference import Content, Copy, Findings, Line, Send, World

TOPIC = "t"
NAME = TopicPartition(TOPIC, 0)
NUMBERS = {"unknown": 1, "acked": 2, "refused": 3}


def batches(line: Line) -> Iterator[bytes]:
    """Neighbours of one epoch share a batch, two at a time, as a producer's would."""
    offsets = sorted(line)
    for _, group in itertools.groupby(
        enumerate(offsets), lambda one: (one[1] - one[0], one[1] // 2, line[one[1]][0])
    ):
        mine = [offset for _, offset in group]
        epoch = line[mine[0]][0]
        builder = BatchBuilder(BatchOptions(base_offset=mine[0], leader_epoch=epoch))
        for offset in mine:
            key, value = line[offset][1]
            builder.append(value, key, 1000)
        yield bytes(builder.build())


def write_copy(root: Path, copy: Copy) -> None:
    folder = root / copy.name / str(NAME)
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(b"".join(batches(copy.line)))
    disk = RealDisk(root / copy.name)
    write_offsets(disk, HIGH_WATERMARKS, {NAME: copy.high_watermark})
    write_offsets(disk, LOG_STARTS, {NAME: copy.start})


def number(part: bytes | None) -> int:
    if part is None:
        return 0
    return int(content(np.array([crc32c(part)]), np.array([len(part)]))[0])


def row(offset: int, what: Content, **more: int) -> Any:
    one = np.zeros((), ROW)
    one["offset"], one["key"], one["value"] = offset, number(what[0]), number(what[1])
    for name, value in more.items():
        one[name] = value
    return one


def send_row(send: Send) -> Any:
    result = NUMBERS[send.result]
    return row(send.offset, send.content, who=send.who, sequence=send.sequence, result=result)


def rows_of(rows: list[Any]) -> Table:
    return np.array(rows, ROW) if rows else np.empty(0, ROW)


def run_world(world: World, root: Path, span: int) -> Topic:
    """What Spark does, in this process."""
    for copy in world.copies:
        write_copy(root, copy)
    cluster = find_replicas({copy.name: root / copy.name for copy in world.copies}, [TOPIC])
    context = Context(
        partitions=cluster.partitions,
        bits={broker: bit for bit, broker in enumerate(cluster.brokers)},
        is_partial=cluster.is_partial,
        min_insync=world.min_insync,
        is_acks_all=np.ones(10, np.bool_),
        table=_spans([offset for offset, _ in world.table]) if world.table is not None else None,
        consumed=_spans([offset for _, offset, _ in world.polls], from_first=True)
        if world.polls is not None
        else None,
        span=span,
    )
    packs = list(_packs(world, span))
    return run_packs(packs, context, _look(world))


def run_packs(packs: list[Pack], context: Context, look: Callable[[int, Any], Packs]) -> Topic:
    """Judge every stretch, and settle what is left."""
    results = judged_here([*packs, *present(context)], context)
    return settle_topics(results, [TOPIC], context, look)[TOPIC]


def _spans(offsets: list[int], *, from_first: bool = False) -> dict[tuple[str, int], Expectation]:
    if not offsets:
        return {}
    return {(TOPIC, 0): Expectation(min(offsets) if from_first else 0, max(offsets) + 1)}


def _sources(world: World) -> dict[int, tuple[Any, Table]]:
    sends = (
        np.array([send.partition for send in world.sends], np.int64),
        rows_of([send_row(send) for send in world.sends]),
    )
    read = [row(offset, what, who=-1) for offset, what in world.table or []]
    polls = [
        row(offset, what, who=who, sequence=nth)
        for nth, (who, offset, what) in enumerate(world.polls or [])
    ]
    return {
        SENT: sends,
        READ: (np.zeros(len(read), np.int64), rows_of(read)),
        DELIVERED: (np.zeros(len(polls), np.int64), rows_of(polls)),
    }


def _packs(world: World, span: int) -> Iterator[Pack]:
    for source, (partitions, rows) in _sources(world).items():
        gathered = Gathered(source, span)
        for batch in [*gathered.add(TOPIC, partitions, rows), *gathered.packs()]:
            for one in batch.to_pylist():
                yield tuple(one.values())


def _look(world: World) -> Callable[[int, Any], Packs]:
    def look(source: int, is_wanted: Any) -> Packs:
        partitions, rows = _sources(world)[source]
        chosen = is_wanted(TOPIC, partitions, rows)
        return {(TOPIC, 0): [rows[chosen].tobytes()]}

    return look


def findings_of(topic: Topic) -> Findings:
    """Kind, place and offset of every record."""
    found: Findings = Counter()
    for one in topic.found:
        for offset in range(int(one["first"]), int(one["last"]) + 1):
            found[KIND_NAMES[one["kind"]], PLACES[one["place"]], offset] += 1
    return found
