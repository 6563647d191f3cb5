"""The files of a log."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from holdfast.protocol.records.arrow.batch_walk import HEADER_FIELDS
from holdfast.protocol.records.batch_header import HEADER_BYTES


class Segment(NamedTuple):
    base: int
    path: str
    size: int
    inode: int
    """The identity of the file when it was listed: the cleaner replaces files."""


def segment_at(path: Path) -> Segment:
    """A `.log` file, by its name and size."""
    status = path.stat()
    return Segment(int(path.stem), str(path), status.st_size, status.st_ino)


@contextmanager
def opened(path: str) -> Iterator[int]:
    file = os.open(path, os.O_RDONLY)
    try:
        yield file
    finally:
        os.close(file)


def began_ms(segments: Sequence[Segment]) -> int | None:
    """The time of a log's first record; None if that is gone already, or cannot be read."""
    if not segments or segments[0].base > 0:
        return None
    with suppress(OSError), opened(segments[0].path) as file:
        header = np.frombuffer(os.pread(file, HEADER_BYTES, 0), np.uint8)
        if len(header) == HEADER_BYTES:
            return int(header.view(HEADER_FIELDS)[0]["base_timestamp"])
    return None
