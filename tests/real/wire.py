"""Single requests of scenarios, as a client of a chosen version and behaviour sends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.cluster import Client, KafkaError
from holdfast.cluster.client.admin import elect_leader
from holdfast.cluster.client.admin import reassign as begin_reassignment
from holdfast.cluster.client.client import Connection
from holdfast.model import ErrorCode
from holdfast.protocol.messages.configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
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
from holdfast.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from holdfast.protocol.records import BatchOptions, NewRecord, batches, build_batch, read_records

BY_NAME: Final = 12
FETCH_BYTES: Final = 1 << 20
LATEST: Final = -1
TOPIC_RESOURCE: Final = 2
SET: Final = 0


def batch(labels: Sequence[str], options: BatchOptions | None = None) -> bytes:
    """Records whose values are their labels."""
    records = [NewRecord(label.encode()) for label in labels]
    return bytes(build_batch(records) if options is None else build_batch(records, options))


def producer_id(connection: Connection) -> tuple[int, int]:
    """A new producer's id and epoch."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    answer = connection.send(request, connection.version_of(InitProducerIdRequest))
    assert isinstance(answer, InitProducerIdResponse)
    assert not answer.error_code
    return answer.producer_id, answer.producer_epoch


def produce(
    connection: Connection, topic: str, records: bytes, acks: int, timeout_ms: int
) -> tuple[ErrorCode, int]:
    """Send a batch; returns the error and the first offset. acks=0 has no answer."""
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    version = connection.version_of(ProduceRequest, BY_NAME)
    if not acks:
        connection.send(request, version, has_answer=False)
        return ErrorCode.NONE, -1
    answer = connection.send(request, version)
    assert isinstance(answer, ProduceResponse)
    [result] = answer.responses[0].partition_responses
    return ErrorCode(result.error_code), result.base_offset


def fetch(
    connection: Connection,
    topic: str,
    offset: int,
    *,
    last_epoch: int = -1,
    wait_ms: int = 0,
) -> FetchPartitionData:
    """This broker's answer to a consumer's fetch at an offset."""
    asked = FetchPartition(
        partition=0,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=FETCH_BYTES,
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
    answer = connection.send(request, connection.version_of(FetchRequest, BY_NAME))
    assert isinstance(answer, FetchResponse)
    [data] = answer.responses[0].partitions
    return data


def labels_of(data: FetchPartitionData) -> list[str]:
    """The records of an answer."""
    return [
        str(record.value, "utf-8")
        for one in batches(data.records or b"", partial_end=True)
        for record in read_records(one)
        if record.value is not None
    ]


def latest(connection: Connection, topic: str) -> tuple[ErrorCode, int]:
    """The latest offset that a consumer may read."""
    asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
    )
    answer = connection.send(request, connection.version_of(ListOffsetsRequest))
    assert isinstance(answer, ListOffsetsResponse)
    [result] = answer.topics[0].partitions
    return ErrorCode(result.error_code), result.offset


def reassign(client: Client, topic: str, replicas: Sequence[int]) -> None:
    """Reassign the partition to these replicas, in this order."""
    begin_reassignment(client, topic, 0, replicas)


def elect_preferred(client: Client, topic: str, timeout_ms: int) -> None:
    """Elect the preferred leader; it may lead already."""
    try:
        elect_leader(client, topic, 0, unclean=False, timeout_ms=timeout_ms)
    except KafkaError as error:
        if error.code is not ErrorCode.ELECTION_NOT_NEEDED:
            raise


def alter_topic(client: Client, topic: str, name: str, value: str) -> None:
    """Change one setting of a topic."""
    config = IncrementalAlterConfigsAlterableConfig(name=name, config_operation=SET, value=value)
    resource = IncrementalAlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    [result] = client.ask_controller(request, IncrementalAlterConfigsResponse).responses
    assert not result.error_code, result.error_message
