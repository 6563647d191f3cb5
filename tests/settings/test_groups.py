"""The effects of the settings of consumer groups: only broker 1 has them.

Each coordinates its own groups: each leads half of `__consumer_offsets`.
"""

from __future__ import annotations

import itertools
import socket
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_INVALID

from holdfast.cluster import Cluster
from holdfast.cluster.processes.ports import HOST
from holdfast.model import ErrorCode
from holdfast.protocol import APIS, decode_response, encode_request
from holdfast.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from holdfast.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from holdfast.protocol.messages.group_admin import DescribeGroupsRequest, DescribeGroupsResponse
from holdfast.protocol.messages.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tests.cluster.test_releases import ARCHIVES, committed
from tests.settings.servers import PATIENCE_S, TOPIC, Servers, ask_on, is_readable
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

COMMIT_VERSION = 4
"""The last version that names a retention time."""
JOIN_VERSION = 3
"""The last version that accepts members without an id."""
OFFSETS_TOPIC = "__consumer_offsets"
NUMBERS = itertools.count()
OFFSETS = {
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.segment.bytes": "2000000",
    "broker.session.timeout.ms": "600000",
}
ODD = OFFSETS | {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.max.session.timeout.ms": "20000",
    "group.max.size": "1",
    "offset.metadata.max.bytes": "10",
    "offsets.commit.timeout.ms": "100",
    "offsets.retention.check.interval.ms": "100",
}
OTHER = OFFSETS | {
    "group.initial.rebalance.delay.ms": "600000",
    "offsets.commit.timeout.ms": "600000",
}


class Groups:
    """A cluster, and groups at each of its brokers."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        self.topic = servers.topic(1)

    def at(self, number: int) -> str:
        """A new group that this broker coordinates."""
        while True:  # Each broker leads half of the offsets partitions.
            name = f"group-{next(NUMBERS)}"
            if self._wait_coordinator(name) == number:
                return name

    def _wait_coordinator(self, group: str) -> int:
        wait_until(lambda: self._coordinator(group) >= 0, f"{group} has a coordinator")
        return self._coordinator(group)

    def _coordinator(self, group: str) -> int:
        request = FindCoordinatorRequest(coordinator_keys=[group])
        [found] = self.servers[1].ask(request, FindCoordinatorResponse).coordinators
        return -1 if found.error_code else found.node_id

    def commit(
        self, number: int, group: str, metadata: str = "", retention_ms: int = -1
    ) -> ErrorCode:
        place = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=5, committed_metadata=metadata
        )
        topic = OffsetCommitRequestTopic(name=self.topic, partitions=[place])
        request = OffsetCommitRequest(
            group_id=group, member_id="", retention_time_ms=retention_ms, topics=[topic]
        )
        connection = self.servers[number].connect()
        try:
            answer = ask_on(connection, request, OffsetCommitResponse, COMMIT_VERSION)
        finally:
            connection.close()
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def commit_to(self, number: int, metadata: str = "", retention_ms: int = -1) -> str:
        """A new group, once its coordinator has accepted a commit."""
        group = self.at(number)

        def is_taken() -> bool:
            return self.commit(number, group, metadata, retention_ms) is ErrorCode.NONE

        wait_until(is_taken, "committed")
        return group

    def has_offsets(self, number: int, group: str) -> bool:
        asked = OffsetFetchRequestGroup(group_id=group, topics=None)
        request = OffsetFetchRequest(groups=[asked])
        [answer] = self.servers[number].ask(request, OffsetFetchResponse, 8).groups
        return bool(answer.topics)

    def join(self, number: int, group: str, session_ms: int = 10_000) -> socket.socket:
        """A new member sends JoinGroup; returns its connection for the answer."""
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=600_000,
            member_id="",
            protocol_type="consumer",
            protocols=[protocol],
        )
        connection = socket.create_connection((HOST, self.servers[number].port), PATIENCE_S)
        parts = encode_request(request, JOIN_VERSION, correlation_id=1, client_id="member")
        connection.sendall(b"".join(parts))
        return connection

    def members(self, number: int, group: str) -> int:
        request = DescribeGroupsRequest(groups=[group])
        [response] = self.servers[number].ask(request, DescribeGroupsResponse).groups
        return len(response.members)


def answer_of(connection: socket.socket) -> ErrorCode:
    """The answer to a member's JoinGroup."""
    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    frame = connection.recv(size, socket.MSG_WAITALL)
    _, answer = decode_response(frame, APIS[JoinGroupRequest.API_KEY], JOIN_VERSION)
    assert isinstance(answer, JoinGroupResponse)
    return ErrorCode(answer.error_code)


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groups]:
    servers = Servers(tmp_path_factory.mktemp("groups"), ODD, OTHER)
    try:
        servers.start(controller=1)
        yield Groups(servers)
    finally:
        servers.close()


