"""Brokers on one machine: started, watched and broken on purpose, by tests and by hand."""

from holdfast.cluster.client import Client, KafkaError
from holdfast.cluster.cluster import Cluster, ReplicaStatus
from holdfast.cluster.errors import ClusterError, ClusterTimeoutError
from holdfast.cluster.ledger import AckedLossError, Ledger, Promise

__all__ = [
    "AckedLossError",
    "Client",
    "Cluster",
    "ClusterError",
    "ClusterTimeoutError",
    "KafkaError",
    "Ledger",
    "Promise",
    "ReplicaStatus",
]
