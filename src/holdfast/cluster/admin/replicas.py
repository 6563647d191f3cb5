"""How far each replica is: asks its broker, as only the small client can.

Followers answer Kafka's "debugging replica" as well: ListOffsets with the log end offset, and a
Fetch from there with no record, but with the high watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.cluster.client.client import Client
from holdfast.cluster.client.records import BY_NAME
from holdfast.cluster.errors import ClusterError
from holdfast.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from holdfast.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

DEBUGGING_REPLICA: Final = -2
LATEST: Final = -1
LEAST_BYTES: Final = 1

Place = tuple[str, int]
Replica = dict[str, Any]


def replicas_of(
    client: Client, wanted: Mapping[int, Iterable[Place]]
) -> dict[tuple[int, str, int], Replica]:
    """Offsets of replicas by (broker, topic, partition); what a broker does not tell is missing."""
    found: dict[tuple[int, str, int], Replica] = {}
    for broker, places in wanted.items():
        try:
            ends = _ends(client, broker, list(places))
            watermarks = _watermarks(client, broker, ends)
        except ClusterError:
            continue
        for (topic, partition), end in ends.items():
            start, watermark = watermarks.get((topic, partition), (None, None))
            found[broker, topic, partition] = {
                "log_start_offset": start,
                "high_watermark": watermark,
                "log_end_offset": end,
            }
    return found


def _by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    return topics


def _ends(client: Client, broker: int, places: list[Place]) -> dict[Place, int]:
    topics = [
        ListOffsetsTopic(
            name=topic,
            partitions=[
                ListOffsetsPartition(partition_index=one, timestamp=LATEST) for one in partitions
            ],
        )
        for topic, partitions in _by_topic(places).items()
    ]
    request = ListOffsetsRequest(replica_id=DEBUGGING_REPLICA, topics=topics)
    answer = client.ask(broker, request, ListOffsetsResponse)
    return {
        (topic.name, one.partition_index): one.offset
        for topic in answer.topics
        for one in topic.partitions
        if not one.error_code
    }


def _watermarks(
    client: Client, broker: int, ends: Mapping[Place, int]
) -> dict[Place, tuple[int, int]]:
    """Log start offset and high watermark."""
    topics = [
        FetchTopic(
            topic=topic,
            partitions=[
                FetchPartition(
                    partition=one,
                    fetch_offset=ends[topic, one],
                    partition_max_bytes=LEAST_BYTES,
                )
                for one in partitions
            ],
        )
        for topic, partitions in _by_topic(ends).items()
    ]
    request = FetchRequest(
        replica_id=DEBUGGING_REPLICA, max_wait_ms=0, min_bytes=0, max_bytes=1, topics=topics
    )
    answer = client.ask(broker, request, FetchResponse, most=BY_NAME)
    return {
        (topic.topic, one.partition_index): (one.log_start_offset, one.high_watermark)
        for topic in answer.responses
        for one in topic.partitions
        if not one.error_code
    }
