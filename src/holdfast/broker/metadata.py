"""What this broker tells clients about the cluster: as the controller told it (UpdateMetadata)."""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.broker.peers import Endpoint
from holdfast.model import BrokerId, ErrorCode, TopicPartition
from holdfast.protocol.messages.control import UpdateMetadataRequest

WHOLE: Final = 2
"""The type of an UpdateMetadata that names everything there is."""
DELETED_LEADER: Final = -2
"""UpdateMetadata names this leader for a partition whose topic is being deleted."""


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


class KnownTopic:
    """A topic and its partitions by number."""

    __slots__ = ("id", "name", "partitions")

    def __init__(self, name: str, identity: bytes) -> None:
        self.name = name
        self.id = identity
        self.partitions: dict[int, KnownPartition] = {}

    def names(self) -> list[TopicPartition]:
        """Of all its partitions."""
        return [TopicPartition(self.name, index) for index in self.partitions]


class Metadata:
    """The cluster as this broker knows it."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.controller: BrokerId | None = None
        self.brokers: dict[BrokerId, KnownBroker] = {}
        self.topics: dict[str, KnownTopic] = {}
        self._names: dict[bytes, str] = {}

    def update(self, request: UpdateMetadataRequest) -> list[TopicPartition]:
        """Take over the controller's news; gives the partitions whose topic is gone.

        A topic that comes back with another id was deleted in between, whoever missed that.
        """
        self.controller = BrokerId(request.controller_id)
        self.brokers = {}
        for broker in request.live_brokers:
            identity = BrokerId(broker.id)
            for endpoint in broker.endpoints[:1]:
                known = KnownBroker(
                    identity, Endpoint(endpoint.host, endpoint.port), broker.rack or None
                )
                self.brokers[identity] = known
        gone = self._not_named(request) if request.type == WHOLE else []
        for state in request.topic_states:
            name = state.topic_name
            topic = self.topics.get(name)
            if any(one.leader == DELETED_LEADER for one in state.partition_states):
                if topic is not None and topic.id == state.topic_id:
                    del self.topics[name], self._names[topic.id]
                    gone += topic.names()
                continue
            if topic is None or topic.id != state.topic_id:
                if topic is not None:
                    self._names.pop(topic.id, None)
                    gone += topic.names()
                topic = self.topics[name] = KnownTopic(name, state.topic_id)
                self._names[state.topic_id] = name
            for one in state.partition_states:
                topic.partitions[one.partition_index] = KnownPartition(
                    BrokerId(one.leader),
                    one.leader_epoch,
                    tuple(one.replicas),
                    tuple(one.isr),
                    tuple(one.offline_replicas),
                )
        return gone

    def _not_named(self, request: UpdateMetadataRequest) -> list[TopicPartition]:
        """Forget topics that are no more."""
        named = dict.fromkeys(state.topic_id for state in request.topic_states)
        gone = [topic for topic in self.topics.values() if topic.id not in named]
        for topic in gone:
            del self.topics[topic.name], self._names[topic.id]
        return [name for topic in gone for name in topic.names()]

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

    def why_not_here(self, key: str | bytes, index: int) -> ErrorCode:
        """What to tell a client that asks us for a partition we do not have."""
        if self.partition(key, index) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if isinstance(key, bytes) and key not in self._names:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
