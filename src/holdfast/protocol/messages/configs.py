"""Reading and changing the settings of topics and brokers."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import Bool, Int8, Int16, Int32, String
from holdfast.protocol.message import Request, Response


class DescribeConfigsRequest(Request, api_key=32, versions="1-4", flexible=4):
    """Ask for the settings of topics, brokers and groups."""

    resources: Sequence[DescribeConfigsResource]
    include_synonyms: Bool = False
    include_documentation: Bool = field("3+", default=False)


class DescribeConfigsResource(Struct):
    resource_type: Int8
    """2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String
    configuration_keys: Sequence[String] | None


class DescribeConfigsResponse(Response, api_key=32, versions="1-4", flexible=4):
    """Each setting, its source and its synonyms."""

    throttle_time_ms: Int32 = 0
    results: Sequence[DescribeConfigsResult]


class DescribeConfigsResult(Struct):
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String
    configs: Sequence[DescribeConfigsResourceResult]


class DescribeConfigsResourceResult(Struct):
    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    """1 topic, 2 broker, 3 all brokers, 4 the file, 5 default, 6 logger, 7 metrics, 8 group."""
    is_sensitive: Bool
    synonyms: Sequence[DescribeConfigsSynonym]
    config_type: Int8 = field("3+", default=0, ignorable=True)
    """1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password."""
    documentation: String | None = field("3+", default="", ignorable=True)


class DescribeConfigsSynonym(Struct):
    name: String
    value: String | None
    source: Int8


class AlterConfigsRequest(Request, api_key=33, versions="0-2", flexible=2):
    """Replace all settings of a resource. An omitted setting gets its default."""

    resources: Sequence[AlterConfigsResource]
    validate_only: Bool


class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: Sequence[AlterableConfig]


class AlterableConfig(Struct):
    name: String
    value: String | None


class AlterConfigsResponse(Response, api_key=33, versions="0-2", flexible=2):
    """Whether each resource has its new settings."""

    throttle_time_ms: Int32 = 0
    responses: Sequence[AlterConfigsResourceResponse]


class AlterConfigsResourceResponse(Struct):
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String


class IncrementalAlterConfigsRequest(Request, api_key=44, versions="0-1", flexible=1):
    """Set (0), delete (1), append to (2) or subtract from (3) single settings (KIP-339)."""

    resources: Sequence[IncrementalAlterConfigsResource]
    validate_only: Bool


class IncrementalAlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: Sequence[IncrementalAlterConfigsAlterableConfig]


class IncrementalAlterConfigsAlterableConfig(Struct):
    name: String
    config_operation: Int8
    value: String | None


class IncrementalAlterConfigsResponse(Response, api_key=44, versions="0-1", flexible=1):
    """Whether each resource has its new settings."""

    throttle_time_ms: Int32 = 0
    responses: Sequence[AlterConfigsResourceResponse]
