"""Reads the settings of topics that decide about losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.cluster.client.client import Client
from holdfast.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from holdfast.web.console.reading.observation import TopicFacts

_TOPIC: Final = 2
_KEYS: Final = ("min.insync.replicas", "unclean.leader.election.enable", "flush.messages")
_NEVER: Final = 2**62
"""Kafka's default of flush.messages is the largest long: never."""


def read_settings(client: Client, topics: Sequence[str]) -> dict[str, TopicFacts]:
    """ClusterError if the broker cannot be asked."""
    resources = [
        DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=name, configuration_keys=list(_KEYS)
        )
        for name in topics
    ]
    if not resources:
        return {}
    answer = client.ask_any(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
    return {
        result.resource_name: _facts({one.name: one.value or "" for one in result.configs})
        for result in answer.results
        if not result.error_code
    }


def _facts(values: Mapping[str, str]) -> TopicFacts:
    flush = int(values.get("flush.messages") or _NEVER)
    return TopicFacts(
        min_insync=int(values.get("min.insync.replicas") or 1),
        unclean=values.get("unclean.leader.election.enable") == "true",
        flush_messages=flush if flush < _NEVER else None,
    )
