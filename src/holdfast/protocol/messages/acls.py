"""Access control lists: which principal may do what."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct
from holdfast.protocol.codec.types import Int8, Int16, Int32, String
from holdfast.protocol.message import Request, Response


class DescribeAclsRequest(Request, api_key=29, versions="1-3", flexible=2):
    """Ask for the rules that match a filter."""

    resource_type_filter: Int8
    """1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user."""
    resource_name_filter: String | None
    pattern_type_filter: Int8 = 3
    """1 any, 2 match (literal, prefixed or wildcard), 3 literal, 4 prefixed."""
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8
    """1 any, 2 deny, 3 allow."""


class DescribeAclsResponse(Response, api_key=29, versions="1-3", flexible=2):
    """The rules that match, by resource."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    resources: Sequence[DescribeAclsResource]


class DescribeAclsResource(Struct):
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = 3
    acls: Sequence[AclDescription]


class AclDescription(Struct):
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Request, api_key=30, versions="1-3", flexible=2):
    """Add rules."""

    creations: Sequence[AclCreation]


class AclCreation(Struct):
    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class CreateAclsResponse(Response, api_key=30, versions="1-3", flexible=2):
    """Whether each rule was added, in the order of the request."""

    throttle_time_ms: Int32 = 0
    results: Sequence[AclCreationResult]


class AclCreationResult(Struct):
    error_code: Int16
    error_message: String | None


class DeleteAclsRequest(Request, api_key=31, versions="1-3", flexible=2):
    """Remove every rule that matches a filter."""

    filters: Sequence[DeleteAclsFilter]


class DeleteAclsFilter(Struct):
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


class DeleteAclsResponse(Response, api_key=31, versions="1-3", flexible=2):
    """The rules that each filter removed."""

    throttle_time_ms: Int32 = 0
    filter_results: Sequence[DeleteAclsFilterResult]


class DeleteAclsFilterResult(Struct):
    error_code: Int16
    error_message: String | None
    matching_acls: Sequence[DeleteAclsMatchingAcl]


class DeleteAclsMatchingAcl(Struct):
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8