def test_offsets_topic(groups: Groups) -> None:
    """offsets.topic.num.partitions, offsets.topic.replication.factor, and in the store
    offsets.topic.segment.bytes; by default 50 partitions, 3 copies of 100 MiB segments.
    """
    groups.at(1)
    [topic] = groups.servers.metadata(groups.servers[1], OFFSETS_TOPIC).topics
    assert len(topic.partitions) == 4
    assert all(len(one.replica_nodes) == 2 for one in topic.partitions)
    asked = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=OFFSETS_TOPIC, configuration_keys=["segment.bytes"]
    )
    request = DescribeConfigsRequest(resources=[asked])
    [described] = groups.servers[1].ask(request, DescribeConfigsResponse).results
    assert [one.value for one in described.configs] == ["2000000"]


def test_group_initial_rebalance_delay_ms(groups: Groups) -> None:
    """group.initial.rebalance.delay.ms: a first member waits for others, or does not."""
    slow, quick = groups.at(2), groups.at(1)
    with groups.join(2, slow) as waiting, groups.join(1, quick) as served:
        wait_until(lambda: groups.members(2, slow) == 1, "it is a member")
        assert answer_of(served) is ErrorCode.NONE
        assert not is_readable(waiting)


def test_group_max_size(groups: Groups) -> None:
    """group.max.size=1 at broker 1."""
    full, large = groups.at(1), groups.at(2)
    with groups.join(1, full) as first, groups.join(2, large), groups.join(2, large) as second:
        assert answer_of(first) is ErrorCode.NONE
        with groups.join(1, full) as refused:
            assert answer_of(refused) is ErrorCode.GROUP_MAX_SIZE_REACHED
        wait_until(lambda: groups.members(2, large) == 2, "two members")
        assert not is_readable(second)


@pytest.mark.parametrize(
    ("name", "odd_ms", "usual_ms"),
    [
        # Broker 1 accepts 1 s to 20 s, broker 2 accepts 6 s to 30 minutes.
        ("group.min.session.timeout.ms", 2_000, 10_000),
        ("group.max.session.timeout.ms", 10_000, 60_000),
    ],
)
def test_group_session_timeouts(groups: Groups, name: str, odd_ms: int, usual_ms: int) -> None:
    here, there = groups.at(1), groups.at(2)
    with groups.join(1, here, odd_ms) as taken:
        assert answer_of(taken) is ErrorCode.NONE
    wrong_here, wrong_there = (usual_ms, None) if "max" in name else (None, odd_ms)
    if wrong_here is not None:
        with groups.join(1, groups.at(1), wrong_here) as refused:
            assert answer_of(refused) is ErrorCode.INVALID_SESSION_TIMEOUT
    if wrong_there is not None:
        with groups.join(2, there, wrong_there) as refused:
            assert answer_of(refused) is ErrorCode.INVALID_SESSION_TIMEOUT
    with groups.join(2, there, usual_ms):
        wait_until(lambda: groups.members(2, there) == 1, "broker 2 takes it")


def test_offset_metadata_max_bytes(groups: Groups) -> None:
    """offset.metadata.max.bytes: ten at broker 1."""
    group = groups.at(1)
    assert groups.commit(1, group, "x" * 11) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert groups.commit(1, group, "x" * 10) is ErrorCode.NONE
    groups.commit_to(2, "x" * 11)


def test_offsets_commit_timeout_ms(groups: Groups) -> None:
    """offsets.commit.timeout.ms: a commit that is not replicated in time fails."""
    patient, impatient = groups.commit_to(2), groups.commit_to(1)
    both = (groups.servers[1], groups.servers[2])
    with ThreadPoolExecutor(1) as pool:
        for server, other in (both, both[::-1]):
            server.order("links", do="cut", to=[other.number], both_ways=True)
        try:
            waiting = pool.submit(groups.commit, 2, patient)
            assert groups.commit(1, impatient) is not ErrorCode.NONE
            assert not waiting.done()
        finally:
            for server in both:
                server.order("links", do="heal")
        assert waiting.result(PATIENCE_S) is ErrorCode.NONE


def test_offsets_retention_check_interval_ms(groups: Groups) -> None:
    """offsets.retention.check.interval.ms: ten minutes by default.

    The commits ask for a retention of one millisecond.
    """
    stays = groups.commit_to(2, retention_ms=1)
    goes = groups.commit_to(1, retention_ms=1)
    wait_until(lambda: not groups.has_offsets(1, goes), "broker 1 looks, and expires them")
    assert groups.has_offsets(2, stays)


def test_offsets_retention_minutes(tmp_path: Path) -> None:
    """offsets.retention.minutes=1: old commits of an earlier release expire.

    tests/cluster/test_releases.py opens the same with a longer time, and finds them.
    """
    with tarfile.open(ARCHIVES[0]) as files:
        files.extractall(tmp_path, filter="data")
    config = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "50"}
    with Cluster(tmp_path, config=config) as cluster:
        gone = [OFFSET_INVALID, OFFSET_INVALID]
        wait_until(lambda: committed(cluster) == gone, "the offsets are gone")
