"""Metadata: brokers, topics and leaders. A request may create a topic that does not exist."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from holdfast.broker.authorized_operations import NOT_ASKED, OF_CLUSTER, OF_TOPIC
from holdfast.broker.metadata.auto_topic_creation import AutoCreation
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.metadata.metadata_cache import KnownTopic, Metadata
from holdfast.broker.metadata.topic_names import INTERNAL_TOPICS, invalid_name_reason
from holdfast.broker.network.calls import Call
from holdfast.broker.tasks import RequestTasks
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

BY_ID_FROM: Final = 12
PATIENCE_S: Final = 5.0
PAUSE_S: Final = 0.02


def handle(
    metadata: Metadata,
    auto_creation: AutoCreation,
    configs: Configs,
    tasks: RequestTasks,
    call: Call,
) -> None:
    """Answer from the last UpdateMetadata.

    The answer waits for the first UpdateMetadata: a client that received no controller would not
    refresh its metadata for a long time.
    """

    async def after_first_update() -> MetadataResponse:
        until_s = loop.time() + PATIENCE_S
        # Polling is enough: the wait is short, and happens once after a start.
        while metadata.controller is None and loop.time() < until_s:  # noqa: ASYNC110
            await asyncio.sleep(PAUSE_S)
        return _response(metadata, auto_creation, configs, call)

    if metadata.controller is None:
        loop = asyncio.get_running_loop()
        tasks.answer_by(call, after_first_update())
    else:
        call.answer(_response(metadata, auto_creation, configs, call))


def _response(
    metadata: Metadata, auto_creation: AutoCreation, configs: Configs, call: Call
) -> MetadataResponse:
    request: MetadataRequest = call.request
    wanted = request.topics
    if wanted is None or (call.version == 0 and not wanted):
        topics = [_described(topic) for topic in metadata.topics.values()]
    elif call.version < BY_ID_FROM and any(map(_is_by_id, wanted)):
        # They have a field for an id, but an answer needs a name.
        topics = [_unknown(one.name or "", ErrorCode.INVALID_REQUEST) for one in wanted]
    else:
        may_create = configs.settings.auto_create_topics_enable
        may_create = may_create and request.allow_auto_topic_creation
        topics = _named(metadata, wanted, auto_creation if may_create else None)
    brokers = [
        MetadataResponseBroker(
            node_id=one.id, host=one.endpoint.host, port=one.endpoint.port, rack=one.rack
        )
        for one in metadata.brokers.values()
    ]
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = OF_TOPIC
    is_asked = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=brokers,
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller if metadata.controller is not None else -1,
        topics=topics,
        cluster_authorized_operations=OF_CLUSTER if is_asked else NOT_ASKED,
    )


def _is_by_id(topic: MetadataRequestTopic) -> bool:
    return topic.name is None or topic.topic_id != ZERO_UUID


def _named(
    metadata: Metadata, wanted: Iterable[MetadataRequestTopic], creation: AutoCreation | None
) -> list[MetadataResponseTopic]:
    described: list[MetadataResponseTopic] = []
    missing: list[str] = []
    for one in wanted:
        if one.topic_id != ZERO_UUID:
            topic = metadata.topic(one.topic_id)
            described.append(
                _described(topic)
                if topic is not None
                else _unknown(None, ErrorCode.UNKNOWN_TOPIC_ID, one.topic_id)
            )
            continue
        name = one.name or ""
        topic = metadata.topic(name)
        if topic is not None:
            described.append(_described(topic))
            continue
        if invalid_name_reason(name):
            described.append(_unknown(name, ErrorCode.INVALID_TOPIC_EXCEPTION))
        elif creation is not None:
            missing.append(name)
            described.append(_unknown(name, ErrorCode.LEADER_NOT_AVAILABLE))
        else:
            described.append(_unknown(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    if creation is not None and missing:
        creation.create(missing)
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
