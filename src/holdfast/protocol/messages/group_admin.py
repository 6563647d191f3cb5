"""Administration of classic groups: describe, list, delete."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import Bool, Bytes, Int16, Int32, String
from holdfast.protocol.message import Request, Response


class DescribeGroupsRequest(Request, api_key=15, versions="0-6", flexible=5):
    """Ask for the state and members of groups."""

    groups: Sequence[String]
    include_authorized_operations: Bool = field("3+", default=False)


class DescribeGroupsResponse(Response, api_key=15, versions="0-6", flexible=5):
    """The state of each group, and the metadata and assignment of each member."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    groups: Sequence[DescribedGroup]


class DescribedGroup(Struct):
    error_code: Int16
    error_message: String | None = field("6+", default=None)
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: Sequence[DescribedGroupMember]
    authorized_operations: Int32 = field("3+", default=-2147483648)


class DescribedGroupMember(Struct):
    member_id: String
    group_instance_id: String | None = field("4+", default=None, ignorable=True)
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


class ListGroupsRequest(Request, api_key=16, versions="0-5", flexible=3):
    """List the groups that a broker coordinates, all or by state and type."""

    states_filter: Sequence[String] = field("4+", default=())
    types_filter: Sequence[String] = field("5+", default=())


class ListGroupsResponse(Response, api_key=16, versions="0-5", flexible=3):
    """The groups that this broker coordinates."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16
    groups: Sequence[ListedGroup]


class ListedGroup(Struct):
    group_id: String
    protocol_type: String
    group_state: String = field("4+", default="", ignorable=True)
    group_type: String = field("5+", default="", ignorable=True)


class DeleteGroupsRequest(Request, api_key=42, versions="0-3", flexible=2):
    """Delete groups without members, and their committed offsets."""

    groups_names: Sequence[String]


class DeleteGroupsResponse(Response, api_key=42, versions="0-3", flexible=2):
    """Whether each group was deleted."""

    throttle_time_ms: Int32 = 0
    results: Sequence[DeletableGroupResult]


class DeletableGroupResult(Struct):
    group_id: String
    error_code: Int16
    error_message: String | None = field("3+", default=None, ignorable=True)
