"""Opens a segment for reading while its broker may truncate, clean or remove it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from holdfast.pipeline.logs.segment_batches import Chain, Damage
from holdfast.pipeline.logs.splits import Piece
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.file_names import LOG
from holdfast.storage.inspect.log_files import LogFiles, read_indexes
from holdfast.storage.segment.batch_scan import Run
from holdfast.storage.segment.offset_and_time_index import OffsetIndex


def read_piece(piece: Piece) -> Iterator[Run | Damage]:
    """The content of a piece, in order; nothing if retention has removed the segment."""
    with opened(piece) as chain:
        if chain is None:
            return
        start = chain.align(piece.start, piece.origin)
        is_last = piece.stop == piece.end or chain.is_replaced
        yield from chain.read(start, chain.end if is_last else chain.align(piece.stop, start))


class SegmentChain(Chain):
    """The chain of a segment as it was planned, or of the file that has replaced it."""

    is_replaced = False


@contextmanager
def opened(piece: Piece) -> Iterator[SegmentChain | None]:
    """The segment of a piece, up to its planned size; None if nothing is to be read.

    The cleaner may have replaced the file. Positions in the old one mean nothing in the new one, so
    the piece that begins the segment gets all of it and the others get nothing.
    """
    disk = RealDisk(piece.replica.root, read_only=True)
    files = LogFiles(piece.replica.directory, [], [])
    try:
        file = disk.open(files.path(piece.span.base, LOG))
    except FileNotFoundError:
        yield None
        return
    index = partial(_index, disk, files, piece.span.base)
    try:
        if os.fstat(file.descriptor()).st_ino == piece.inode:
            yield SegmentChain(file, min(piece.end, file.size), piece.span, index)
        else:
            chain = SegmentChain(file, file.size, piece.span, index)
            chain.is_replaced = True
            yield chain if piece.start == 0 else None
    finally:
        file.close()


def _index(disk: RealDisk, files: LogFiles, base: int) -> OffsetIndex | None:
    try:
        return read_indexes(disk, files, base).offsets
    except DamagedFileError:
        return None
