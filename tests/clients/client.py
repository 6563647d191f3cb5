"""The operations of every client; each adapter implements them with its client.

An adapter overrides what its client can do. It names what its client cannot do in `lacks`, with
the reason, and that case is not run with it; `limits` describes the records that it can send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record to produce."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None
    """Milliseconds; None leaves it to the client's clock."""


class Read(NamedTuple):
    """A consumed record."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class How(NamedTuple):
    """How to produce."""

    compression: str = "none"
    acks: int = -1
    is_idempotent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The parts of a record that a client can express."""

    timestamps: bool = True
    binary: bool = True
    """Bytes that are not UTF-8, and line ends."""
    empties: bool = True
    """Keys and values that are empty and not null."""
    headers: bool = True
    """Any bytes as a header's value; otherwise only words."""
    null_headers: bool = True

    def fit(self, record: Record) -> Record | None:
        """The record as this client can send it; None if it cannot."""
        if not self.timestamps:
            record = replace(record, timestamp=None)
        kept = tuple(pair for pair in record.headers if self._may_send(pair[1]))
        record = replace(record, headers=kept)
        parts = [record.key, record.value, *(value for _, value in record.headers)]
        if not self.empties and b"" in parts:
            return None
        if not self.binary and not all(_is_a_line(part) for part in parts):
            return None
        return record

    def _may_send(self, header: bytes | None) -> bool:
        return self.null_headers if header is None else self.headers or _is_a_line(header)


def _is_a_line(part: bytes | None) -> bool:
    try:
        return part is None or (part.decode().isprintable() and b"," not in part)
    except UnicodeDecodeError:
        return False


class Placed(NamedTuple):
    """A partition, from metadata."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ClusterSeen(NamedTuple):
    """A cluster, as a client describes it."""

    cluster_id: str | None
    """None if the client does not show it; likewise the controller."""
    controller: int | None
    brokers: Mapping[int, int]
    """Ports by broker id."""


class GroupSeen(NamedTuple):
    """A consumer group, as a client describes it."""

    state: str
    """Lower case, without blanks: stable, empty, dead."""
    members: int


class RefusedError(Exception):
    """A broker refused the request."""

    def __init__(self, error: str, message: str = "") -> None:
        super().__init__(f"{error}: {message}")
        self.error = error
        """Kafka's name of the error code."""


class Member:
    """A running consumer of a group; reads and commits by itself until it is closed."""

    def assignment(self) -> set[int]:
        """The partitions it owns now."""
        raise NotImplementedError

    def values(self) -> list[bytes]:
        """All values received so far, in order."""
        raise NotImplementedError

    def close(self) -> None:
        """Commit the read offsets and leave the group."""
        raise NotImplementedError


class Client:
    """One client library or tool."""

    limits: ClassVar = Limits()
    lacks: ClassVar[Mapping[str, str]] = {}
    """Case name → why this client cannot do it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def close(self) -> None:
        """Stop everything that runs."""

    # Records.

    def produce(
        self, topic: str, partition: int, records: Sequence[Record], how: How
    ) -> list[int] | None:
        """Send in this order; returns the acknowledged offsets, None if the client hides them."""
        raise NotImplementedError

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Read]:
        """Read so many records from an offset."""
        raise NotImplementedError

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        """The first record at or after a time; None if there is none."""
        raise NotImplementedError

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """Log start offset and high watermark."""
        raise NotImplementedError

    # Topics.

    def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        raise NotImplementedError

    def delete_topic(self, topic: str) -> None:
        raise NotImplementedError

    def create_partitions(self, topic: str, total: int) -> None:
        raise NotImplementedError

    def topics(self) -> dict[str, dict[int, Placed]]:
        """All topics and their partitions."""
        raise NotImplementedError

    def topic_configs(self, topic: str) -> dict[str, str]:
        raise NotImplementedError

    def alter_topic_configs(
        self, topic: str, put: Mapping[str, str], drop: Sequence[str] = ()
    ) -> None:
        raise NotImplementedError

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        raise NotImplementedError

    # The cluster.

    def cluster(self) -> ClusterSeen:
        raise NotImplementedError

    def log_sizes(self, topic: str) -> dict[tuple[int, int], int]:
        """Bytes by (broker, partition), from DescribeLogDirs."""
        raise NotImplementedError

    def elect(self, topic: str, partition: int) -> None:
        """Elect the preferred leader."""
        raise NotImplementedError

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Start to move a partition to other brokers."""
        raise NotImplementedError

    # Groups.

    def join(self, group: str, topic: str) -> Member:
        raise NotImplementedError

    def groups(self) -> set[str]:
        raise NotImplementedError

    def group(self, group: str) -> GroupSeen:
        raise NotImplementedError

    def committed(self, group: str, topic: str) -> dict[int, int]:
        raise NotImplementedError

    def delete_group(self, group: str) -> None:
        raise NotImplementedError
