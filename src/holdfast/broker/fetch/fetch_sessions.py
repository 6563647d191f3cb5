"""Fetch sessions: the partitions of each reader, and which of them have updates (KIP-227).

A session remembers its partitions, so a request names only what changed and an answer holds only
partitions with updates. The cost depends on the partitions that change, not on the idle ones: a
partition notifies its sessions when it has grown (`wake`) or when its high watermark has moved, and
an answer looks at no others.

A request without a session is a session that lasts for one answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from holdfast.model import BrokerEpoch, BrokerId, ErrorCode

if TYPE_CHECKING:
    from holdfast.broker.fetch.parked_fetch import ParkedFetch
    from holdfast.broker.replication.partition import Partition
    from holdfast.protocol.messages.fetch import FetchPartition, FetchRequest

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
FIRST_EPOCH: Final = 0
_LARGEST_ID: Final = 2**31 - 1
MOST_FOLLOWERS: Final = 1_000
"""Limit for sessions of followers: any client can claim to be one."""

TopicKey = str | bytes
"""A topic's name, or its id from version 13 on."""


class Reader:
    """One partition as one session reads it."""

    __slots__ = (
        "answered_high_watermark",
        "answered_start",
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "is_answered",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "topic",
    )

    partition: Partition | None
    """The partition on this broker, once it is found."""

    def __init__(self, topic: TopicKey, index: int) -> None:
        self.topic = topic
        self.index = index
        self.partition = None
        self.fetch_offset = 0
        self.last_fetched_epoch = -1
        self.current_leader_epoch = -1
        self.log_start_offset = -1
        self.max_bytes = 0
        self.answered_high_watermark = -1
        self.answered_start = -1
        self.is_answered = False
        """Whether an answer has named it: the first answer names every partition."""

    def asks(self, asked: FetchPartition) -> None:
        """Store the position and limits of a request."""
        self.fetch_offset = asked.fetch_offset
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.current_leader_epoch = asked.current_leader_epoch
        self.log_start_offset = asked.log_start_offset
        self.max_bytes = asked.partition_max_bytes


class FetchSession:
    """The partitions that one client reads."""

    __slots__ = (
        "broker_epoch",
        "epoch",
        "follower",
        "id",
        "last_request_ms",
        "outsiders",
        "parked",
        "pending",
        "readers",
        "served",
    )

    pending: dict[Reader, None]
    """Partitions with pending updates, in order of fairness: a served one goes to the end."""
    outsiders: dict[Reader, None]
    """Partitions whose ISR this follower is not in. Every request counts as a fetch of these, named
    or not: the follower may have reached the high watermark while another proposal was in flight,
    and would have no reason to name them again."""
    parked: ParkedFetch | None
    """The request that waits for updates, if one does."""
    served: list[Reader]
    """Partitions with records in a consumer's last answer. The client has discarded the records of
    a partition that its next request omits, for example in a rebalance: send them again. A follower
    has sent its next request by then, and names every partition that it wants."""

    def __init__(self, identity: int, follower: BrokerId | None) -> None:
        self.id = identity
        self.epoch = 1
        self.follower = follower
        self.broker_epoch = BrokerEpoch(-1)
        self.readers: dict[tuple[TopicKey, int], Reader] = {}
        self.pending = {}
        self.outsiders = {}
        self.parked = None
        self.served = []
        self.last_request_ms = 0

    def apply(self, request: FetchRequest, *, by_id: bool) -> list[Reader]:
        """Apply a request's changes to the session; returns the readers it names and keeps.

        A partition that it both names and forgets is removed. A request that opens a session, or
        has none, removes nothing.
        """
        named: dict[Reader, None] = {}
        for asked_topic in request.topics:
            topic: TopicKey = asked_topic.topic_id if by_id else asked_topic.topic
            for asked in asked_topic.partitions:
                key = (topic, asked.partition)
                reader = self.readers.get(key)
                if reader is None:
                    reader = self.readers[key] = Reader(topic, asked.partition)
                reader.asks(asked)
                self.pending[reader] = None
                named[reader] = None
        if request.session_epoch > FIRST_EPOCH:
            for gone in self._forget(request, by_id=by_id):
                named.pop(gone, None)
        return list(named)

    def _forget(self, request: FetchRequest, *, by_id: bool) -> Iterator[Reader]:
        for forgotten in request.forgotten_topics_data:
            topic: TopicKey = forgotten.topic_id if by_id else forgotten.topic
            for index in forgotten.partitions:
                reader = self.readers.pop((topic, index), None)
                if reader is not None:
                    self._leave(reader)
                    yield reader

    def was_served(self, reader: Reader) -> None:
        """An answer had records of this partition."""
        if self.follower is None:
            self.served.append(reader)

    def serve_again(self) -> None:
        """A new request has arrived: the position of an omitted partition has not moved."""
        self.pending.update(dict.fromkeys(one for one in self.served if one.partition is not None))
        self.served = []

    # Calls of partitions.

    def wake(self, partition: Partition) -> None:
        """A partition has something to send, or no longer leads."""
        reader = partition.sessions.get(self)
        if reader is None:
            return
        self.pending[reader] = None
        parked = self.parked
        if self.follower is not None:
            at_ms = parked.now_ms() if parked is not None else self.last_request_ms
            partition.replica.still_caught_up(self.follower, at_ms)
        if parked is not None:
            parked.wake()

    def mark_moved(self, partition: Partition) -> None:
        """High watermark or log start: sent with the next answer, but it wakes no request."""
        self.pending[partition.sessions[self]] = None

    def isr_changed(self, reader: Reader, isr: tuple[BrokerId, ...]) -> None:
        """The ISR of a partition has changed."""
        if self.follower is None or self.follower in isr:
            self.outsiders.pop(reader, None)
        else:
            self.outsiders[reader] = None

    def forget(self, partition: Partition) -> None:
        """The partition has left this broker."""
        reader = partition.sessions.pop(self, None)
        if reader is not None:
            reader.partition = None
            self.pending[reader] = None
            if self.parked is not None:
                self.parked.wake()

    def meet(self, reader: Reader, partition: Partition) -> None:
        """A reader has found its partition."""
        if reader.partition is partition:
            return
        self._leave(reader)
        reader.partition = partition
        partition.sessions[self] = reader
        self.pending[reader] = None

    def _leave(self, reader: Reader) -> None:
        self.pending.pop(reader, None)
        self.outsiders.pop(reader, None)
        partition = reader.partition
        if partition is not None:
            partition.sessions.pop(self, None)
            partition.replica.unpark_fetch(self)
            reader.partition = None

    def close(self) -> None:
        """Remove the session from its partitions."""
        for reader in self.readers.values():
            self._leave(reader)
        self.readers.clear()
        self.parked = None


