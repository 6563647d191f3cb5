"""The admin APIs on whole brokers: any broker accepts them, the controller answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.broker.metadata.store_nodes import decode_topic
from holdfast.broker.node import Broker
from holdfast.broker.settings import Source
from holdfast.cluster.processes.ports import Port
from holdfast.coordination import paths
from holdfast.model import BrokerId, ErrorCode, TopicPartition
from holdfast.protocol.codec.types import ZERO_UUID
from holdfast.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from holdfast.protocol.messages.control import AlterPartitionRequest, ControlledShutdownRequest
from holdfast.protocol.messages.metadata import (
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsTopicRequest,
)
from holdfast.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ElectLeadersTopicPartitions,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from holdfast.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.support.waiting import eventually
from tests.unit.broker.three import Three, play

pytestmark = pytest.mark.slow

P = TopicPartition("events", 0)


def new_topic(name: str, partitions: int = 2, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=-1,
        assignments=[],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


async def create(three: Three, *topics: CreatableTopic, validate_only: bool = False) -> Any:
    request = CreateTopicsRequest(
        topics=list(topics), timeout_ms=30_000, validate_only=validate_only
    )
    response = await three.ask(three.other, request)
    return [(one.name, one.error_code) for one in response.topics]


def leaders_known_to(broker: Broker) -> list[int]:
    topics = broker.metadata.topics.values()
    return [one.leader for topic in topics for one in topic.partitions.values()]


def test_a_topic_is_created_grown_and_deleted_through_any_broker(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        wanted = new_topic("events", 2, retention_ms="5000")
        assert await create(three, wanted, validate_only=True) == [("events", 0)]
        assert await create(three, wanted, new_topic("bad name")) == [
            ("events", 0),
            ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]
        assert await create(three, wanted) == [("events", ErrorCode.TOPIC_ALREADY_EXISTS)]
        twice = await create(three, new_topic("two"), new_topic("two"))
        assert twice == [("two", ErrorCode.INVALID_REQUEST)]
        refused = await create(three, new_topic("x", retention_ms="soon"))
        assert refused == [("x", ErrorCode.INVALID_CONFIG)]
        leaders = [one.metadata.leader_of("events", 0) for one in three.brokers.values()]
        assert len(set(leaders)) == 1, "all brokers know the leader when this is answered"
        assert leaders[0] is not None
        leader = three.brokers[leaders[0][0]]
        assert leader.replicas.partitions[P].presumes_leadership
        assert leader.configs.topics["events"] == {"retention.ms": "5000"}
        grow = CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(name="events", count=3, assignments=None),
                CreatePartitionsTopic(name="no", count=3, assignments=None),
            ],
            timeout_ms=30_000,
            validate_only=False,
        )
        grown = await three.ask(three.other, grow)
        codes = [one.error_code for one in grown.results]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        node = await three.other.store.get(paths.topic("events"))
        assert node is not None
        topic = decode_topic("", node.data)
        assert sorted(topic.replicas) == [0, 1, 2]
        gone = [
            DeleteTopicState(topic_id=topic.topic_id),
            DeleteTopicState(name="no", topic_id=ZERO_UUID),
            DeleteTopicState(topic_id=b"x" * 16),
        ]
        deleted = await three.ask(three.other, DeleteTopicsRequest(topics=gone, timeout_ms=30_000))
        assert [(one.name, one.error_code) for one in deleted.responses] == [
            ("events", 0),
            ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (None, ErrorCode.UNKNOWN_TOPIC_ID),
        ]
        assert await create(three, wanted) == [("events", 0)]

    play(tmp_path, scenario)


def test_settings_are_changed_and_described(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        await create(three, new_topic("events"))

        async def described(kind: int, name: str) -> Any:
            resource = DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
            [result] = (await three.ask(three.other, request)).results
            return result.error_code, {one.name: one.value for one in result.configs}

        def altered(kind: int, name: str, key: str, value: str) -> Any:
            config = IncrementalAlterConfigsAlterableConfig(
                name=key, config_operation=0, value=value
            )
            resource = IncrementalAlterConfigsResource(
                resource_type=kind, resource_name=name, configs=[config]
            )
            request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
            return three.ask(three.other, request)

        for kind, name, key, value, code in (
            (2, "events", "retention.ms", "77", 0),
            (2, "events", "retention.ms", "x", ErrorCode.INVALID_CONFIG),
            (2, "no", "retention.ms", "77", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (4, "", "log.retention.ms", "88", 0),
            (4, "1", "min.insync.replicas", "1", ErrorCode.INVALID_CONFIG),
            (8, "1", "root", "INFO", ErrorCode.INVALID_REQUEST),
        ):
            response = await altered(kind, name, key, value)
            assert response.responses[0].error_code == code, (kind, name, key)
        code, configs = await described(2, "events")
        assert (code, configs["retention.ms"], configs["min.insync.replicas"]) == (0, "77", "2")
        code, configs = await described(4, str(three.other.id))
        assert (code, configs["log.retention.ms"]) == (0, "88")
        assert (await described(4, ""))[1] == {"log.retention.ms": "88"}
        assert (await described(4, "99"))[0] == ErrorCode.INVALID_REQUEST
        assert (await described(2, "no"))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (await described(8, "1"))[0] == ErrorCode.INVALID_REQUEST
        resource = AlterConfigsResource(
            resource_type=2,
            resource_name="events",
            configs=[AlterableConfig(name="segment.bytes", value="2000000")],
        )
        replaced = AlterConfigsRequest(resources=[resource], validate_only=False)
        assert (await three.ask(three.other, replaced)).responses[0].error_code == 0
        _, configs = await described(2, "events")
        assert (configs["retention.ms"], configs["segment.bytes"]) == ("88", "2000000")

    play(tmp_path, scenario)


def test_leaders_and_replicas_move_on_request(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        await create(three, new_topic("events", 1))
        service = three.controller.controller
        assert service is not None
        state = service.core.partitions[P]
        target = [*state.replicas[1:], state.replicas[0]]

        def moved(replicas: list[BrokerId] | None) -> AlterPartitionReassignmentsRequest:
            one = ReassignablePartition(partition_index=0, replicas=replicas)
            topics = [ReassignableTopic(name="events", partitions=[one])]
            return AlterPartitionReassignmentsRequest(topics=topics)

        answer = await three.ask(three.other, moved(target))
        assert answer.responses[0].partitions[0].error_code == 0
        assert list(service.core.partitions[P].replicas) == target
        answer = await three.ask(three.other, moved(None))
        code = answer.responses[0].partitions[0].error_code
        assert code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        listed = await three.ask(three.other, ListPartitionReassignmentsRequest())
        assert (listed.error_code, list(listed.topics)) == (0, [])

        def elected(kind: int = 0) -> ElectLeadersRequest:
            topics = [ElectLeadersTopicPartitions(topic="events", partitions=[0, 7])]
            return ElectLeadersRequest(election_type=kind, topic_partitions=topics)

        answer = await three.ask(three.other, elected())
        found = answer.replica_election_results[0].partition_result
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [one.error_code for one in found] == [0, unknown]
        assert service.core.partitions[P].leader == target[0]
        answer = await three.ask(three.other, elected())
        found = answer.replica_election_results[0].partition_result
        assert found[0].error_code == ErrorCode.ELECTION_NOT_NEEDED
        assert (await three.ask(three.other, elected(5))).error_code == ErrorCode.INVALID_REQUEST

    play(tmp_path, scenario)


def test_topics_are_described_page_by_page(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        await create(three, new_topic("a", 3), new_topic("b", 2))

        async def page(cursor: Any, *names: str) -> Any:
            topics = [DescribeTopicPartitionsTopicRequest(name=name) for name in names]
            request = DescribeTopicPartitionsRequest(
                topics=topics, response_partition_limit=2, cursor=cursor
            )
            response = await three.ask(three.other, request)
            shown = [
                (topic.name, topic.error_code, [one.partition_index for one in topic.partitions])
                for topic in response.topics
            ]
            following = response.next_cursor
            return shown, following and (following.topic_name, following.partition_index)

        assert await page(None) == ([("a", 0, [0, 1])], ("a", 2))
        cursor = DescribeTopicPartitionsCursor(topic_name="a", partition_index=2)
        assert await page(cursor) == ([("a", 0, [2]), ("b", 0, [0])], ("b", 1))
        cursor = DescribeTopicPartitionsCursor(topic_name="b", partition_index=1)
        assert await page(cursor) == ([("b", 0, [1])], None)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await page(None, "no") == ([("no", unknown, [])], None)

    play(tmp_path, scenario)


def test_leaders_move_before_a_broker_stops_and_when_it_dies(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        await create(three, new_topic("events", 3))
        stale = ControlledShutdownRequest(broker_id=1, broker_epoch=1)
        answer = await three.ask(three.other, stale)
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        nobody = ControlledShutdownRequest(broker_id=9, broker_epoch=1)
        answer = await three.ask(three.other, nobody)
        assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        altered = AlterPartitionRequest(broker_id=1, broker_epoch=1, topics=[])
        codes = [(await three.ask(one, altered)).error_code for one in three.brokers.values()]
        assert sorted(codes) == [
            ErrorCode.NOT_CONTROLLER,
            ErrorCode.NOT_CONTROLLER,
            ErrorCode.STALE_BROKER_EPOCH,
        ]
        # The controller stops cleanly: another takes over, and nothing is left over.
        old = three.controller
        del three.brokers[old.id]
        await old.stop()
        left = list(three.brokers.values())
        await eventually(
            lambda: all(old.id not in leaders_known_to(one) for one in left),
            "leaders moved",
        )
        await eventually(lambda: any(one.controller for one in left), "another controller")
        back = await three.start(old.id)
        await eventually(three.know_each_other, "it is back")
        service = three.controller.controller
        assert service is not None
        await eventually(
            lambda: all(len(one.isr) == 3 for one in service.core.partitions.values()),
            "all in sync again",
        )
        # Its session ends while it is alive: it loses its leaderships, and registers again.
        epoch = back.incarnation.broker_epoch
        await back.store.expire()
        await eventually(lambda: back.incarnation.broker_epoch > epoch, "registered again")

        def all_in_sync() -> bool:
            controllers = [one.controller for one in three.brokers.values() if one.controller]
            return bool(controllers) and all(
                len(state.isr) == 3 for state in controllers[0].core.partitions.values()
            )

        await eventually(all_in_sync, "all in sync once more")

    play(tmp_path, scenario)


def test_what_a_broker_advertises_is_described_as_a_static_setting(tmp_path: Path) -> None:
    """As in Apache Kafka 4.3.1; if the file does not set it, there is no value."""
    port = Port()
    advertised = f"PLAINTEXT://localhost:{port.number}"
    own = {"listeners": f"PLAINTEXT://127.0.0.1:{port.number}", "advertised.listeners": advertised}
    cases: list[tuple[dict[str, str], str | None, Source]] = [
        ({}, None, Source.DEFAULT_CONFIG),
        (own, advertised, Source.STATIC_BROKER_CONFIG),
    ]

    async def run() -> None:
        for settings, value, source in cases:
            three = Three(tmp_path, settings)
            broker = await three.start(1)
            asked = DescribeConfigsResource(
                resource_type=4, resource_name="1", configuration_keys=["advertised.listeners"]
            )
            request = DescribeConfigsRequest(resources=[asked], include_synonyms=True)
            [row] = (await three.ask(broker, request)).results[0].configs
            assert (row.value, row.config_source, row.read_only) == (value, source, True)
            shown = [(advertised, Source.STATIC_BROKER_CONFIG)] if settings else []
            assert [(one.value, one.source) for one in row.synonyms] == shown
            await broker.stop()

    try:
        asyncio.run(run())
    finally:
        port.release()
