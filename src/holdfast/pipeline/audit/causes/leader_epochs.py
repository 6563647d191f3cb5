"""Looks up a replica's leader-epoch checkpoint: which epoch wrote an offset, and on which line.

The audit has read the facts from the files before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from holdfast.pipeline.audit.findings.findings import EpochStart, ReplicaFacts
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.checkpoints.meta_properties import read_meta_properties
from holdfast.storage.file_names import EPOCH_CHECKPOINT

_HEADER_LINES: Final = 2
"""A checkpoint begins with its version and the number of entries."""


def epoch_at(replica: ReplicaFacts, offset: int) -> EpochStart | None:
    """The leader epoch that wrote this offset here; None if the log does not have it."""
    if not replica.log_start_offset <= offset < replica.log_end_offset:
        return None
    begun = [entry for entry in replica.epochs if entry.start_offset <= offset]
    return begun[-1] if begun else None


def newest(replicas: Iterable[ReplicaFacts]) -> ReplicaFacts | None:
    """The copy that readers use now: the highest epoch, then the longest."""
    return max(replicas, key=lambda one: (_last_epoch(one), one.log_end_offset), default=None)


def _last_epoch(replica: ReplicaFacts) -> int:
    """An epoch that begins after the end of the log does not count."""
    begun = [one.epoch for one in replica.epochs if one.start_offset <= replica.log_end_offset]
    return max(begun, default=-1)


def line_of(replica: ReplicaFacts, entry: EpochStart) -> str:
    """File and line of the checkpoint's entry."""
    line = replica.epochs.index(entry) + _HEADER_LINES + 1
    return f"{Path(replica.path) / EPOCH_CHECKPOINT}:{line}"


def names_of(logs: Mapping[str, Path]) -> dict[int, str]:
    """The name of each broker by its id, as far as the id is known."""
    ids = {broker_id(name, Path(folder)): name for name, folder in logs.items()}
    return {broker: name for broker, name in ids.items() if broker is not None}


def broker_id(name: str, folder: Path) -> int | None:
    """The id in meta.properties; otherwise the number in the name: b2, broker-2."""
    try:
        meta = read_meta_properties(RealDisk(folder, read_only=True))
    except (DamagedFileError, OSError):
        meta = None
    if meta is not None:
        return meta.node_id
    digits = re.search(r"(\d+)$", name)
    return int(digits[1]) if digits else None
