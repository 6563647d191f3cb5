"""Plans what to read, and which task reads which part of it.

A piece is a byte range of one segment; a split is what one Spark task reads. Large segments are
split, and small ones put together, so that tasks are few and about equal: a task costs some ten
milliseconds even if it does nothing.

Sizes are read once, when the work is planned. What a live broker appends later is not read; what it
removes meanwhile is not missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from holdfast.model import Offset, TopicPartition
from holdfast.pipeline.errors import PipelineError
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError, read_offsets
from holdfast.storage.file_names import HIGH_WATERMARKS, RECOVERY_POINTS
from holdfast.storage.inspect.log_files import log_files
from holdfast.storage.inspect.log_listing import partitions_on
from holdfast.storage.inspect.segment_reader import SegmentFile, list_segments

LEAST_SPLIT_BYTES = 16 << 20
MOST_SPLIT_BYTES = 64 << 20
SPLITS = 16
"""How many splits are made at least, where that leaves them large enough."""


class Replica(NamedTuple):
    """One partition on one broker."""

    broker: str
    root: str
    topic: str
    partition: int
    high_watermark: int | None
    """From its checkpoint, some seconds old on a live broker; None if unknown."""
    recovery_point: int | None

    @property
    def directory(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The batches, and the damage, of one segment that start in [start, stop)."""

    replica: Replica
    segment: SegmentFile
    start: int
    stop: int
    origin: int = 0
    """A batch starts there, at or before the start."""


@dataclass(slots=True)
class Split(InputPartition):
    """What one task reads."""

    pieces: tuple[Piece, ...]


def parse_paths(text: str) -> list[tuple[str, str]]:
    """`b1=DIR,b2=DIR`. A broker with several log directories is named once for each."""
    found = []
    for part in text.split(","):
        broker, equals, directory = part.strip().partition("=")
        if not (broker and equals and directory):
            raise PipelineError(
                f"'{part}' is not BROKER=DIR",
                hint="Name brokers and their log directories: b1=data/b1,b2=data/b2",
            )
        if not Path(directory).is_dir():
            raise PipelineError(
                f"{directory} (of {broker}) is not a directory on this machine",
                hint="Name the broker's log.dirs, the directory that holds TOPIC-PARTITION",
            )
        found.append((broker, str(Path(directory).resolve())))
    return found


def replicas(options: Mapping[str, str]) -> Iterator[Replica]:
    """Every partition that the directories of `path` hold, of the `topics` named or of all."""
    names = options.get("topics")
    topics = [name.strip() for name in names.split(",")] if names is not None else None
    for broker, root in parse_paths(options.get("path", "")):
        disk = RealDisk(root, read_only=True)
        marks, points = _offsets(disk, HIGH_WATERMARKS), _offsets(disk, RECOVERY_POINTS)
        for found in partitions_on(disk):
            if topics is None or found.topic in topics:
                yield Replica(broker, root, *found, marks.get(found), points.get(found))


def _offsets(disk: RealDisk, name: str) -> Mapping[TopicPartition, Offset]:
    """A damaged checkpoint gives nothing, and a row that depends on it has null."""
    try:
        return read_offsets(disk, name)
    except DamagedFileError:
        return {}


def segments(replica: Replica) -> list[Piece]:
    """The whole segments of a log, oldest first; none if it has vanished."""
    disk = RealDisk(replica.root, read_only=True)
    try:
        found = list_segments(disk, log_files(disk, replica.directory))
    except FileNotFoundError:
        return []
    return [Piece(replica=replica, segment=one, start=0, stop=one.size) for one in found]


def splits(pieces: Iterable[Piece], split_bytes: int | None = None) -> list[Split]:
    """Few, about equal, in the order of the pieces."""
    wanted = [piece for piece in pieces if piece.start < piece.stop]
    total = sum(piece.stop - piece.start for piece in wanted)
    size = split_bytes or min(max(total // SPLITS, LEAST_SPLIT_BYTES), MOST_SPLIT_BYTES)
    made: list[Split] = []
    gathered: list[Piece] = []
    room = size
    for whole in wanted:
        rest = whole
        while rest.start < rest.stop:  # Each round takes at least a byte.
            stop = min(rest.stop, rest.start + room)
            gathered.append(replace(rest, stop=stop))
            room -= stop - rest.start
            rest = replace(rest, start=stop)
            if room == 0:
                made.append(Split(tuple(gathered)))
                gathered, room = [], size
    if gathered:
        made.append(Split(tuple(gathered)))
    return made
