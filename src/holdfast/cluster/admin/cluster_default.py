"""The cluster-wide default settings of brokers.

Its name is the empty one, which librdkafka refuses, so the small client asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.cluster.admin.configs import row
from holdfast.cluster.admin.connection import Connection
from holdfast.cluster.admin.errors import RefusedError
from holdfast.cluster.client.client import Client, KafkaError, check
from holdfast.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)

BROKER: Final = 4
SET, DELETE = 0, 1


def describe(connection: Connection) -> list[dict[str, Any]]:
    """What was set for all brokers, in rows as `configs.describe` has them."""
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name="", configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    with _client(connection) as client:
        [result] = client.ask_any(request, DescribeConfigsResponse).results
    check("describe the default of all brokers", result.error_code, result.error_message)
    return [
        row(
            one.name,
            one.value,
            one.config_source,
            [(synonym.name, synonym.value, synonym.source) for synonym in one.synonyms],
            is_read_only=one.read_only,
            is_sensitive=one.is_sensitive,
        )
        for one in sorted(result.configs, key=lambda one: one.name)
    ]


def set_values(connection: Connection, values: Mapping[str, str], deleted: Iterable[str]) -> None:
    """Set some settings and remove others, in one request."""
    changes = [
        IncrementalAlterConfigsAlterableConfig(name=name, config_operation=SET, value=value)
        for name, value in values.items()
    ]
    changes += [
        IncrementalAlterConfigsAlterableConfig(name=name, config_operation=DELETE, value=None)
        for name in deleted
    ]
    resource = IncrementalAlterConfigsResource(
        resource_type=BROKER, resource_name="", configs=changes
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    with _client(connection) as client:
        [result] = client.ask_any(request, IncrementalAlterConfigsResponse).responses
    try:
        check("alter the default of all brokers", result.error_code, result.error_message)
    except KafkaError as error:
        raise RefusedError(error.message) from None


def _client(connection: Connection) -> Client:
    client = connection.client()
    if client is None:
        raise RefusedError(
            "the default of all brokers cannot be read or changed over TLS or with a login",
            hint="name each broker with --broker",
        )
    return client
