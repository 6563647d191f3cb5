"""The current leaders in an answer: a client that asked the wrong broker needs no metadata request.

KIP-951. A leader whose broker is down is named without an address.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.model import BrokerId
from holdfast.protocol.messages.fetch import FetchPartitionData
from holdfast.protocol.messages.leader_hints import NodeEndpoint
from holdfast.protocol.messages.produce import PartitionProduceResponse


def leader_endpoints(
    metadata: Metadata, topics: Iterable[Iterable[FetchPartitionData | PartitionProduceResponse]]
) -> list[NodeEndpoint]:
    """The addresses of the leaders that an answer names."""
    leaders = (one.current_leader for partitions in topics for one in partitions)
    ids = dict.fromkeys(BrokerId(one.leader_id) for one in leaders if one is not None)
    found = (metadata.brokers.get(leader) for leader in ids)
    return [
        NodeEndpoint(node_id=one.id, host=one.endpoint.host, port=one.endpoint.port, rack=one.rack)
        for one in found
        if one is not None
    ]
