"""Asks a leader where the newest leader epochs of its log begin (OffsetForLeaderEpoch)."""

from __future__ import annotations

from typing import Final

from holdfast.cluster.client.client import Client
from holdfast.protocol.messages.offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from holdfast.web.console.reading.observation import PartitionFacts

MOST_EPOCHS: Final = 5
_SHOWN: Final = 30
"""A picture shows no more records than this."""


def newest_epochs(client: Client, partition: PartitionFacts) -> tuple[tuple[int, int], ...]:
    """Epochs with their first offsets, newest first. ClusterError if the leader cannot be asked."""
    epochs = []
    epoch = partition.leader_epoch
    for _ in range(MOST_EPOCHS):
        earlier, start = _end_of(client, partition, epoch - 1)
        epochs.append((epoch, max(0, start)))
        if earlier < 0 or start <= (partition.end or 0) - _SHOWN:
            break
        epoch = earlier
    return tuple(epochs)


def _end_of(client: Client, partition: PartitionFacts, epoch: int) -> tuple[int, int]:
    """The largest epoch up to this one, and the offset after its last record; -1 if none."""
    if epoch < 0:
        return -1, -1
    asked = OffsetForLeaderPartition(
        partition=partition.index,
        current_leader_epoch=partition.leader_epoch,
        leader_epoch=epoch,
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=partition.topic, partitions=[asked])]
    )
    answer = client.ask_any(request, OffsetForLeaderEpochResponse)
    [found] = answer.topics[0].partitions
    return found.leader_epoch, found.end_offset
