"""A replica fetcher: copies all partitions that we follow at one leader.

A fetcher keeps one fetch session with its leader. A request names only what changed, and waits at
the leader until a partition has grown. If the fetcher has changes to send while a request waits, it
sends a second one, and the leader answers the waiting one immediately.

An answer is used only if the core still accepts it; then its batches are checked and written
unchanged. A partition that the leader refused is left out of the session for a while, so that it
does not make every other fetch return immediately. So is one whose copying fails here
(`_isolated`): the other partitions of its leader are copied as before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from holdfast.broker.fetch.replication_throttle import Quota, is_throttled
from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.network.peer_set import FETCH, Peers
from holdfast.broker.replication.leader_log_bounds import ask_bounds
from holdfast.broker.replication.partition import Partition
from holdfast.core import BrokerIncarnation, NextFetch
from holdfast.model import BrokerId, EpochEnd, ErrorCode, LeaderEpoch, Offset
from holdfast.protocol import Response
from holdfast.protocol.messages.fetch import (
    FetchForgottenTopic,
    FetchPartition,
    FetchPartitionData,
    FetchReplicaState,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from holdfast.protocol.records import MalformedBatchError, RecordBatchHeader, batches, check_batch

FETCH_VERSION: Final = 17
FIRST_BACKOFF_S: Final = 0.01
MAX_UNDER_WAY: Final = 2


@dataclass(frozen=True, slots=True)
class FetcherParts:
    """The parts of a broker that a fetcher uses."""

    loop: asyncio.AbstractEventLoop
    peers: Peers
    incarnation: BrokerIncarnation
    configs: Configs
    quota: Quota
    """For throttled replicas (follower.replication.throttled.rate)."""
    log: LogLines


class _Followed:
    """One partition that is fetched from its leader."""

    __slots__ = ("asked", "asked_in", "backoff_s", "is_paused", "partition", "waking")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.asked: NextFetch | None = None
        """The position in the fetch session; None while the session does not have it."""
        self.asked_in = 0
        """The number of the request that sent it."""
        self.is_paused = False
        self.waking: asyncio.TimerHandle | None = None
        """Resumes the partition after its pause."""
        self.backoff_s = FIRST_BACKOFF_S


class Fetcher:
    """Copies from one leader."""

    def __init__(self, parts: FetcherParts, leader: BrokerId) -> None:
        self._parts = parts
        self._leader = leader
        self._followed: dict[Partition, _Followed] = {}
        self._by_id: dict[tuple[bytes, int], _Followed] = {}
        self._changed: dict[_Followed, None] = {}
        """Partitions whose next fetch position the leader does not have."""
        self._forgotten: dict[tuple[bytes, int], None] = {}
        """Partitions to remove from the session."""
        self._session_id = 0
        self._session_epoch = 0
        self._under_way = 0
        self._requests = 0
        self._is_queued = False
        self._backoff_s = FIRST_BACKOFF_S

    def add(self, partition: Partition) -> None:
        """Fetch this partition too; called again when its role has changed."""
        followed = self._followed.get(partition)
        if followed is None:
            followed = self._followed[partition] = _Followed(partition)
            self._by_id[partition.topic_id, partition.name.partition] = followed
        followed.backoff_s = FIRST_BACKOFF_S
        followed.is_paused = False
        self._changed[followed] = None
        self._queue()

    def ask_again(self, partition: Partition) -> None:
        """Its position has changed. A paused partition stays paused and uses it later."""
        followed = self._followed.get(partition)
        if followed is not None and not followed.is_paused:
            self._changed[followed] = None
            self._queue()

    def remove(self, partition: Partition) -> None:
        """Stop fetching it."""
        followed = self._followed.pop(partition, None)
        if followed is not None:
            key = (partition.topic_id, partition.name.partition)
            self._by_id.pop(key, None)
            self._changed.pop(followed, None)
            if followed.asked is not None:
                self._forgotten[key] = None
            self._queue()

    # Requests.

    def _queue(self) -> None:
        """Send a request when this tick is over: more may change in it."""
        if not self._is_queued:
            self._is_queued = True
            self._parts.loop.call_soon(self._ask)

    def _ask(self) -> None:
        self._is_queued = False
        peers = self._parts.peers
        if not self._followed and not self._session_id:
            return
        has_changes = bool(self._changed or self._forgotten)
        may_overtake = has_changes and self._session_id
        if self._under_way >= (MAX_UNDER_WAY if may_overtake else 1):
            return
        if not peers.knows(self._leader):
            self._parts.loop.call_later(self._backoff_s, self._queue)
            return
        request = self._request()
        if not request.topics and not self._followed:
            return
        self._under_way += 1
        number = self._requests
        peers.to(self._leader, FETCH).send(
            request, FETCH_VERSION, lambda response: self._answered(response, number)
        )

    def _request(self) -> FetchRequest:
        settings = self._parts.configs.settings
        self._requests += 1
        named = self._changed if self._session_epoch else dict.fromkeys(self._followed.values())
        topics: dict[bytes, list[FetchPartition]] = {}
        for followed in tuple(named):
            self._isolated(followed, partial(self._name, followed, topics))
        # A follower that flushes every append fetches again after its flush (`ask_again`).
        self._changed = {}
        forgotten: dict[bytes, list[int]] = {}
        for topic_id, index in self._forgotten if self._session_epoch else ():
            forgotten.setdefault(topic_id, []).append(index)
        self._forgotten = {}
        request = FetchRequest(
            replica_state=FetchReplicaState(
                replica_id=settings.node_id, replica_epoch=self._parts.incarnation.broker_epoch
            ),
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=[FetchTopic(topic_id=one, partitions=asked) for one, asked in topics.items()],
            forgotten_topics_data=[
                FetchForgottenTopic(topic_id=one, partitions=indexes)
                for one, indexes in forgotten.items()
            ],
        )
        if self._session_id:
            self._session_epoch += 1
        return request

    def _name(self, followed: _Followed, topics: dict[bytes, list[FetchPartition]]) -> None:
        """Name one partition in the next request, unless it must not be fetched now."""
        partition = followed.partition
        asked = None if followed.is_paused else partition.replica.next_fetch()
        if asked is None or asked.leader != self._leader:
            return
        if wait_s := self._throttled_s(partition):
            self._pause(followed, wait_s)
            return
        if asked != followed.asked:
            # The request is for the same position, so an earlier answer is as good. Otherwise a
            # follower on a slow link that receives one ISR change after the other would discard
            # every answer and request it again.
            followed.asked_in = self._requests
        followed.asked = asked
        index = partition.name.partition
        self._forgotten.pop((partition.topic_id, index), None)
        topics.setdefault(partition.topic_id, []).append(
            FetchPartition(
                partition=index,
                current_leader_epoch=asked.current_leader_epoch,
                fetch_offset=asked.fetch_offset,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=partition.log.log_start_offset,
                partition_max_bytes=self._parts.configs.settings.replica_fetch_max_bytes,
            )
        )

    # Failures of one partition.

    def _isolated(self, followed: _Followed, work: Callable[[], None]) -> None:
        """Run a step for one partition. An exception affects this partition only: it is paused,
        reported once, and tried again.
        """
        try:
            work()
        except Exception as error:  # noqa: BLE001  # also a bug must not stop the others
            self._set_aside(followed, error)

    def _set_aside(self, followed: _Followed, error: Exception) -> None:
        partition, problem = followed.partition, f"{type(error).__name__}: {error}"
        if problem != partition.copy_problem:
            log, event = self._parts.log, "a partition cannot be copied; it is tried again"
            where = {"partition": str(partition.name), "leader": self._leader}
            if isinstance(error, MalformedBatchError):
                log.error(event, **where, error=problem)
            else:
                log.bug(event, error, **where)
        partition.copy_problem = problem
        self._pause(followed)

    # Responses.

    def _answered(self, response: Response | None, number: int) -> None:
        self._under_way -= 1
        if not isinstance(response, FetchResponse) or response.error_code:
            self._restart_session()
            return
        self._backoff_s = FIRST_BACKOFF_S
        if not self._session_epoch and response.session_id:
            self._session_id, self._session_epoch = response.session_id, 1
        for topic in response.responses:
            for data in topic.partitions:
                followed = self._by_id.get((topic.topic_id, data.partition_index))
                # An answer to an earlier request does not answer a later one.
                if followed is not None and followed.asked_in <= number and followed.asked:
                    self._isolated(followed, partial(self._take, followed, followed.asked, data))
        self._ask()

    def _restart_session(self) -> None:
        """The session is gone: the next request opens another and names every partition."""
        self._session_id = self._session_epoch = 0
        self._forgotten = {}
        for followed in self._followed.values():
            followed.asked = None
            self._changed[followed] = None
        self._parts.loop.call_later(self._backoff_s, self._queue)
        self._backoff_s = min(2 * self._backoff_s, self._longest_backoff_s())

    def _longest_backoff_s(self) -> float:
        return self._parts.configs.settings.replica_fetch_backoff_ms / 1000

    def _take(self, followed: _Followed, asked: NextFetch, data: FetchPartitionData) -> None:
        """Handle one partition's part of a response."""
        partition = followed.partition
        replica = partition.replica
        self._changed[followed] = None
        if not replica.accepts_answer(asked):
            return
        if data.error_code:
            self._pause(followed)
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._ask_bounds(followed, asked)
            return
        if data.diverging_epoch is not None:
            end = EpochEnd(
                LeaderEpoch(data.diverging_epoch.epoch), Offset(data.diverging_epoch.end_offset)
            )
            partition.run(replica.diverged(end))
            return
        self._copy(followed, data)

    def _copy(self, followed: _Followed, data: FetchPartitionData) -> None:
        partition = followed.partition
        records = memoryview(data.records or b"")
        headers, size = _checked(records)
        before = (partition.replica.log.log_end_offset, partition.log.log_start_offset)
        if not partition.copy(records[:size], headers, data.high_watermark):
            self.remove(partition)
            return
        if data.log_start_offset > partition.log.log_start_offset:
            partition.advance_start_to(data.log_start_offset)
        followed.backoff_s = FIRST_BACKOFF_S
        partition.copy_problem = ""
        if size and is_throttled(partition, partition.replica.broker, at_leader=False):
            self._parts.quota.spend(size)
            if wait_s := self._throttled_s(partition):
                self._pause(followed, wait_s)
                return
        if (partition.replica.log.log_end_offset, partition.log.log_start_offset) == before:
            # Only the high watermark has changed: our request still holds.
            self._changed.pop(followed, None)

    def _pause(self, followed: _Followed, seconds: float | None = None) -> None:
        """Pause a partition: its leader is down, or does not lead it yet."""
        followed.is_paused = True
        self._changed.pop(followed, None)
        name = followed.partition.name
        self._forgotten[followed.partition.topic_id, name.partition] = None
        followed.asked = None
        delay_s = followed.backoff_s if seconds is None else seconds
        self._wake_in(followed, delay_s)
        followed.backoff_s = min(2 * followed.backoff_s, self._longest_backoff_s())

    def _wake_in(self, followed: _Followed, seconds: float) -> None:
        if followed.waking is not None:
            followed.waking.cancel()
        followed.waking = self._parts.loop.call_later(seconds, self._wake, followed)

    def _wake(self, followed: _Followed) -> None:
        if not followed.is_paused or self._followed.get(followed.partition) is not followed:
            return
        if wait_s := self._throttled_s(followed.partition):
            self._wake_in(followed, wait_s)
            return
        followed.is_paused = False
        self._changed[followed] = None
        self._queue()

    def _throttled_s(self, partition: Partition) -> float:
        """How long a throttled partition has to wait before its next fetch."""
        is_slow = is_throttled(partition, partition.replica.broker, at_leader=False)
        return self._parts.quota.wait_s() if is_slow else 0.0

    # Out of range.

    def _ask_bounds(self, followed: _Followed, asked: NextFetch) -> None:
        """Our end is outside the leader's log: ask for its start and end."""

        def found(start: Offset, end: Offset) -> None:
            if followed.partition.replica.accepts_answer(asked):
                self._isolated(followed, partial(self._move_into, followed, start, end))

        partition, leader = followed.partition, self._parts.peers.to(self._leader)
        ask_bounds(leader, partition.replica.broker, partition.name, asked.sent_in_epoch, found)

    def _move_into(self, followed: _Followed, start: Offset, end: Offset) -> None:
        """Move our log into the leader's range."""
        followed.partition.run(followed.partition.replica.out_of_range(start, end))
        self._wake(followed)


def _checked(records: memoryview) -> tuple[list[RecordBatchHeader], int]:
    """The headers of whole batches, and their size; an incomplete last batch is left out."""
    headers: list[RecordBatchHeader] = []
    size = 0
    for batch in batches(records, partial_end=True):
        check_batch(batch)
        headers.append(batch.header)
        size += batch.header.size
    return headers, size
