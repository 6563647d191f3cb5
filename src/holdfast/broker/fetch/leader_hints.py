"""The current leaders in an answer: a client that asked the wrong broker needs no metadata request.

KIP-951. A leader whose broker is down is named without an address.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.broker.metadata.metadata_cache import KnownBroker, Metadata
from holdfast.model import BrokerId
from holdfast.protocol.messages.fetch import FetchNodeEndpoint, FetchPartitionData
from holdfast.protocol.messages.produce import PartitionProduceResponse, ProduceNodeEndpoint


def fetch_endpoints(
    metadata: Metadata, topics: Iterable[Iterable[FetchPartitionData]]
) -> list[FetchNodeEndpoint]:
    """For an answer to a fetch."""
    leaders = (one.current_leader for partitions in topics for one in partitions)
    return [
        FetchNodeEndpoint(
            node_id=one.id, host=one.endpoint.host, port=one.endpoint.port, rack=one.rack
        )
        for one in _known(metadata, (one.leader_id for one in leaders if one is not None))
    ]


def produce_endpoints(
    metadata: Metadata, topics: Iterable[Iterable[PartitionProduceResponse]]
) -> list[ProduceNodeEndpoint]:
    """For an answer to a producer."""
    leaders = (one.current_leader for partitions in topics for one in partitions)
    return [
        ProduceNodeEndpoint(
            node_id=one.id, host=one.endpoint.host, port=one.endpoint.port, rack=one.rack
        )
        for one in _known(metadata, (one.leader_id for one in leaders if one is not None))
    ]


def _known(metadata: Metadata, leaders: Iterable[int]) -> list[KnownBroker]:
    found = [metadata.brokers.get(BrokerId(leader)) for leader in dict.fromkeys(leaders)]
    return [one for one in found if one is not None]
