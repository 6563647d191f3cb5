"""ApiVersions: the versions that a broker supports; the first request of nearly every client.

A client must be able to read the response before it has the broker's versions: its header is never
flexible, and the broker answers an unsupported version in version 0 (KIP-511).
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import Bool, Int16, Int32, Int64, String
from holdfast.protocol.message import Request, Response


class ApiVersionsRequest(Request, api_key=18, versions="0-5", flexible=3):
    """Ask for the API versions of a broker.

    Since version 3 a client names its software (KIP-511), since version 5 also the cluster and
    node that it wants to reach, to detect a wrong one (KIP-1242).
    """

    client_software_name: String = field("3+", default="", ignorable=True)
    client_software_version: String = field("3+", default="", ignorable=True)
    cluster_id: String | None = field("5+", default=None, ignorable=True)
    node_id: Int32 = field("5+", default=-1, ignorable=True)


class ApiVersionsResponse(Response, api_key=18, versions="0-5", flexible=3):
    """The version range of each API, and the features of the cluster in tagged fields (KIP-584)."""

    error_code: Int16
    api_keys: Sequence[ApiVersion]
    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    supported_features: Sequence[SupportedFeatureKey] = field(
        "3+", tag=0, default=(), ignorable=True
    )
    finalized_features_epoch: Int64 = field("3+", tag=1, default=-1, ignorable=True)
    finalized_features: Sequence[FinalizedFeatureKey] = field(
        "3+", tag=2, default=(), ignorable=True
    )
    zk_migration_ready: Bool = field("3+", tag=3, default=False, ignorable=True)


class ApiVersion(Struct):
    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeatureKey(Struct):
    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeatureKey(Struct):
    name: String
    max_version_level: Int16
    min_version_level: Int16
