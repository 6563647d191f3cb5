"""What a replica's leader-epoch checkpoint answers: who wrote this offset here, and says so where.

The facts are those that the audit has read from the files already.
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
"""Of a checkpoint: its version, and how many entries follow."""


def epoch_at(replica: ReplicaFacts, offset: int) -> EpochStart | None:
    """The reign that wrote this offset here; None if the log does not have it."""
    if not replica.log_start_offset <= offset < replica.log_end_offset:
        return None
    begun = [entry for entry in replica.epochs if entry.start_offset <= offset]
    return begun[-1] if begun else None


def newest(replicas: Iterable[ReplicaFacts]) -> ReplicaFacts | None:
    """The copy that readers are served from now: the highest epoch, then the longest."""
    return max(replicas, key=lambda one: (_last_epoch(one), one.log_end_offset), default=None)


def _last_epoch(replica: ReplicaFacts) -> int:
    """One that begins behind the end of the log is not what the log has."""
    begun = [one.epoch for one in replica.epochs if one.start_offset <= replica.log_end_offset]
    return max(begun, default=-1)


def line_of(replica: ReplicaFacts, entry: EpochStart) -> str:
    """Where the checkpoint says it: file and line."""
    line = replica.epochs.index(entry) + _HEADER_LINES + 1
    return f"{Path(replica.path) / EPOCH_CHECKPOINT}:{line}"


def names_of(logs: Mapping[str, Path]) -> dict[int, str]:
    """The name of each broker by its id, as far as the id is known."""
    ids = {broker_id(name, Path(folder)): name for name, folder in logs.items()}
    return {broker: name for broker, name in ids.items() if broker is not None}


def broker_id(name: str, folder: Path) -> int | None:
    """What meta.properties says; else the number in the name: b2, broker-2."""
    try:
        meta = read_meta_properties(RealDisk(folder, read_only=True))
    except (DamagedFileError, OSError):
        meta = None
    if meta is not None:
        return meta.node_id
    digits = re.search(r"(\d+)$", name)
    return int(digits[1]) if digits else None
