"""ApiVersions: the versions that this broker serves, and Produce from 0, which clients expect.

A client gets the APIs that a Kafka 4 broker lists. Only brokers see the APIs between brokers. The
features are Kafka's (KIP-584), at the levels that hold here. `metadata.version` is not among them:
it is the format of KRaft's log, which Holdfast does not have.
"""

from __future__ import annotations

from typing import Final

from holdfast.broker.apis.unserved import UNLISTED
from holdfast.broker.network.calls import Call
from holdfast.protocol import APIS
from holdfast.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from holdfast.protocol.messages.control import GetReplicaLogInfoRequest

BETWEEN_BROKERS: Final = (4, 5, 6, 7, 56, GetReplicaLogInfoRequest.API_KEY)

ELIGIBLE_LEADERS: Final = "eligible.leader.replicas.version"
FEATURES: Final = {
    ELIGIBLE_LEADERS: 1,
    "group.version": 0,
    "share.version": 0,
    "streams.version": 0,
    "transaction.version": 0,
}
"""The highest level of each feature; 0 means off and unsupported."""
LEVEL_0_FROM: Final = 4
"""Version 3 cannot name a feature with level 0: its clients would refuse the answer."""


def handle(call: Call) -> None:
    """The range of every API: each has a handler."""
    is_broker = call.connection.broker is not None
    keys = [
        ApiVersion(api_key=key, min_version=api.advertised[0], max_version=api.advertised[-1])
        for key, api in APIS.items()
        if key not in UNLISTED and (is_broker or key not in BETWEEN_BROKERS)
    ]
    supported = [
        SupportedFeatureKey(name=name, min_version=0, max_version=level)
        for name, level in FEATURES.items()
    ]
    finalized = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in FEATURES.items()
        if level
    ]
    call.answer(
        ApiVersionsResponse(
            error_code=0,
            api_keys=keys,
            supported_features=supported if call.version >= LEVEL_0_FROM else [],
            finalized_features_epoch=0,
            finalized_features=finalized,
        )
    )
