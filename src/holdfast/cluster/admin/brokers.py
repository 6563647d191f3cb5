"""The brokers of a cluster: controller, racks, log directories and their sizes."""

from __future__ import annotations

from typing import Any

from holdfast.cluster.admin.connection import REQUEST_S, Connection
from holdfast.cluster.admin.errors import answer
from holdfast.cluster.client.client import Client
from holdfast.cluster.errors import ClusterError
from holdfast.model import ErrorCode
from holdfast.protocol.messages.cluster import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


def list_brokers(connection: Connection) -> list[dict[str, Any]]:
    """One row for each live broker."""
    future = connection.admin.describe_cluster(request_timeout=REQUEST_S)
    cluster = answer(future, "describe the cluster")
    partitions = [
        one for topic in connection.metadata().topics.values() for one in topic.partitions.values()
    ]
    client = connection.client()
    try:
        return [
            {
                "broker": node.id,
                "address": f"{node.host}:{node.port}",
                "rack": node.rack,
                "is_controller": cluster.controller is not None
                and node.id == cluster.controller.id,
                "leaders": sum(one.leader == node.id for one in partitions),
                "replicas": sum(node.id in one.replicas for one in partitions),
                "log_dirs": None if client is None else _log_dirs(client, node.id),
            }
            for node in sorted(cluster.nodes, key=lambda node: node.id)
        ]
    finally:
        if client is not None:
            client.close()


def _log_dirs(client: Client, broker: int) -> list[dict[str, Any]] | None:
    """None if the broker does not tell."""
    try:
        request = DescribeLogDirsRequest(topics=None)
        answered = client.ask(broker, request, DescribeLogDirsResponse)
    except ClusterError:
        return None
    return [_log_dir(one) for one in answered.results]


def _log_dir(result: DescribeLogDirsResult) -> dict[str, Any]:
    logs = [one for topic in result.topics for one in topic.partitions]
    return {
        "path": result.log_dir,
        "error": ErrorCode(result.error_code).name if result.error_code else None,
        "logs": len(logs),
        "size": sum(one.partition_size for one in logs),
        "total_bytes": None if result.total_bytes < 0 else result.total_bytes,
        "usable_bytes": None if result.usable_bytes < 0 else result.usable_bytes,
    }