class FetchSessions:
    """All sessions of a broker; evicts the least recently used when there are too many."""

    def __init__(self, limit: int, rng: random.Random) -> None:
        self._limit = limit
        """max.incremental.fetch.session.cache.slots; followers do not count."""
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}

    def find(
        self, request: FetchRequest, follower: BrokerId | None
    ) -> tuple[FetchSession | None, ErrorCode]:
        """The session of a request, a new one, or an error."""
        identity, epoch = request.session_id, request.session_epoch
        if epoch in (FINAL_EPOCH, FIRST_EPOCH):
            if identity != NO_SESSION:
                self._close(identity)
            if epoch == FINAL_EPOCH or self._limit <= 0:
                return FetchSession(NO_SESSION, follower), ErrorCode.NONE
            return self._open(follower), ErrorCode.NONE
        session = self._sessions.get(identity)
        if session is None or session.follower != follower:
            return None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if epoch != session.epoch:
            return None, ErrorCode.INVALID_FETCH_SESSION_EPOCH
        session.epoch = 1 if epoch == _LARGEST_ID else epoch + 1
        # The most recently used is at the end.
        self._sessions[identity] = self._sessions.pop(identity)
        return session, ErrorCode.NONE

    def _open(self, follower: BrokerId | None) -> FetchSession:
        peers = [
            one for one in self._sessions.values() if (one.follower is None) == (follower is None)
        ]
        own = [one for one in peers if one.follower == follower]
        if follower is None:
            if len(peers) >= self._limit:
                self._close(peers[0].id)
        elif own:
            # A follower has one session; a new one means that it lost the other.
            self._close(own[0].id)
        elif len(peers) >= MOST_FOLLOWERS:
            self._close(peers[0].id)
        identity = NO_SESSION
        while identity == NO_SESSION or identity in self._sessions:
            identity = self._rng.randrange(1, _LARGEST_ID)
        session = self._sessions[identity] = FetchSession(identity, follower)
        return session

    def _close(self, identity: int) -> None:
        session = self._sessions.pop(identity, None)
        if session is not None:
            session.close()
