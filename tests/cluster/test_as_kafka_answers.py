"""Small things that clients notice, held against the answers of Apache Kafka 4.3.1.

Its broker had no authorizer and `group.coordinator.rebalance.protocols=classic`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any, TypeVar

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from holdfast.cluster import Cluster
from holdfast.cluster.client.client import Address, Connection
from holdfast.model import ErrorCode
from holdfast.protocol import APIS, Request, Response, decode_response, encode_request
from holdfast.protocol.messages import acls, configs, consumer_groups, sasl, transactions
from holdfast.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from holdfast.protocol.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from holdfast.protocol.messages.control import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
)
from holdfast.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from holdfast.protocol.records import NewRecord, build_batch
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ALL_OF_CLUSTER, ALL_OF_TOPIC, NOT_ASKED = 8096, 3576, -(2**31)
GROUP = 32
BETWEEN_BROKERS = {4, 5, 6, 7, 56}

Answer = TypeVar("Answer", bound=Response)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1) as cluster:
        cluster.create_topic("t")
        cluster.create_topic("compacted", config={"cleanup.policy": "compact"})
        yield cluster


def ask(cluster: Cluster, request: Request, version: int, kind: type[Answer]) -> Answer:
    entry = cluster.entry(1)
    with closing(Connection(Address(entry.host, entry.port), 30.0)) as connection:
        answer = connection.send(request, version)
    assert isinstance(answer, kind)
    return answer


def test_records_to_blame_are_named(cluster: Cluster) -> None:
    records = [NewRecord(b"a", b"key"), NewRecord(b"b"), NewRecord(b"c")]
    data = PartitionProduceData(index=0, records=bytes(build_batch(records)))
    topics = [TopicProduceData(name="compacted", partition_data=[data])]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)
    [topic] = ask(cluster, request, 9, ProduceResponse).responses
    [response] = topic.partition_responses
    assert response.error_code == ErrorCode.INVALID_RECORD
    assert [one.batch_index for one in response.record_errors] == [1, 2]
    assert all("no key" in (one.batch_index_error_message or "") for one in response.record_errors)
    assert cluster.consume("compacted") == []


@pytest.mark.parametrize("version", [8, 10, 12])
def test_without_an_authorizer_every_operation_is_authorized(
    cluster: Cluster, version: int
) -> None:
    def metadata(*, asked: bool) -> MetadataResponse:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name="unknown")],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=asked,
            include_cluster_authorized_operations=asked and version <= 10,
        )
        return ask(cluster, request, version, MetadataResponse)

    for asked, of_topic in ((True, ALL_OF_TOPIC), (False, NOT_ASKED)):
        response = metadata(asked=asked)
        assert [one.topic_authorized_operations for one in response.topics] == [of_topic] * 2
        of_cluster = ALL_OF_CLUSTER if asked and version <= 10 else NOT_ASKED
        assert response.cluster_authorized_operations == of_cluster


def test_the_cluster_and_its_partitions_are_described_with_operations(cluster: Cluster) -> None:
    for asked, of_cluster in ((True, ALL_OF_CLUSTER), (False, NOT_ASKED)):
        request = DescribeClusterRequest(include_cluster_authorized_operations=asked)
        response = ask(cluster, request, 1, DescribeClusterResponse)
        assert response.cluster_authorized_operations == of_cluster
    every = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=10)
    partitions = ask(cluster, every, 0, DescribeTopicPartitionsResponse)
    assert {one.topic_authorized_operations for one in partitions.topics} == {ALL_OF_TOPIC}


def described(
    cluster: Cluster, group: str, keys: list[str] | None
) -> configs.DescribeConfigsResult:
    asked = configs.DescribeConfigsResource(
        resource_type=GROUP, resource_name=group, configuration_keys=keys
    )
    request = configs.DescribeConfigsRequest(resources=[asked], include_synonyms=True)
    [result] = ask(cluster, request, 4, configs.DescribeConfigsResponse).results
    return result


def altered(cluster: Cluster, group: str, name: str, value: str) -> tuple[ErrorCode, str | None]:
    config = configs.IncrementalAlterConfigsAlterableConfig(
        name=name, config_operation=0, value=value
    )
    resource = configs.IncrementalAlterConfigsResource(
        resource_type=GROUP, resource_name=group, configs=[config]
    )
    request = configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    [response] = ask(cluster, request, 1, configs.IncrementalAlterConfigsResponse).responses
    return ErrorCode(response.error_code), response.error_message


def test_a_group_has_settings_that_cannot_be_changed_here(cluster: Cluster) -> None:
    result = described(cluster, "g", None)
    assert result.error_code == ErrorCode.NONE
    values = {row.name: row.value for row in result.configs}
    assert values["consumer.session.timeout.ms"] == "45000"
    assert values["streams.num.standby.replicas"] == "0"
    assert len(values) == 17
    [row] = described(cluster, "g", ["consumer.session.timeout.ms", "nope"]).configs
    synonyms = [(one.name, one.value, one.source) for one in row.synonyms]
    assert synonyms == [("group.consumer.session.timeout.ms", "45000", 5)]
    nameless = described(cluster, "", None)
    assert nameless.error_code == ErrorCode.INVALID_REQUEST
    assert nameless.error_message == "Group name must not be empty"
    error, message = altered(cluster, "g", "consumer.session.timeout.ms", "50000")
    assert error is ErrorCode.INVALID_CONFIG
    assert "classic protocol" in (message or "")


def versions(cluster: Cluster, version: int = 4) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return ask(cluster, request, version, ApiVersionsResponse)


def test_clients_see_no_api_of_brokers_and_kafkas_features(cluster: Cluster) -> None:
    keys = {one.api_key for one in versions(cluster).api_keys}
    assert not keys & BETWEEN_BROKERS
    assert max(keys) <= 92, "no key that Kafka 4.3.1 does not know"
    response = versions(cluster)
    assert {(one.name, one.max_version) for one in response.supported_features} == {
        ("eligible.leader.replicas.version", 1),
        ("group.version", 0),
        ("share.version", 0),
        ("streams.version", 0),
        ("transaction.version", 0),
    }
    [elr] = response.finalized_features
    assert (elr.name, elr.max_version_level) == ("eligible.leader.replicas.version", 1)
    # Clients that speak version 3 may not know a lowest level of 0 (KAFKA-17011).
    assert list(versions(cluster, 3).supported_features) == []


def test_acls_are_refused_as_by_a_broker_without_an_authorizer(cluster: Cluster) -> None:
    any_: dict[str, Any] = {
        "resource_name_filter": None,
        "principal_filter": None,
        "host_filter": None,
    }
    numbers: dict[str, Any] = {"resource_type_filter": 1, "operation": 1, "permission_type": 1}
    described = acls.DescribeAclsRequest(**any_, **numbers)
    answer = ask(cluster, described, 3, acls.DescribeAclsResponse)
    assert answer.error_code == ErrorCode.SECURITY_DISABLED
    rule = acls.AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    created = ask(cluster, acls.CreateAclsRequest(creations=[rule]), 3, acls.CreateAclsResponse)
    assert [one.error_code for one in created.results] == [ErrorCode.SECURITY_DISABLED]
    deleted = acls.DeleteAclsRequest(filters=[acls.DeleteAclsFilter(**any_, **numbers)])
    results = ask(cluster, deleted, 3, acls.DeleteAclsResponse).filter_results
    assert [one.error_code for one in results] == [ErrorCode.SECURITY_DISABLED]


def test_sasl_is_refused_on_a_plaintext_listener(cluster: Cluster) -> None:
    asked = sasl.SaslHandshakeRequest(mechanism="PLAIN")
    answer = ask(cluster, asked, 1, sasl.SaslHandshakeResponse)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_the_new_consumer_protocol_is_refused(cluster: Cluster) -> None:
    joins = consumer_groups.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=0
    )
    answer = ask(cluster, joins, 0, consumer_groups.ConsumerGroupHeartbeatResponse)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    asked = consumer_groups.ConsumerGroupDescribeRequest(
        group_ids=["g"], include_authorized_operations=False
    )
    [group] = ask(cluster, asked, 0, consumer_groups.ConsumerGroupDescribeResponse).groups
    assert (group.group_id, group.error_code) == ("g", ErrorCode.UNSUPPORTED_VERSION)


def test_a_librdkafka_consumer_of_the_new_protocol_fails_aloud(cluster: Cluster) -> None:
    errors: list[KafkaError] = []
    config = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "new",
        "group.protocol": "consumer",
        "error_cb": errors.append,
        "log_level": 0,
    }
    consumer = Consumer(config)
    try:
        consumer.subscribe(["t"])

        def has_failed() -> bool:
            try:
                message = consumer.poll(0.1)
            except KafkaException as failure:
                errors.append(failure.args[0])
                return True
            error = message.error() if message is not None else None
            if error is not None:
                errors.append(error)
            return any(one.code() == KafkaError._FATAL for one in errors)

        wait_until(has_failed, f"a fatal error ({errors})")
    finally:
        consumer.close()


def test_apis_that_we_do_not_serve_are_refused_with_an_answer(cluster: Cluster) -> None:
    ends = transactions.EndTxnRequest(
        transactional_id="id", producer_id=1, producer_epoch=0, committed=True
    )
    assert ask(cluster, ends, 3, transactions.EndTxnResponse).error_code == (
        ErrorCode.UNSUPPORTED_VERSION
    )
    topic = transactions.AddPartitionsToTxnTopic(name="t", partitions=[0])
    adds = transactions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="id",
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[topic],
    )
    added = ask(cluster, adds, 3, transactions.AddPartitionsToTxnResponse)
    [of_topic] = added.results_by_topic_v3_and_below
    [result] = of_topic.results_by_partition
    assert result.partition_error_code == ErrorCode.UNSUPPORTED_VERSION


def sent_raw(cluster: Cluster, client_id: str, *requests: tuple[Request, int | None]) -> bytes:
    """What comes back for requests with another key than their own, until the broker hangs up."""
    entry = cluster.entry(1)
    with socket.create_connection((entry.host, entry.port), 60.0) as connection:
        for number, (request, key) in enumerate(requests):
            frame = bytearray(
                b"".join(encode_request(request, 0, correlation_id=number, client_id=client_id))
            )
            if key is not None:
                frame[4:6] = key.to_bytes(2, "big")
            connection.sendall(frame)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_key_93_is_kafkas_but_for_brokers_of_release_0_1(cluster: Cluster) -> None:
    asks = GetReplicaLogInfoRequest(topic_partitions=[])
    first = (ApiVersionsRequest(), None)
    got = sent_raw(cluster, "holdfast-broker-7", first, (asks, 93))
    size = int.from_bytes(got[:4], "big")
    response = decode_response(got[4 : 4 + size], APIS[18], 0)[1]
    assert isinstance(response, ApiVersionsResponse)
    assert {one.api_key for one in response.api_keys} >= BETWEEN_BROKERS | {30_093}
    answer = decode_response(got[8 + size :], APIS[GetReplicaLogInfoRequest.API_KEY], 0)[1]
    assert isinstance(answer, GetReplicaLogInfoResponse)
    assert sent_raw(cluster, "a client", (asks, 93)) == b""


@pytest.mark.parametrize("version", [0, 1, 2])
def test_produce_before_version_3_is_listed_and_closed(cluster: Cluster, version: int) -> None:
    [produce] = [one for one in versions(cluster).api_keys if one.api_key == 0]
    assert produce.min_version == 0
    entry = cluster.entry(1)
    with socket.create_connection((entry.host, entry.port), 60.0) as connection:
        body = bytes(2) + version.to_bytes(2, "big") + bytes(4 + 2 + 10)
        connection.sendall(len(body).to_bytes(4, "big") + body)
        assert connection.recv(1) == b""
