"""Changes of settings while brokers run, and the errors of invalid ones."""

from __future__ import annotations

import pytest

from holdfast.broker.errors import RefusedError
from holdfast.broker.settings import (
    TOPIC,
    Alteration,
    BrokerSettings,
    Layers,
    Operation,
    TopicConfigs,
    alter_broker,
    alter_cluster,
    alter_topic,
    check_topic_configs,
    replacing,
    usable,
)
from holdfast.model import ErrorCode

SET, DELETE, APPEND, SUBTRACT = Operation
BASE = Layers(static={"node.id": "1", "log.retention.ms": "5"})


def asks(name: str, value: str | None, operation: int = SET) -> list[Alteration]:
    return [Alteration(name, operation, value)]


# Topics.


def test_good_settings_are_taken_as_they_are() -> None:
    configs = {"retention.ms": "-1", "cleanup.policy": "compact,delete"}
    assert check_topic_configs(dict(configs)) == configs


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("retention", "5", "Unknown topic config name: retention"),
        ("retention.msec", "5", "did you mean retention.ms?"),
        ("log.retention.ms", "5", "Unknown topic config name: log.retention.ms"),
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("min.insync.replicas", "0", "Value must be at least 1"),
        ("segment.bytes", "100", "Value must be at least 1048576"),
        ("cleanup.policy", "keep", "List must hold only: compact, delete"),
        ("compression.type", "rar", "String must be one of"),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
    ],
)
def test_an_impossible_setting_of_a_topic_is_refused(
    name: str, value: str | None, message: str
) -> None:
    with pytest.raises(RefusedError) as caught:
        check_topic_configs({name: value})
    assert message in caught.value.message
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(RefusedError, match=r"min\.compaction\.lag\.ms \(7\) > max"):
        check_topic_configs({"min.compaction.lag.ms": "7", "max.compaction.lag.ms": "6"})


def test_single_settings_come_and_go() -> None:
    topic = TopicConfigs({"retention.ms": "5", "flush.ms": "7"})
    changed = alter_topic(topic, [*asks("retention.ms", "6"), *asks("flush.ms", None, DELETE)])
    assert changed == {"retention.ms": "6"}
    assert topic.own == {"retention.ms": "5", "flush.ms": "7"}
    assert alter_topic(topic, asks("segment.ms", None, DELETE)) == topic.own


def test_lists_grow_and_shrink() -> None:
    name = "leader.replication.throttled.replicas"
    topic = TopicConfigs({name: "0:1,0:2"})
    assert alter_topic(topic, asks(name, "0:2,1:1", APPEND)) == {name: "0:1,0:2,1:1"}
    assert alter_topic(topic, asks(name, "0:1,9:9", SUBTRACT)) == {name: "0:2"}
    assert alter_topic(topic, asks(name, "0:1,0:2", SUBTRACT)) == {name: ""}


def test_an_unset_list_grows_from_the_effective_value() -> None:
    name = "cleanup.policy"
    assert alter_topic(TopicConfigs(), asks(name, "compact", APPEND)) == {name: "delete,compact"}
    compacted = TopicConfigs({}, Layers(static={"log.cleanup.policy": "compact"}))
    assert alter_topic(compacted, asks(name, "compact", SUBTRACT)) == {name: ""}


@pytest.mark.parametrize(
    ("alterations", "code", "message"),
    [
        (asks("retention.ms", "6", APPEND), ErrorCode.INVALID_CONFIG, "type is not LIST"),
        (asks("retention.ms", None), ErrorCode.INVALID_REQUEST, "Null value"),
        (asks("retention.ms", "6", 9), ErrorCode.INVALID_REQUEST, "Unknown operation 9"),
        (asks("nothing", None, DELETE), ErrorCode.INVALID_CONFIG, "Unknown topic config name"),
        (asks("flush.ms", "6") * 2, ErrorCode.INVALID_REQUEST, "duplicate config keys: flush.ms"),
        (asks("cleanup.policy", "x", APPEND), ErrorCode.INVALID_CONFIG, "List must hold only"),
    ],
)
def test_an_impossible_change_is_refused(
    alterations: list[Alteration], code: ErrorCode, message: str
) -> None:
    with pytest.raises(RefusedError, match=message) as caught:
        alter_topic(TopicConfigs(), alterations)
    assert caught.value.code is code


def test_the_older_call_replaces_everything() -> None:
    topic = TopicConfigs({"retention.ms": "5", "flush.ms": "7"})
    assert alter_topic(topic, replacing(topic.own, {"flush.ms": "8"})) == {"flush.ms": "8"}


def test_what_the_store_holds_is_used_as_far_as_it_can_be() -> None:
    stored = {"retention.ms": "5", "flush.ms": "x", "gone": "1"}
    good, problems = usable(TOPIC, stored)
    assert good == {"retention.ms": "5"}
    assert problems == ["flush.ms: Not a number of type LONG", "gone is not a setting"]


# Brokers.


def test_a_change_for_one_broker_wins_over_one_for_all() -> None:
    changed = alter_cluster(BASE, asks("log.retention.ms", "6"))
    assert TopicConfigs({}, changed).value("retention.ms") == 6
    changed = alter_broker(changed, asks("log.retention.ms", "7"))
    assert TopicConfigs({}, changed).value("retention.ms") == 7
    changed = alter_broker(changed, asks("log.retention.ms", None, DELETE))
    assert TopicConfigs({}, changed).value("retention.ms") == 6
    changed = alter_cluster(changed, asks("log.retention.ms", None, DELETE))
    assert changed == BASE


def test_a_broker_runs_by_its_new_settings() -> None:
    changed = alter_broker(BASE, asks("leader.replication.throttled.rate", "1000"))
    assert BrokerSettings.of(changed).leader_replication_throttled_rate == 1_000
    changed = alter_cluster(changed, asks("max.connections.per.ip.overrides", "a:3"))
    assert BrokerSettings.of(changed).max_connections_per_ip_overrides == {"a": 3}


def test_a_list_of_a_broker_grows_from_the_effective_value() -> None:
    changed = alter_cluster(BASE, asks("log.cleanup.policy", "compact", APPEND))
    assert changed.cluster == {"log.cleanup.policy": "delete,compact"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num.partitions", "3", "Cannot update these configs dynamically: num.partitions"),
        ("listeners", "PLAINTEXT://:1", "Cannot update these configs dynamically: listeners"),
        ("num.partitons", "3", "Unknown broker config name: num.partitons; did you mean"),
        ("message.max.bytes", "-1", "Invalid value -1 for configuration message.max.bytes"),
        ("message.max.bytes", str(2**31 - 1), "is below message.max.bytes"),
        ("max.connections.per.ip.overrides", "x", "is not of the form host:count"),
        ("ssl.key.password", None, "Null value not supported"),
    ],
)
def test_an_impossible_change_of_a_broker_is_refused(
    name: str, value: str | None, message: str
) -> None:
    with pytest.raises(RefusedError, match=message) as caught:
        alter_broker(BASE, asks(name, value))
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_what_differs_from_broker_to_broker_cannot_be_set_for_all() -> None:
    with pytest.raises(RefusedError, match="at default cluster level"):
        alter_cluster(BASE, asks("leader.replication.throttled.rate", "1"))


def test_a_secret_is_not_repeated() -> None:
    with pytest.raises(RefusedError) as caught:
        alter_broker(BASE, asks("ssl.key.password", "geheim", APPEND))
    assert "geheim" not in caught.value.message
