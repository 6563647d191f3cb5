"""DescribeCluster: the live brokers and the controller."""

from __future__ import annotations

from typing import Final

from holdfast.broker.authorized_operations import NOT_ASKED, OF_CLUSTER
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.calls import Call
from holdfast.model import ErrorCode
from holdfast.protocol.messages.cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1


def handle(metadata: Metadata, call: Call) -> None:
    """Answer from the last UpdateMetadata."""
    request: DescribeClusterRequest = call.request
    if request.endpoint_type != BROKERS:
        call.answer(
            DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="this is a broker; there are no separate controllers",
                cluster_id="",
                brokers=[],
            )
        )
        return
    brokers = [
        DescribeClusterBroker(
            broker_id=one.id, host=one.endpoint.host, port=one.endpoint.port, rack=one.rack
        )
        for one in metadata.brokers.values()
    ]
    is_asked = request.include_cluster_authorized_operations
    call.answer(
        DescribeClusterResponse(
            error_code=0,
            cluster_id=metadata.cluster_id,
            controller_id=metadata.controller if metadata.controller is not None else -1,
            brokers=brokers,
            cluster_authorized_operations=OF_CLUSTER if is_asked else NOT_ASKED,
        )
    )
