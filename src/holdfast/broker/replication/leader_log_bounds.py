"""Asks a leader for its log's start and end, for a follower whose own end lies outside them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from holdfast.broker.network.peer_connection import Peer
from holdfast.model import BrokerId, LeaderEpoch, Offset, TopicPartition
from holdfast.protocol import Response
from holdfast.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LIST_OFFSETS_VERSION: Final = 7
EARLIEST: Final = -2
LATEST: Final = -1


def ask_bounds(
    leader: Peer,
    follower: BrokerId,
    name: TopicPartition,
    epoch: LeaderEpoch,
    found: Callable[[Offset, Offset], None],
) -> None:
    """Ask for both; `found` is called after both answers, and not if one is refused."""
    bounds: dict[int, int] = {}

    def answered(which: int, response: Response | None) -> None:
        if not isinstance(response, ListOffsetsResponse):
            return
        for topic in response.topics:
            for one in topic.partitions:
                if not one.error_code:
                    bounds[which] = one.offset
        if len(bounds) == 2:
            found(Offset(bounds[EARLIEST]), Offset(bounds[LATEST]))

    for which in (EARLIEST, LATEST):
        partition = ListOffsetsPartition(
            partition_index=name.partition, current_leader_epoch=epoch, timestamp=which
        )
        request = ListOffsetsRequest(
            replica_id=follower,
            isolation_level=0,
            topics=[ListOffsetsTopic(name=name.topic, partitions=[partition])],
        )
        leader.send(request, LIST_OFFSETS_VERSION, partial(answered, which))
