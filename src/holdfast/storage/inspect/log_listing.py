"""Lists the logs on a disk without opening them."""

from __future__ import annotations

from holdfast.model import TopicPartition
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError, read_epochs
from holdfast.storage.disk import Disk
from holdfast.storage.file_names import EPOCH_CHECKPOINT, LOG, parse_file_name, partition_of


def partitions_on(disk: Disk) -> dict[TopicPartition, str]:
    """The partitions on a disk, each with the name of its directory."""
    found: dict[TopicPartition, str] = {}
    for entry in sorted(disk.list("")):
        partition = partition_of(entry.name) if entry.is_directory else None
        if partition is not None:
            found[partition] = entry.name
    return found


def is_unused(disk: Disk, name: str) -> bool:
    """Whether the log in this directory has never had a record or a leader."""
    for file in disk.names(name):
        found = parse_file_name(file)
        if found is not None and (
            found.base_offset or (found.kind == LOG and disk.size(f"{name}/{file}"))
        ):
            return False
    try:
        return not read_epochs(disk, f"{name}/{EPOCH_CHECKPOINT}")
    except DamagedFileError:
        return False
