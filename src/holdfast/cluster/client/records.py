"""Sending and reading records with the small client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from holdfast.cluster.client.client import Client, KafkaError, check
from holdfast.cluster.client.retries import MOVED, NOT_KNOWN_YET, retried
from holdfast.model import ErrorCode
from holdfast.protocol.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
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
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from holdfast.protocol.records import NewRecord, batches, build_batch, check_batch, read_records
from holdfast.protocol.records.batch_header import CONTROL

BY_NAME: Final = 12
"""The newest version of Produce and Fetch that names topics, not their ids."""
FETCH_BYTES: Final = 8 * 1024 * 1024
EARLIEST: Final = -2
LATEST: Final = -1


class Kept(NamedTuple):
    """A record as a broker returned it."""

    offset: int
    key: bytes | None
    value: bytes | None


def produce(
    client: Client,
    topic: str,
    partition: int,
    records: Sequence[NewRecord],
    *,
    acks: int,
    timeout_s: float,
) -> int:
    """Send one batch to the leader; its first offset. KafkaError if it is refused."""
    leader = leader_of(client, topic, partition)
    data = PartitionProduceData(index=partition, records=build_batch(records))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=int(timeout_s * 1000),
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    if acks == 0:
        client.send_unanswered(leader, request, most=BY_NAME)
        return -1
    answer = client.ask(leader, request, ProduceResponse, most=BY_NAME)
    [partition_response] = answer.responses[0].partition_responses
    what = f"produce to {topic}-{partition}"
    check(what, partition_response.error_code, partition_response.error_message)
    return partition_response.base_offset


def leader_of(client: Client, topic: str, partition: int) -> int:
    """The leader in the newest leader epoch that any broker reports; KafkaError if there is none.

    A broker that was disconnected or paused reports an old one for a moment.
    """
    newest = client.newest_partition(topic, partition)
    if newest.leader_id < 0:
        raise KafkaError(f"{topic}-{partition}", ErrorCode.LEADER_NOT_AVAILABLE)
    return newest.leader_id


def produce_patiently(
    client: Client,
    topic: str,
    partition: int,
    records: Sequence[NewRecord],
    acks: int,
    timeout_s: float,
) -> int:
    """Repeat while the leader moves; never after an error that may have appended the records."""

    def send() -> int:
        return produce(client, topic, partition, records, acks=acks, timeout_s=timeout_s)

    return retried(send, timeout_s, codes=MOVED, repeatable=False)


def fetch(
    client: Client, topic: str, partition: int, offset: int, *, broker: int | None = None
) -> FetchPartitionData:
    """Records from an offset on, from the leader or a named broker; KafkaError if it refuses."""
    asked = FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES
    )
    request = FetchRequest(
        max_wait_ms=100, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[asked])]
    )
    whom = leader_of(client, topic, partition) if broker is None else broker
    answer = client.ask(whom, request, FetchResponse, most=BY_NAME)
    check(f"fetch from {topic}-{partition}", answer.error_code)
    [data] = answer.responses[0].partitions
    check(f"fetch from {topic}-{partition}", data.error_code)
    return data


def list_offset(client: Client, topic: str, partition: int, timestamp: int) -> int:
    """The earliest (-2) or latest (-1) offset a consumer could read."""
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
    )
    leader = leader_of(client, topic, partition)
    answer = client.ask(leader, request, ListOffsetsResponse)
    [partition_response] = answer.topics[0].partitions
    check(f"offsets of {topic}-{partition}", partition_response.error_code)
    return partition_response.offset


class Span(NamedTuple):
    """The offsets that a consumer can read."""

    start: int
    end: int


def span_of(client: Client, topic: str, partition: int, timeout_s: float) -> Span:
    """Wait for a leader that can answer: a new leader waits for its followers first."""

    def ask(timestamp: int) -> int:
        return retried(
            lambda: list_offset(client, topic, partition, timestamp), timeout_s, codes=NOT_KNOWN_YET
        )

    end = ask(LATEST)
    return Span(ask(EARLIEST), end)


def read_all(
    client: Client, topic: str, partition: int, span: Span, timeout_s: float
) -> Iterator[Kept]:
    """Every record of a span; `timeout_s`: how long to wait for the next ones."""
    offset, end = span
    while offset < end:  # Each round makes progress, or raises.
        data = _next_data(client, topic, partition, Span(offset, end), timeout_s)
        before = offset
        for batch in batches(data.records or b"", partial_end=True):
            check_batch(batch)
            if not batch.header.attributes & CONTROL:
                for record in read_records(batch):
                    if record.offset >= offset:
                        yield Kept(record.offset, _bytes(record.key), _bytes(record.value))
            offset = max(offset, batch.header.end_offset)
        if offset == before:
            return  # the rest is empty: a compacted tail


def _next_data(
    client: Client, topic: str, partition: int, span: Span, timeout_s: float
) -> FetchPartitionData:
    """Batches with records, unless the leader serves everything to the end and there are none."""

    def ask() -> FetchPartitionData:
        data = fetch(client, topic, partition, span.start)
        if not data.records and data.high_watermark < span.end:
            # A new leader's high watermark may trail its predecessor's until its followers fetch.
            raise KafkaError(f"{topic}-{partition}", ErrorCode.OFFSET_NOT_AVAILABLE)
        return data

    return retried(ask, timeout_s, codes=NOT_KNOWN_YET)


def _bytes(view: memoryview | None) -> bytes | None:
    return None if view is None else bytes(view)
