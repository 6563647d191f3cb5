"""The APIs of groups in every version, over a plain socket."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from holdfast.model import ErrorCode
from holdfast.protocol import APIS
from holdfast.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from holdfast.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from holdfast.protocol.messages.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from holdfast.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.groups.confluent import describe, make_topic, member
from tests.support.brokers import Brokers

pytestmark = pytest.mark.slow

NOT_ASKED_FOR = -(2**31)


def _coordinator(brokers: Brokers, group: str) -> int:
    """The coordinator, once there is one: librdkafka retries until then."""
    number = describe(brokers, group).coordinator.id
    assert isinstance(number, int)
    return number


def test_the_coordinator_is_found_in_every_version(brokers: Brokers) -> None:
    group = brokers.new_name("group")
    wanted = _coordinator(brokers, group)
    for version in APIS[10].advertised:
        request = FindCoordinatorRequest(key=group)
        if version >= 4:
            request = FindCoordinatorRequest(coordinator_keys=[group, group])
        for asked in brokers.ports:
            found = brokers.ask(asked, request, FindCoordinatorResponse, version)
            ids = [one.node_id for one in found.coordinators] or [found.node_id]
            assert dict.fromkeys(ids) == {wanted: None}


def test_there_is_no_transaction_coordinator(brokers: Brokers) -> None:
    request = FindCoordinatorRequest(key="transaction", key_type=1)
    found = brokers.ask(1, request, FindCoordinatorResponse, 3)
    assert found.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    request = FindCoordinatorRequest(coordinator_keys=["share"], key_type=2)
    found = brokers.ask(1, request, FindCoordinatorResponse, 6)
    assert [one.error_code for one in found.coordinators] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("version", APIS[11].advertised)
def test_a_member_joins_and_leaves_in_every_version(brokers: Brokers, version: int) -> None:
    group = brokers.new_name("group")
    number = _coordinator(brokers, group)
    sync, heartbeat_version, leave = min(version, 5), min(version, 4), min(version, 5)
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"what I read")
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=-1 if version == 0 else 10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )
    joined = brokers.ask(number, join, JoinGroupResponse, version)
    if version >= 4:
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        join.member_id = joined.member_id
        joined = brokers.ask(number, join, JoinGroupResponse, version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.member_id.startswith("test-")
    assert [bytes(one.metadata) for one in joined.members] == [b"what I read"]
    request = SyncGroupRequest(
        group_id=group,
        generation_id=1,
        member_id=joined.member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"what I get")
        ],
    )
    synced = brokers.ask(number, request, SyncGroupResponse, sync)
    assert (synced.error_code, bytes(synced.assignment)) == (0, b"what I get")
    heartbeat = HeartbeatRequest(group_id=group, generation_id=1, member_id=joined.member_id)
    assert brokers.ask(number, heartbeat, HeartbeatResponse, heartbeat_version).error_code == 0
    other = number % 3 + 1
    response = brokers.ask(other, heartbeat, HeartbeatResponse, heartbeat_version)
    assert response.error_code == ErrorCode.NOT_COORDINATOR
    leaving = LeaveGroupRequest(group_id=group, member_id=joined.member_id)
    if leave >= 3:
        leaving = LeaveGroupRequest(
            group_id=group, members=[MemberIdentity(member_id=joined.member_id)]
        )
    left = brokers.ask(number, leaving, LeaveGroupResponse, leave)
    assert [left.error_code, *(one.error_code for one in left.members)] in ([0], [0, 0])
    heartbeat.member_id = joined.member_id
    after = brokers.ask(number, heartbeat, HeartbeatResponse, heartbeat_version)
    assert after.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def _topic_id(brokers: Brokers, topic: str) -> bytes:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    return bytes(brokers.ask(1, request, MetadataResponse, 12).topics[0].topic_id)


def _commit(topic: str, topic_id: bytes, group: str, version: int) -> OffsetCommitRequest:
    def partition(index: int, note: str) -> OffsetCommitRequestPartition:
        return OffsetCommitRequestPartition(
            partition_index=index, committed_offset=version, committed_metadata=note
        )

    good = [partition(0, "a note"), partition(1, "x" * 5000), partition(99, "")]
    unknown = b"\7" * 16
    return OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=[
            OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=good),
            OffsetCommitRequestTopic(
                name="nowhere", topic_id=unknown, partitions=[partition(0, "")]
            ),
        ],
    )


def test_offsets_are_committed_in_every_version(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    number, topic_id = _coordinator(brokers, group), _topic_id(brokers, topic)
    for version in APIS[8].advertised:
        request = _commit(topic, topic_id, group, version)
        answer = brokers.ask(number, request, OffsetCommitResponse, version)
        errors = [[one.error_code for one in each.partitions] for each in answer.topics]
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else 3
        assert errors == [[0, ErrorCode.OFFSET_METADATA_TOO_LARGE, 3], [unknown]]


def test_offsets_are_fetched_in_every_version(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    number, topic_id = _coordinator(brokers, group), _topic_id(brokers, topic)
    with member(brokers, group) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 1, 5)], asynchronous=False)
    for version in APIS[9].advertised:
        for is_all in (False, True) if version >= 2 else (False,):
            found = _fetched(brokers, number, version, group, None if is_all else (topic, topic_id))
            assert found == ([(1, 5, 0)] if is_all else [(0, -1, 0), (1, 5, 0)])
        elsewhere = OffsetFetchRequest(group_id=group, topics=[])
        if version >= 8:
            asked = OffsetFetchRequestGroup(group_id=group, topics=None)
            elsewhere = OffsetFetchRequest(groups=[asked])
        if version >= 2:
            answer = brokers.ask(number % 3 + 1, elsewhere, OffsetFetchResponse, version)
            errors = [one.error_code for one in answer.groups] or [answer.error_code]
            assert errors == [ErrorCode.NOT_COORDINATOR]


def _fetched(
    brokers: Brokers, number: int, version: int, group: str, topic: tuple[str, bytes] | None
) -> list[tuple[int, int, int]]:
    if version < 8:
        old = [OffsetFetchRequestTopic(name=topic[0], partition_indexes=[0, 1])] if topic else None
        request = OffsetFetchRequest(group_id=group, topics=old)
    else:
        new = None
        if topic is not None:
            name, topic_id = topic
            new = [OffsetFetchRequestTopic(name=name, topic_id=topic_id, partition_indexes=[0, 1])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=new)])
    answer = brokers.ask(number, request, OffsetFetchResponse, version)
    if version < 8:
        return [
            (one.partition_index, one.committed_offset, one.error_code)
            for each in answer.topics
            for one in each.partitions
        ]
    return [
        (one.partition_index, one.committed_offset, one.error_code)
        for each in answer.groups[0].topics
        for one in each.partitions
    ]


def test_groups_are_shown_and_deleted_in_every_version(brokers: Brokers) -> None:
    topic = make_topic(brokers)
    for version in range(7):
        group = brokers.new_name("group")
        number = _coordinator(brokers, group)
        with member(brokers, group) as consumer:
            consumer.commit(offsets=[TopicPartition(topic, 1, 5)], asynchronous=False)
        request = DescribeGroupsRequest(groups=[group, "missing"])
        shown = brokers.ask(number, request, DescribeGroupsResponse, version).groups[0]
        assert (shown.error_code, shown.group_state) == (0, "Empty")
        assert shown.authorized_operations == NOT_ASKED_FOR
        listing = ListGroupsRequest()
        if version >= 4:
            listing = ListGroupsRequest(states_filter=["empty"])
        listed = brokers.ask(number, listing, ListGroupsResponse, min(version, 5))
        assert group in [one.group_id for one in listed.groups]
        only_new = ListGroupsRequest(types_filter=["consumer"])
        assert not brokers.ask(number, only_new, ListGroupsResponse, 5).groups
        deletion = DeleteGroupsRequest(groups_names=[group, group])
        deleted = brokers.ask(number, deletion, DeleteGroupsResponse, min(version, 3))
        assert [(one.group_id, one.error_code) for one in deleted.results] == [(group, 0)]
        after = brokers.ask(number, request, DescribeGroupsResponse, version).groups[0]
        missing = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0
        assert (after.error_code, after.group_state) == (missing, "Dead")


def test_single_offsets_are_deleted(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    number = _coordinator(brokers, group)
    with member(brokers, group) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 1, 5)], asynchronous=False)
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (1, 2, 99)]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    request = OffsetDeleteRequest(group_id=group, topics=topics)
    answer = brokers.ask(number, request, OffsetDeleteResponse, 0)
    assert [one.error_code for one in answer.topics[0].partitions] == [0, 0, 3]
    missing = OffsetDeleteRequest(group_id=brokers.new_name("group"), topics=topics)
    number = _coordinator(brokers, missing.group_id)
    answer = brokers.ask(number, missing, OffsetDeleteResponse, 0)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
