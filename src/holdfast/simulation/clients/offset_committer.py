"""A client that commits offsets for some groups in turn, and remembers the acknowledgements.

Each commit is higher than the one before, and one is in flight at a time. So the offset that a
group has at the end is at least the last that was acknowledged, and at most the last that was sent,
whatever happens to the coordinator. Commits of other groups lie between two commits of a group, so
its last one is in a segment that the cleaner rewrites.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from holdfast.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from holdfast.simulation.clients.connection import FAILURES, Client, RefusedError, check
from holdfast.simulation.traffic_pace import Pace

GROUPS: Final = tuple(f"readers-{number}" for number in range(6))
FIND_VERSION: Final = 3
COMMIT_VERSION: Final = 8
FETCH_VERSION: Final = 7
PAUSE_S: Final = 0.3


class Committer:
    """Commits offsets of one partition; never stops."""

    def __init__(self, client: Client, partition: TopicPartition) -> None:
        self._client = client
        self._partition = partition
        self._count = 0
        self.sent = dict.fromkeys(GROUPS, 0)
        self.acknowledged = dict.fromkeys(GROUPS, 0)
        self.is_paused = False

    async def run(self, pace: Pace) -> None:
        """Commit now and then until `is_paused`."""
        while not self.is_paused:
            # A failed commit may or may not have been written; the next one is higher.
            with contextlib.suppress(*FAILURES):
                await self._commit()
            await asyncio.sleep(pace.request_s(self._client.loop.time(), PAUSE_S))

    async def _coordinator(self, group: str) -> int:
        request = FindCoordinatorRequest(key=group)
        broker = self._client.any_broker()
        answer = await self._client.ask(broker, request, FIND_VERSION, FindCoordinatorResponse)
        check(answer.error_code)
        return answer.node_id

    async def _commit(self) -> None:
        group = GROUPS[self._count % len(GROUPS)]
        coordinator = await self._coordinator(group)
        self._count += 1
        number = self.sent[group] = self._count
        asked = OffsetCommitRequestPartition(
            partition_index=self._partition.partition,
            committed_offset=number,
            committed_metadata=None,
        )
        topic = OffsetCommitRequestTopic(name=self._partition.topic, partitions=[asked])
        request = OffsetCommitRequest(group_id=group, member_id="", topics=[topic])
        client = self._client
        answer = await client.ask(coordinator, request, COMMIT_VERSION, OffsetCommitResponse)
        check(answer.topics[0].partitions[0].error_code)
        self.acknowledged[group] = number

    async def committed(self, group: str) -> int:
        """The committed offset of a group, as soon as a coordinator answers."""
        topic = OffsetFetchRequestTopic(
            name=self._partition.topic, partition_indexes=[self._partition.partition]
        )
        request = OffsetFetchRequest(group_id=group, topics=[topic])
        while True:
            try:
                coordinator = await self._coordinator(group)
                client = self._client
                answer = await client.ask(coordinator, request, FETCH_VERSION, OffsetFetchResponse)
                check(answer.error_code)
                [position] = answer.topics[0].partitions
                check(position.error_code)
            except FAILURES as error:
                if isinstance(error, RefusedError) and error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                    return 0
                await asyncio.sleep(PAUSE_S)
                continue
            return max(0, position.committed_offset)
