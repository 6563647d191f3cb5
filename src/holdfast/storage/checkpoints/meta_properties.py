"""Files that identify a directory: meta.properties, partition.metadata, the clean-shutdown marker.

Unlike checkpoints, these cannot be rebuilt from the log. A damaged marker counts as missing: the
logs are then checked, which is always safe. A damaged partition.metadata loses the topic's id,
which the controller sends again. A damaged meta.properties needs the operator.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from typing import NamedTuple

from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.disk import Disk, parent, read_whole, write_whole
from holdfast.storage.file_names import CLEAN_SHUTDOWN, META_PROPERTIES, PARTITION_METADATA

_METADATA_VERSION = 0


def id_text(identity: uuid.UUID) -> str:
    """Kafka's spelling of an id: 22 characters of url-safe base64."""
    return base64.urlsafe_b64encode(identity.bytes).rstrip(b"=").decode()


def parse_id(text: str) -> uuid.UUID:
    """Raises ValueError for anything else than 22 such characters."""
    try:
        content = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(f"not an id: {text!r}") from error
    if len(content) != 16 or len(text) != 22:
        raise ValueError(f"not an id: {text!r}")
    return uuid.UUID(bytes=content)


class MetaProperties(NamedTuple):
    """The node and the cluster whose logs are in this directory."""

    cluster_id: str
    node_id: int
    directory_id: str = ""
    version: int = 1


def read_meta_properties(disk: Disk) -> MetaProperties | None:
    """None for a new directory. Raises DamagedFileError if the file cannot be read."""
    content = read_whole(disk, META_PROPERTIES)
    if content is None:
        return None
    found = dict(_properties(content.decode("latin-1")))
    try:
        node = found.get("node.id", found.get("broker.id", ""))
        return MetaProperties(
            cluster_id=found["cluster.id"],
            node_id=int(node),
            directory_id=found.get("directory.id", ""),
            version=int(found["version"]),
        )
    except (KeyError, ValueError) as error:
        raise DamagedFileError(META_PROPERTIES, f"missing or not a number: {error}") from None


def write_meta_properties(disk: Disk, meta: MetaProperties) -> None:
    """Write the keys in Kafka's order; no date line, so that equal content is equal bytes."""
    lines = ["#", f"node.id={meta.node_id}"]
    if meta.directory_id:
        lines.append(f"directory.id={meta.directory_id}")
    lines += [f"version={meta.version}", f"cluster.id={meta.cluster_id}"]
    write_whole(disk, META_PROPERTIES, "".join(f"{line}\n" for line in lines).encode("latin-1"))


def _properties(text: str) -> list[tuple[str, str]]:
    """The part of Java's format that Kafka writes here: no continued lines, no unicode escapes."""
    pairs = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            key, _, value = stripped.partition("=")
            pairs.append((key.strip(), value.strip().replace("\\", "")))
    return pairs


def read_topic_id(disk: Disk, directory: str) -> uuid.UUID | None:
    """None if the log has none yet. Raises DamagedFileError if the file cannot be read."""
    path = f"{directory}/{PARTITION_METADATA}"
    content = read_whole(disk, path)
    if content is None:
        return None
    found = {
        key.strip(): value.strip()
        for key, colon, value in (
            line.partition(":") for line in content.decode("utf-8", "replace").splitlines()
        )
        if colon
    }
    try:
        if int(found["version"]) != _METADATA_VERSION:
            raise DamagedFileError(path, f"version {found['version']}")
        return parse_id(found["topic_id"])
    except (KeyError, ValueError) as error:
        raise DamagedFileError(path, f"missing or wrong: {error}") from None


def write_topic_id(disk: Disk, directory: str, topic_id: uuid.UUID) -> None:
    """Written once, when the log is created; durable once the log's directory is flushed."""
    path = f"{directory}/{PARTITION_METADATA}"
    write_whole(disk, path, topic_id_content(topic_id), lasting=False)


def topic_id_content(topic_id: uuid.UUID) -> bytes:
    """The content of that file."""
    return f"version: {_METADATA_VERSION}\ntopic_id: {id_text(topic_id)}".encode()


class CleanShutdownMarker(NamedTuple):
    """The last process closed every log here."""

    broker_epoch: int
    intact_since: int = -1
    """The broker epoch since which every shutdown was clean. Kafka ignores this field."""
    directories: tuple[str, ...] = ()
    """The ids of all log directories that the broker had, if several. Kafka ignores this field."""


def read_clean_shutdown(disk: Disk) -> CleanShutdownMarker | None:
    """None if there is no marker. Raises DamagedFileError if it cannot be read."""
    content = read_whole(disk, CLEAN_SHUTDOWN)
    if content is None:
        return None
    try:
        found = json.loads(content)
        return CleanShutdownMarker(
            int(found["brokerEpoch"]),
            int(found.get("intactSince", -1)),
            tuple(map(str, found.get("directories", ()))),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(CLEAN_SHUTDOWN, f"not Kafka's JSON: {error}") from None


def write_clean_shutdown(disk: Disk, marker: CleanShutdownMarker) -> None:
    """The last step of a clean shutdown: everything else is on the disk."""
    fields: dict[str, object] = {"version": 0, "brokerEpoch": marker.broker_epoch}
    if marker.intact_since >= 0:
        fields["intactSince"] = marker.intact_since
    if marker.directories:
        fields["directories"] = marker.directories
    text = json.dumps(fields, separators=(",", ":"))
    write_whole(disk, CLEAN_SHUTDOWN, text.encode())


def remove_clean_shutdown(disk: Disk) -> None:
    """Call before the first change: a marker that outlives it would cover changed logs."""
    if disk.exists(CLEAN_SHUTDOWN):
        disk.remove(CLEAN_SHUTDOWN)
        disk.flush_directory(parent(CLEAN_SHUTDOWN))
