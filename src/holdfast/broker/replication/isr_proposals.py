"""Sends ISR proposals to the controller until they are answered.

Only a definite answer ends a proposal. Without one, the store may have accepted it.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from holdfast.broker.metadata.controller_channel import ControllerChannel
from holdfast.broker.replication.partition import Partition
from holdfast.core import BrokerIncarnation, Leader
from holdfast.model import BrokerId, ErrorCode, LeaderEpoch, PartitionEpoch, PartitionState
from holdfast.protocol import Response
from holdfast.protocol.messages.control import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)

ALTER_VERSION: Final = 3
RETRY_S: Final = 0.05


class Proposals:
    """The proposals without an answer. One request is in flight at a time."""

    def __init__(
        self,
        broker: BrokerId,
        incarnation: BrokerIncarnation,
        loop: asyncio.AbstractEventLoop,
        controller: ControllerChannel,
    ) -> None:
        self._broker = broker
        self._incarnation = incarnation
        self._loop = loop
        self._controller = controller
        self._open: dict[tuple[bytes, int], Partition] = {}
        self._growth: dict[tuple[bytes, int], int] = {}
        """How much larger the ISR would be by the proposal that was sent last."""
        self._is_under_way = False
        self._timer: asyncio.Handle | None = None
        self.shrinks = self.expands = self.failures = 0
        """Proposals by their outcome."""

    def add(self, partition: Partition) -> None:
        """A partition has a proposal."""
        self._open[partition.topic_id, partition.name.partition] = partition
        self._send_soon(0.0)

    def forget(self, partition: Partition) -> None:
        """The partition has left this broker."""
        key = (partition.topic_id, partition.name.partition)
        self._open.pop(key, None)
        self._growth.pop(key, None)

    def _send_soon(self, delay_s: float) -> None:
        if self._timer is None and not self._is_under_way:
            self._timer = self._loop.call_later(delay_s, self._send)

    def _send(self) -> None:
        self._timer = None
        topics: dict[bytes, list[AlterPartitionRequestPartitionData]] = {}
        for key, partition in tuple(self._open.items()):
            proposal = _proposal_of(partition)
            if proposal is None:
                del self._open[key]
                continue
            self._growth[key] = len(proposal.isr) - len(_isr_of(partition))
            members = [
                BrokerState(broker_id=one.broker, broker_epoch=one.broker_epoch)
                for one in proposal.isr
            ]
            data = AlterPartitionRequestPartitionData(
                partition_index=partition.name.partition,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=members,
                partition_epoch=proposal.partition_epoch,
            )
            topics.setdefault(partition.topic_id, []).append(data)
        if not topics:
            return
        if not self._controller.is_open:
            self._send_soon(RETRY_S)
            return
        request = AlterPartitionRequest(
            broker_id=self._broker,
            broker_epoch=self._incarnation.broker_epoch,
            topics=[
                AlterPartitionRequestTopicData(topic_id=identity, partitions=partitions)
                for identity, partitions in topics.items()
            ],
        )
        self._is_under_way = True
        self._controller.send(request, ALTER_VERSION, self._answered)

    def _answered(self, response: Response | None) -> None:
        self._is_under_way = False
        if isinstance(response, AlterPartitionResponse) and not response.error_code:
            for topic in response.topics:
                for data in topic.partitions:
                    self._partition_answered(topic.topic_id, data)
        if self._open:
            self._send_soon(RETRY_S)

    def _partition_answered(
        self, topic_id: bytes, data: AlterPartitionResponsePartitionData
    ) -> None:
        partition = self._open.get((topic_id, data.partition_index))
        if partition is None:
            return
        error = ErrorCode(data.error_code)
        if error in _ASK_AGAIN:
            return
        known = partition.state
        state: PartitionState | None = None
        if known is not None and data.leader_epoch == known.leader_epoch and data.isr:
            state = known._replace(
                leader=BrokerId(data.leader_id),
                leader_epoch=LeaderEpoch(data.leader_epoch),
                isr=tuple(map(BrokerId, data.isr)),
                partition_epoch=PartitionEpoch(data.partition_epoch),
            )
        self._count((topic_id, data.partition_index), error)
        partition.isr_answered(error, state)
        if _proposal_of(partition) is None:
            self.forget(partition)

    def _count(self, key: tuple[bytes, int], error: ErrorCode) -> None:
        """The new state may have come before this answer, and the proposal may be gone."""
        if error:
            self.failures += 1
        elif self._growth.pop(key, 0) < 0:
            self.shrinks += 1
        else:
            self.expands += 1


_ASK_AGAIN: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR)


def _isr_of(partition: Partition) -> tuple[BrokerId, ...]:
    role = partition.replica.role
    return role.insync.isr if isinstance(role, Leader) else ()


def _proposal_of(partition: Partition) -> Any:
    role = partition.replica.role
    return role.insync.proposal if isinstance(role, Leader) else None
