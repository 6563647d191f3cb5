"""Clusters of real broker processes on one machine, for tests and for use by hand.

Names are imported when they are first used: pytest loads the plugin in this package for every
project that has Holdfast installed, and most of their tests need no broker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.cluster.async_cluster import AsyncCluster
    from holdfast.cluster.client.acknowledged_records import AckedLossError, Acknowledgement, Ledger
    from holdfast.cluster.client.client import Client, KafkaError
    from holdfast.cluster.cluster import Cluster, ReplicaStatus
    from holdfast.cluster.errors import ClusterError, ClusterTimeoutError

__all__ = [
    "AckedLossError",
    "Acknowledgement",
    "AsyncCluster",
    "Client",
    "Cluster",
    "ClusterError",
    "ClusterTimeoutError",
    "KafkaError",
    "Ledger",
    "ReplicaStatus",
]

_HOMES = {
    "AckedLossError": "holdfast.cluster.client.acknowledged_records",
    "AsyncCluster": "holdfast.cluster.async_cluster",
    "Client": "holdfast.cluster.client.client",
    "Cluster": "holdfast.cluster.cluster",
    "ClusterError": "holdfast.cluster.errors",
    "ClusterTimeoutError": "holdfast.cluster.errors",
    "KafkaError": "holdfast.cluster.client.client",
    "Ledger": "holdfast.cluster.client.acknowledged_records",
    "Acknowledgement": "holdfast.cluster.client.acknowledged_records",
    "ReplicaStatus": "holdfast.cluster.cluster",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
