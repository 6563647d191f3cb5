"""Reads consumer groups with their lag. A group's coordinator answers for it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

from holdfast.cluster.client.client import Client
from holdfast.cluster.errors import ClusterError
from holdfast.protocol.messages.committed_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from holdfast.protocol.messages.group_admin import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from holdfast.web.console.reading.observation import GroupFacts, Observation

BY_NAME: Final = 9
"""The newest version of OffsetFetch that names topics, not their ids."""
MOST_GROUPS: Final = 500
CLASSIC: Final = ("", "classic")


def read_groups(clients: Mapping[int, Client], seen: Observation) -> dict[str, GroupFacts]:
    """All groups of these brokers; a broker that does not answer has none."""
    groups: dict[str, GroupFacts] = {}
    for broker, client in clients.items():
        with contextlib.suppress(ClusterError):
            own = _listed(client, broker)
            _describe(client, own)
            for group in own.values():
                _lags(client, group, seen)
            groups.update(own)
    return dict(sorted(groups.items()))


def _listed(client: Client, broker: int) -> dict[str, GroupFacts]:
    answer = client.ask_any(ListGroupsRequest(), ListGroupsResponse)
    return {
        one.group_id: GroupFacts(one.group_id, one.group_state, 0, one.group_type, broker)
        for one in answer.groups[:MOST_GROUPS]
    }


def _describe(client: Client, groups: Mapping[str, GroupFacts]) -> None:
    """The members of classic groups; the groups of KIP-848 and KIP-932 have APIs of their own."""
    classic = [name for name, group in groups.items() if group.kind.lower() in CLASSIC]
    if not classic:
        return
    answer = client.ask_any(DescribeGroupsRequest(groups=classic), DescribeGroupsResponse)
    for one in answer.groups:
        if not one.error_code:
            groups[one.group_id].state = one.group_state
            groups[one.group_id].members = len(one.members)


def _lags(client: Client, group: GroupFacts, seen: Observation) -> None:
    asked = OffsetFetchRequestGroup(group_id=group.id, topics=None)
    request = OffsetFetchRequest(groups=[asked])
    answer = client.ask_any(request, OffsetFetchResponse, most=BY_NAME)
    for found in answer.groups:
        for topic in found.topics:
            for one in topic.partitions:
                partition = seen.partitions.get(f"{topic.name}-{one.partition_index}")
                if partition is None or partition.end is None or one.committed_offset < 0:
                    continue
                group.lags[partition.name] = max(0, partition.end - one.committed_offset)
