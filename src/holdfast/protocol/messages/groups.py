"""Classic consumer groups: one member, the leader, assigns the partitions."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import Bool, Bytes, Int8, Int16, Int32, String
from holdfast.protocol.message import Request, Response


class FindCoordinatorRequest(Request, api_key=10, versions="0-6", flexible=3):
    """Ask which broker coordinates a key.

    The key is a group (0), a transactional id (1) or a share group's partition (2).
    """

    key: String = field("0-3", default="")
    key_type: Int8 = field("1+", default=0)
    coordinator_keys: Sequence[String] = field("4+", default=())


class FindCoordinatorResponse(Response, api_key=10, versions="0-6", flexible=3):
    """The coordinator; from version 4 on, one per key (KIP-699)."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0-3", default=0)
    error_message: String | None = field("1-3", default="", ignorable=True)
    node_id: Int32 = field("0-3", default=0)
    host: String = field("0-3", default="")
    port: Int32 = field("0-3", default=0)
    coordinators: Sequence[Coordinator] = field("4+", default=())


class Coordinator(Struct):
    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: String | None


class JoinGroupRequest(Request, api_key=11, versions="0-9", flexible=6):
    """Join a group, or stay in it for the next generation.

    Since version 4 a new client first receives its member id and joins again with it (KIP-394).
    """

    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String
    group_instance_id: String | None = field("5+", default=None)
    protocol_type: String
    protocols: Sequence[JoinGroupRequestProtocol]
    reason: String | None = field("8+", default=None, ignorable=True)


class JoinGroupRequestProtocol(Struct):
    name: String
    metadata: Bytes


class JoinGroupResponse(Response, api_key=11, versions="0-9", flexible=6):
    """The new generation. Only the leader, which assigns the partitions, gets the members."""

    throttle_time_ms: Int32 = field("2+", default=0, ignorable=True)
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: String | None = field("7+", default=None, ignorable=True)
    protocol_name: String | None = field(nullable="7+")
    leader: String
    skip_assignment: Bool = field("9+", default=False)
    member_id: String
    members: Sequence[JoinGroupResponseMember]


class JoinGroupResponseMember(Struct):
    member_id: String
    group_instance_id: String | None = field("5+", default=None, ignorable=True)
    metadata: Bytes


class SyncGroupRequest(Request, api_key=14, versions="0-5", flexible=4):
    """Send all assignments (the leader), and ask for the member's own (every member)."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = field("3+", default=None)
    protocol_type: String | None = field("5+", default=None, ignorable=True)
    protocol_name: String | None = field("5+", default=None, ignorable=True)
    assignments: Sequence[SyncGroupRequestAssignment]


class SyncGroupRequestAssignment(Struct):
    member_id: String
    assignment: Bytes


class SyncGroupResponse(Response, api_key=14, versions="0-5", flexible=4):
    """The member's own assignment, opaque to the broker."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16
    protocol_type: String | None = field("5+", default=None, ignorable=True)
    protocol_name: String | None = field("5+", default=None, ignorable=True)
    assignment: Bytes


class HeartbeatRequest(Request, api_key=12, versions="0-4", flexible=4):
    """Extend a member's session."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = field("3+", default=None)


class HeartbeatResponse(Response, api_key=12, versions="0-4", flexible=4):
    """No error, or the reason to join again."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16


class LeaveGroupRequest(Request, api_key=13, versions="0-5", flexible=4):
    """Leave a group; since version 3 an administrator can make several members leave (KIP-345)."""

    group_id: String
    member_id: String = field("0-2", default="")
    members: Sequence[MemberIdentity] = field("3+", default=())


class MemberIdentity(Struct):
    member_id: String
    group_instance_id: String | None = None
    reason: String | None = field("5+", default=None, ignorable=True)


class LeaveGroupResponse(Response, api_key=13, versions="0-5", flexible=4):
    """Whether each member has left."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16
    members: Sequence[LeaveGroupMemberResponse] = field("3+", default=())


class LeaveGroupMemberResponse(Struct):
    member_id: String
    group_instance_id: String | None
    error_code: Int16
