"""The cluster metadata for clients: the controller's UpdateMetadata, confirmed by the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.broker.settings.listeners import Endpoint
from holdfast.model import BrokerId, ErrorCode, TopicPartition


class KnownBroker(NamedTuple):
    """A live broker."""

    id: BrokerId
    endpoint: Endpoint
    rack: str | None


class KnownPartition(NamedTuple):
    """A partition, as clients see it."""

    leader: BrokerId
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    partition_epoch: int

    @property
    def age(self) -> tuple[int, int]:
        """A larger value is newer."""
        return (self.leader_epoch, self.partition_epoch)


class ChangedPartition(NamedTuple):
    """A partition's new state."""

    name: TopicPartition
    topic_id: bytes
    known: KnownPartition


class Update(NamedTuple):
    """An update that the store has confirmed."""

    controller: BrokerId
    brokers: dict[BrokerId, KnownBroker]
    """All live brokers."""
    changed: Sequence[ChangedPartition]
    gone: Sequence[bytes]
    """The ids of topics that were deleted."""


class KnownTopic:
    """A topic and its partitions by number."""

    __slots__ = ("id", "name", "partitions")

    def __init__(self, name: str, identity: bytes) -> None:
        self.name = name
        self.id = identity
        self.partitions: dict[int, KnownPartition] = {}

    def names(self) -> list[TopicPartition]:
        """The names of all its partitions."""
        return [TopicPartition(self.name, index) for index in self.partitions]


class Metadata:
    """The cluster metadata of this broker."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.controller: BrokerId | None = None
        self.brokers: dict[BrokerId, KnownBroker] = {}
        self.topics: dict[str, KnownTopic] = {}
        self._names: dict[bytes, str] = {}

    def update(self, update: Update) -> list[TopicPartition]:
        """Apply an update; returns the partitions whose topic was deleted.

        A topic that returns with another id was deleted in between.
        """
        self.controller, self.brokers = update.controller, update.brokers
        gone: list[TopicPartition] = []
        for topic_id in update.gone:
            gone += self._forget(topic_id)
        for name, topic_id, known in update.changed:
            topic = self.topics.get(name.topic)
            if topic is None or topic.id != topic_id:
                if topic is not None:
                    gone += self._forget(topic.id)
                topic = self.topics[name.topic] = KnownTopic(name.topic, topic_id)
                self._names[topic_id] = name.topic
            topic.partitions[name.partition] = known
        return gone

    def _forget(self, topic_id: bytes) -> list[TopicPartition]:
        name = self._names.pop(topic_id, None)
        return [] if name is None else self.topics.pop(name).names()

    def name_of(self, topic_id: bytes) -> str | None:
        """A topic's name, if the id is known."""
        return self._names.get(topic_id)

    def topic(self, key: str | bytes) -> KnownTopic | None:
        """By name or id."""
        name = key if isinstance(key, str) else self._names.get(key)
        return self.topics.get(name) if name is not None else None

    def partition(self, key: str | bytes, index: int) -> KnownPartition | None:
        """One partition, if it is known."""
        topic = self.topic(key)
        return topic.partitions.get(index) if topic is not None else None

    def leader_of(self, key: str | bytes, index: int) -> tuple[BrokerId, int] | None:
        """Leader and leader epoch."""
        known = self.partition(key, index)
        return (known.leader, known.leader_epoch) if known is not None else None

    def not_hosted_error(self, key: str | bytes, index: int) -> ErrorCode:
        """The error for a client that asks us for a partition that we do not host."""
        if self.partition(key, index) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if isinstance(key, bytes) and key not in self._names:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
