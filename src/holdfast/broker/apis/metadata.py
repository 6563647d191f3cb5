"""Metadata: brokers, topics and leaders. A request may create a topic that does not exist."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from holdfast.broker.authorized_operations import NOT_ASKED, OF_CLUSTER, OF_TOPIC
from holdfast.broker.metadata.metadata_cache import KnownTopic
from holdfast.broker.metadata.topic_names import INTERNAL_TOPICS, invalid_name_reason
from holdfast.broker.network.calls import Call
from holdfast.model import ErrorCode
from holdfast.protocol import ZERO_UUID
from holdfast.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from holdfast.broker.node import Broker


BY_ID_FROM: Final = 12
PATIENCE_S: Final = 5.0
PAUSE_S: Final = 0.02


def handle(broker: Broker, call: Call) -> None:
    """Answer from the last UpdateMetadata.

    The answer waits for the first UpdateMetadata: a client that received no controller would not
    refresh its metadata for a long time.
    """
    if broker.metadata.controller is None:
        broker.tasks.answer_by(call, _after_first_update(broker, call))
    else:
        call.answer(_response(broker, call))


async def _after_first_update(broker: Broker, call: Call) -> MetadataResponse:
    until_s = broker.loop.time() + PATIENCE_S
    # Polling is enough: the wait is short, and happens once after a start.
    while broker.metadata.controller is None and broker.loop.time() < until_s:  # noqa: ASYNC110
        await asyncio.sleep(PAUSE_S)
    return _response(broker, call)


def _response(broker: Broker, call: Call) -> MetadataResponse:
    request = call.request
    assert isinstance(request, MetadataRequest)
    known = broker.metadata
    wanted = request.topics
    if wanted is None or (call.version == 0 and not wanted):
        topics = [_described(topic) for topic in known.topics.values()]
    elif call.version < BY_ID_FROM and any(map(_is_by_id, wanted)):
        # They have a field for an id, but an answer needs a name.
        topics = [_unknown(one.name or "", ErrorCode.INVALID_REQUEST) for one in wanted]
    else:
        topics = _named(broker, wanted, may_create=request.allow_auto_topic_creation)
    brokers = [
        MetadataResponseBroker(
            node_id=one.id, host=one.endpoint.host, port=one.endpoint.port, rack=one.rack
        )
        for one in known.brokers.values()
    ]
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = OF_TOPIC
    is_asked = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=brokers,
        cluster_id=known.cluster_id,
        controller_id=known.controller if known.controller is not None else -1,
        topics=topics,
        cluster_authorized_operations=OF_CLUSTER if is_asked else NOT_ASKED,
    )


def _is_by_id(topic: MetadataRequestTopic) -> bool:
    return topic.name is None or topic.topic_id != ZERO_UUID


def _named(
    broker: Broker, wanted: Iterable[MetadataRequestTopic], *, may_create: bool
) -> list[MetadataResponseTopic]:
    described: list[MetadataResponseTopic] = []
    missing: list[str] = []
    for one in wanted:
        if one.topic_id != ZERO_UUID:
            topic = broker.metadata.topic(one.topic_id)
            described.append(
                _described(topic)
                if topic is not None
                else _unknown(None, ErrorCode.UNKNOWN_TOPIC_ID, one.topic_id)
            )
            continue
        name = one.name or ""
        topic = broker.metadata.topic(name)
        if topic is not None:
            described.append(_described(topic))
            continue
        if invalid_name_reason(name):
            described.append(_unknown(name, ErrorCode.INVALID_TOPIC_EXCEPTION))
        elif may_create and broker.settings.auto_create_topics_enable:
            missing.append(name)
            described.append(_unknown(name, ErrorCode.LEADER_NOT_AVAILABLE))
        else:
            described.append(_unknown(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    if missing:
        broker.auto_creation.create(missing)
    return described


def _unknown(
    name: str | None, error: ErrorCode, topic_id: bytes = ZERO_UUID
) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, partitions=[])


def _described(topic: KnownTopic) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(
            error_code=0 if one.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=index,
            leader_id=one.leader,
            leader_epoch=one.leader_epoch,
            replica_nodes=one.replicas,
            isr_nodes=one.isr,
            offline_replicas=one.offline,
        )
        for index, one in topic.partitions.items()
    ]
    return MetadataResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
    )
