"""Counts what producers, consumers and followers send and receive, by topic.

The partitions of a topic share one count. A topic whose last partition leaves this broker is
forgotten; the totals of the broker keep what it counted, so they never fall.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.protocol.records import RecordBatchHeader

COUNTED: Final = (
    "bytes_in",
    "bytes_out",
    "failed_fetches",
    "failed_produces",
    "fetches",
    "messages_in",
    "produces",
    "replication_bytes_in",
    "replication_bytes_out",
)


class TopicTraffic:
    """The counts of one topic on this broker."""

    __slots__ = (*COUNTED, "partitions")

    messages_in: int
    bytes_in: int
    """Record batches from producers."""
    bytes_out: int
    """Record batches to consumers."""
    replication_bytes_in: int
    """Record batches from leaders."""
    replication_bytes_out: int
    """Record batches to followers."""
    produces: int
    """Batches that producers sent to a partition, appended or not."""
    failed_produces: int
    fetches: int
    """Parts of answers to consumers and followers, one for each partition."""
    failed_fetches: int
    partitions: int
    """How many of its partitions this broker hosts."""

    def __init__(self) -> None:
        self.partitions = 0
        for name in COUNTED:
            setattr(self, name, 0)

    def produced(self, headers: Iterable[RecordBatchHeader]) -> None:
        """Batches of producers were appended."""
        for header in headers:
            self.messages_in += header.record_count
            self.bytes_in += header.size

    def add(self, other: TopicTraffic) -> None:
        """Include the counts of another one."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffic:
    """The counts of all topics that this broker has partitions of."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicTraffic] = {}
        self._left = TopicTraffic()

    def join(self, topic: str) -> TopicTraffic:
        """This broker hosts one more partition of the topic."""
        found = self.topics.setdefault(topic, TopicTraffic())
        found.partitions += 1
        return found

    def leave(self, topic: str) -> None:
        """This broker hosts one partition less."""
        found = self.topics[topic]
        found.partitions -= 1
        if not found.partitions:
            self._left.add(self.topics.pop(topic))

    def total(self) -> TopicTraffic:
        """The counts of all topics, also of those that have left."""
        total = TopicTraffic()
        for one in (self._left, *self.topics.values()):
            total.add(one)
        return total
