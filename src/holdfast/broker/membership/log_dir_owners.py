"""Checks in meta.properties which cluster and broker the log directories belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.broker.errors import StartError
from holdfast.storage import Disk
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.checkpoints.meta_properties import MetaProperties, read_meta_properties

META_VERSIONS: Final = (0, 1)


def read_owner(path: str, disk: Disk, broker: int) -> MetaProperties | None:
    """None for a new directory; StartError if another broker owns it, OSError of the disk."""
    try:
        meta = read_meta_properties(disk)
    except DamagedFileError as error:
        raise StartError(
            f"{path}/{error}; restore it from a copy, or move the directory away to start empty"
        ) from None
    if meta is None:
        return None
    if meta.version not in META_VERSIONS:
        raise StartError(
            f"{path}/meta.properties has version {meta.version}, and this release reads "
            "0 and 1: start the release that wrote it, or correct log.dirs"
        )
    if meta.node_id != broker:
        raise StartError(
            f"{path} belongs to broker {meta.node_id}, and this is broker {broker}: "
            "correct node.id or log.dirs"
        )
    return meta


def check_together(owners: Mapping[str, MetaProperties]) -> None:
    """StartError if these directories do not belong to one broker."""
    first = next(iter(owners.items()), None)
    by_id: dict[str, str] = {}
    for path, meta in owners.items():
        if first is not None and meta.cluster_id != first[1].cluster_id:
            raise StartError(
                f"{path} belongs to cluster {meta.cluster_id}, and {first[0]} to cluster "
                f"{first[1].cluster_id}: correct log.dirs"
            )
        other = by_id.setdefault(meta.directory_id or path, path)
        if other != path:
            raise StartError(
                f"{path} and {other} have the same directory.id in meta.properties, so one is a "
                "copy of the other: correct log.dirs"
            )
