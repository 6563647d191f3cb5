"""DescribeConfigs: every setting of a topic or of this broker, and where its value comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.broker.apis.alter_configs_common import GROUP, unexpected
from holdfast.broker.controller.config_changes import BROKER, TOPIC
from holdfast.broker.errors import RefusedError
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.metadata.store_nodes import DamagedNodeError, decode_config
from holdfast.broker.network.calls import Call
from holdfast.broker.settings import (
    DescribedConfig,
    TopicConfigs,
    describe_broker,
    describe_cluster,
    describe_group,
    describe_topic,
)
from holdfast.broker.tasks import RequestTasks
from holdfast.coordination import Store, StoreError, paths
from holdfast.model import ErrorCode
from holdfast.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def handle(
    tasks: RequestTasks, metadata: Metadata, configs: Configs, store: Store, call: Call
) -> None:
    """Answer from the store, so that a client sees its change as soon as it is acknowledged."""
    request: DescribeConfigsRequest = call.request
    tasks.answer_by(call, _describe_all(metadata, configs, store, request))


async def _describe_all(
    metadata: Metadata, configs: Configs, store: Store, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    results = []
    for asked in request.resources:
        error, message = ErrorCode.NONE, None
        rows: Sequence[DescribedConfig] = ()
        try:
            rows = await _describe(metadata, configs, store, asked)
        except RefusedError as refused:
            error, message = refused.code, refused.message
        results.append(
            DescribeConfigsResult(
                error_code=error,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=[_row(row, request) for row in rows],
            )
        )
    return DescribeConfigsResponse(results=results)


async def _describe(
    metadata: Metadata, configs: Configs, store: Store, asked: DescribeConfigsResource
) -> Sequence[DescribedConfig]:
    keys, name, layers = asked.configuration_keys, asked.resource_name, configs.layers
    if asked.resource_type == TOPIC:
        if metadata.topic(name) is None:
            raise RefusedError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
        known = configs.topics.get(name, {})
        own = await _read(store, paths.topic_config(name), dict(known))
        return describe_topic(TopicConfigs(own, layers), keys)
    if asked.resource_type == BROKER:
        shared = await _read(store, paths.broker_config(paths.ALL_BROKERS), dict(layers.cluster))
        if not name:
            return describe_cluster(replace(layers, cluster=shared), keys)
        broker = configs.settings.node_id
        if name != str(broker):
            raise RefusedError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {broker} or empty string, but received {name}",
            )
        own = await _read(store, paths.broker_config(broker), dict(layers.broker))
        return describe_broker(replace(layers, cluster=shared, broker=own), keys)
    if asked.resource_type == GROUP:
        if not name:
            raise RefusedError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return describe_group(layers, keys)
    raise RefusedError(ErrorCode.INVALID_REQUEST, unexpected(asked.resource_type))


async def _read(store: Store, path: str, known: dict[str, str]) -> dict[str, str]:
    """The settings in the store; while it is unavailable, the last ones that were read."""
    try:
        node = await store.get(path)
        return decode_config(path, node.data) if node is not None else {}
    except (StoreError, DamagedNodeError):
        return known


def _row(row: DescribedConfig, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = row.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=row.source,
        is_sensitive=row.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
            for one in synonyms
        ],
        config_type=row.kind.value,
        documentation=row.documentation if request.include_documentation else None,
    )
