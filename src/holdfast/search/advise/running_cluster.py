"""Reads the settings of a running cluster, Holdfast or Apache Kafka."""

from __future__ import annotations

from typing import Final

from holdfast.cluster.client.client import Client, check
from holdfast.cluster.client.retries import retried
from holdfast.model import ErrorCode
from holdfast.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from holdfast.search.advise.combination import AskedError, Given
from holdfast.search.advise.settings_files import of_logs

_TOPIC, _BROKER = 2, 4
_DEFAULT = 5
RETRY_S: Final = 20.0
_OF_BROKER = ("replica.selector.class",)


def ask_cluster(client: Client, topic: str, source: str) -> Given:
    """A topic's replicas and settings. ClusterError if no broker answers."""
    [found] = client.metadata([topic]).topics  # one attempt: a wrong address is named quickly
    if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise AskedError(f"{source} has no topic {topic}", "see 'holdfast status'")
    check(topic, found.error_code)
    counts = [len(one.replica_nodes) for one in found.partitions]
    leaders = [one.leader_id for one in found.partitions if one.leader_id >= 0]
    if not leaders:
        raise AskedError(f"no partition of {topic} has a leader", "start its brokers first")
    own = _describe(client, leaders[0], _TOPIC, topic)
    broker = _describe(client, leaders[0], _BROKER, str(leaders[0]), _OF_BROKER)
    values = {one.name: one.value for one in own if one.value is not None}
    server = {one.name: one.value for one in broker if one.value}
    names = ("min.insync.replicas", "unclean.leader.election.enable", "flush.messages", "flush.ms")
    chosen = {name: values[name] for name in names if name in values}
    given = of_logs(server, chosen, source, all_of_it=True)
    # Only settings that were set explicitly: a list of all defaults helps no reader.
    others = [one.name for one in own if one.config_source != _DEFAULT and one.name not in names]
    return Given(
        source=source,
        replicas=min(counts),
        options=given.options,
        not_looked_at=tuple(others),
    )


def _describe(
    client: Client, broker: int, kind: int, name: str, keys: tuple[str, ...] | None = None
) -> list[DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(
        resource_type=kind,
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )
    request = DescribeConfigsRequest(resources=[resource])
    answer = retried(lambda: client.ask(broker, request, DescribeConfigsResponse), RETRY_S)
    [result] = answer.results
    check(f"the settings of {name}", result.error_code, result.error_message)
    return list(result.configs)
