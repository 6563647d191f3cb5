"""Client quotas: the limits of a user or client (KIP-546)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct
from holdfast.protocol.codec.types import Bool, Float64, Int8, Int16, Int32, String
from holdfast.protocol.message import Request, Response


class DescribeClientQuotasRequest(Request, api_key=48, versions="0-1", flexible=1):
    """Ask for the quotas of the entities that match; `strict` leaves out those with more parts."""

    components: Sequence[DescribeClientQuotasComponentData]
    strict: Bool


class DescribeClientQuotasComponentData(Struct):
    entity_type: String
    match_type: Int8
    """0 this name, 1 the default entity, 2 any name."""
    match: String | None


class DescribeClientQuotasResponse(Response, api_key=48, versions="0-1", flexible=1):
    """The quotas of each entity that matches."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    entries: Sequence[DescribeClientQuotasEntryData] | None


class DescribeClientQuotasEntryData(Struct):
    entity: Sequence[ClientQuotasEntityData]
    values: Sequence[DescribeClientQuotasValueData]


class ClientQuotasEntityData(Struct):
    entity_type: String
    entity_name: String | None


class DescribeClientQuotasValueData(Struct):
    key: String
    value: Float64


class AlterClientQuotasRequest(Request, api_key=49, versions="0-1", flexible=1):
    """Set or remove quotas."""

    entries: Sequence[AlterClientQuotasRequestEntryData]
    validate_only: Bool


class AlterClientQuotasRequestEntryData(Struct):
    entity: Sequence[ClientQuotasEntityData]
    ops: Sequence[AlterClientQuotasOpData]


class AlterClientQuotasOpData(Struct):
    key: String
    value: Float64
    remove: Bool


class AlterClientQuotasResponse(Response, api_key=49, versions="0-1", flexible=1):
    """Whether each entity has its new quotas."""

    throttle_time_ms: Int32 = 0
    entries: Sequence[AlterClientQuotasResponseEntryData]


class AlterClientQuotasResponseEntryData(Struct):
    error_code: Int16
    error_message: String | None
    entity: Sequence[ClientQuotasEntityData]
