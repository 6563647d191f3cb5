"""Topics of a cluster: list, describe, create, alter, delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka.admin import NewPartitions, NewTopic  # type: ignore[attr-defined]

from holdfast.broker.metadata.store_nodes import topic_id_text
from holdfast.cluster.admin.configs import set_values, values_of_topics
from holdfast.cluster.admin.connection import REQUEST_S, Connection
from holdfast.cluster.admin.errors import RefusedError, answers
from holdfast.cluster.admin.replicas import Place, replicas_of
from holdfast.cluster.client.client import Client
from holdfast.model import ErrorCode
from holdfast.protocol.messages.metadata import (
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsTopicRequest,
)

_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")


def list_topics(connection: Connection) -> list[dict[str, Any]]:
    """One row for each topic, sorted by name."""
    rows = []
    for name, topic in sorted(connection.metadata().topics.items()):
        partitions = topic.partitions.values()
        rows.append(
            {
                "topic": name,
                "is_internal": name in _INTERNAL,
                "partitions": len(partitions),
                "replication_factor": min((len(one.replicas) for one in partitions), default=0),
                "under_replicated": sum(len(one.isrs) < len(one.replicas) for one in partitions),
                "offline": sum(one.leader < 0 for one in partitions),
            }
        )
    return rows


def known(connection: Connection, wanted: Sequence[str]) -> list[str]:
    """The topics, all if none is named. RefusedError names those that do not exist."""
    names = connection.metadata().topics
    missing = [name for name in wanted if name not in names]
    if missing:
        raise RefusedError(f"no topic {', '.join(missing)} at {connection.bootstrap}")
    return list(dict.fromkeys(wanted)) or sorted(names)


def describe_topics(connection: Connection, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Partitions with their leaders, epochs, replicas, ISR, ELR and offsets, and what is set."""
    names = known(connection, wanted)
    client = connection.client()
    if client is None:
        topics = _from_metadata(connection, names)
    else:
        with client:
            topics = _from_partitions(client, names)
            _add_offsets(client, topics)
    configs = values_of_topics(connection, names)
    for topic in topics:
        topic["config"] = configs[topic["topic"]]
    return topics


def _from_metadata(connection: Connection, names: Iterable[str]) -> list[dict[str, Any]]:
    """What librdkafka returns: no epochs and no ELR."""
    topics = connection.metadata().topics
    return [
        {
            "topic": name,
            "topic_id": None,
            "partitions": [
                _partition(one.id, one.leader, None, one.replicas, one.isrs, None, None)
                for _, one in sorted(topics[name].partitions.items())
            ],
        }
        for name in names
    ]


def _from_partitions(client: Client, names: Sequence[str]) -> list[dict[str, Any]]:
    """Page by page; every page moves the cursor on, or is the last one."""
    topics: dict[str, dict[str, Any]] = {}
    cursor: DescribeTopicPartitionsCursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsTopicRequest(name=name) for name in names],
            cursor=cursor,
        )
        answer = client.ask_any(request, DescribeTopicPartitionsResponse)
        for found in answer.topics:
            name = found.name or ""
            if found.error_code:
                raise RefusedError(f"describe {name}: {ErrorCode(found.error_code).name}")
            start = {"topic": name, "topic_id": topic_id_text(found.topic_id), "partitions": []}
            topics.setdefault(name, start)["partitions"] += map(_described, found.partitions)
        cursor = answer.next_cursor
        if cursor is None:
            return [topics[name] for name in names]


def _described(one: DescribeTopicPartitionsResponsePartition) -> dict[str, Any]:
    return _partition(
        one.partition_index,
        one.leader_id,
        one.leader_epoch,
        one.replica_nodes,
        one.isr_nodes,
        one.eligible_leader_replicas,
        one.last_known_elr,
    )


def _partition(
    index: int,
    leader: int,
    epoch: int | None,
    replicas: Iterable[int],
    isr: Iterable[int],
    elr: Iterable[int] | None,
    last_known_elr: Iterable[int] | None,
) -> dict[str, Any]:
    return {
        "partition": index,
        "leader": None if leader < 0 else leader,
        "leader_epoch": epoch,
        "isr": list(isr),
        "elr": None if elr is None else list(elr),
        "last_known_elr": None if last_known_elr is None else list(last_known_elr),
        "replicas": [
            {
                "broker": broker,
                "log_start_offset": None,
                "high_watermark": None,
                "log_end_offset": None,
            }
            for broker in replicas
        ],
    }


def _add_offsets(client: Client, topics: Iterable[dict[str, Any]]) -> None:
    wanted: dict[int, list[Place]] = {}
    replicas = [
        (topic["topic"], partition["partition"], replica)
        for topic in topics
        for partition in topic["partitions"]
        for replica in partition["replicas"]
    ]
    for name, index, replica in replicas:
        wanted.setdefault(replica["broker"], []).append((name, index))
    found = replicas_of(client, wanted)
    for name, index, replica in replicas:
        replica.update(found.get((replica["broker"], name, index), {}))


def create_topic(
    connection: Connection,
    topic: str,
    *,
    partitions: int,
    replication_factor: int,
    config: Mapping[str, str],
    is_dry_run: bool,
) -> None:
    """-1: the cluster's default. RefusedError says why not."""
    new = NewTopic(topic, partitions, replication_factor, config=dict(config))
    futures = connection.admin.create_topics(
        [new], request_timeout=REQUEST_S, validate_only=is_dry_run
    )
    answers(futures, "create {}".format)


def add_partitions(connection: Connection, topic: str, total: int) -> None:
    """Kafka never removes partitions."""
    futures = connection.admin.create_partitions(
        [NewPartitions(topic, total)], request_timeout=REQUEST_S
    )
    answers(futures, "alter {}".format)


def alter_config(
    connection: Connection, topic: str, values: Mapping[str, str], deleted: Iterable[str]
) -> None:
    """Set some settings and remove others."""
    set_values(connection, "topic", topic, values, deleted)


def delete_topics(connection: Connection, topics: Sequence[str]) -> None:
    """RefusedError names each topic that could not be deleted."""
    futures = connection.admin.delete_topics(list(topics), request_timeout=REQUEST_S)
    answers(futures, "delete {}".format)
