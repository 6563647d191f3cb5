"""The effective settings of a topic: its own over those of its broker."""

from __future__ import annotations

import pytest

from holdfast.broker.settings import TOPIC, Found, Layers, Source, TopicConfigs, load
from holdfast.broker.settings.layers import TOPIC_SYNONYMS
from holdfast.core import FlushRule, ReadRule, Settings
from holdfast.storage import LogSettings

NEVER = 2**63 - 1


def topic(own: dict[str, str] | None = None, **layers: dict[str, str]) -> TopicConfigs:
    return TopicConfigs(own or {}, Layers(**layers))


def replica(topic: TopicConfigs, *lines: str) -> Settings:
    return topic.replica_settings(load("\n".join(("node.id=1", *lines))).need())


def test_without_settings_the_defaults_hold() -> None:
    assert topic().log_settings() == LogSettings()
    assert replica(topic()) == Settings(
        log_flush_interval_messages=NEVER, log_flush_interval_ms=NEVER
    )


def test_the_strongest_layer_wins() -> None:
    configs = topic({"retention.ms": "1"})
    layers: dict[str, dict[str, str]] = {}
    steps = [
        ("static", Source.STATIC_BROKER_CONFIG),
        ("cluster", Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("broker", Source.DYNAMIC_BROKER_CONFIG),
    ]
    for number, (layer, source) in enumerate(steps, start=2):
        layers[layer] = {"log.retention.ms": str(number)}
        configs = topic({}, **layers)
        assert configs.effective("retention.ms")[1:3] == (number, source)
    configs = topic({"retention.ms": "1"}, **layers)
    found = configs.effective("retention.ms")
    assert (found.value, found.source) == (1, Source.DYNAMIC_TOPIC_CONFIG)
    assert [one.text for one in found.synonyms] == ["1", "4", "3", "2", "168"]


def test_the_finest_unit_wins_and_is_converted() -> None:
    hours = {"log.retention.hours": "2"}
    assert topic(static=hours).value("retention.ms") == 7_200_000
    minutes = hours | {"log.retention.minutes": "3"}
    assert topic(static=minutes).value("retention.ms") == 180_000
    assert topic(static=minutes | {"log.retention.ms": "4"}).value("retention.ms") == 4
    assert topic(static={"log.retention.minutes": "-1"}).value("retention.ms") == -1


def test_the_default_names_where_it_comes_from() -> None:
    found = topic().effective("retention.ms")
    assert found.synonyms == (Found("log.retention.hours", "168", Source.DEFAULT_CONFIG),)
    assert (found.value, found.source) == (604_800_000, Source.DEFAULT_CONFIG)
    assert topic().effective("leader.replication.throttled.replicas").synonyms == ()


@pytest.mark.parametrize("name", TOPIC)
def test_a_broker_that_says_nothing_gives_a_topic_its_default(name: str) -> None:
    assert topic().value(name) == TOPIC[name].default_value()


def test_settings_of_storage() -> None:
    static = {"log.roll.hours": "1", "log.cleanup.policy": "compact", "message.max.bytes": "77"}
    own = {"segment.bytes": "2000000", "min.cleanable.dirty.ratio": "0.25"}
    static |= {"producer.id.expiration.ms": "9"}
    assert topic(own, static=static).log_settings() == LogSettings(
        segment_bytes=2_000_000,
        segment_ms=3_600_000,
        cleanup_policy=("compact",),
        max_message_bytes=77,
        min_cleanable_dirty_ratio=0.25,
        producer_id_expiration_ms=9,
    )


def test_small_segments_are_for_tests() -> None:
    own = {"segment.bytes": "2000000", "internal.segment.bytes": "100"}
    assert topic(own).log_settings().segment_bytes == 100


def test_nothing_that_a_topic_inherits_is_missing() -> None:
    alone = [name for name in TOPIC if name not in TOPIC_SYNONYMS]
    assert alone == [
        "follower.replication.throttled.replicas",
        "internal.segment.bytes",
        "leader.replication.throttled.replicas",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    ]


@pytest.mark.parametrize(
    ("own", "rule"),
    [
        ({}, FlushRule.PAGE_CACHE),
        ({"flush.messages": "1"}, FlushRule.EVERY_APPEND),
        ({"flush.messages": "1", "flush.ms": "5"}, FlushRule.EVERY_APPEND),
        ({"flush.messages": "2"}, FlushRule.EVERY_N_MESSAGES),
        ({"flush.ms": "5"}, FlushRule.EVERY_T_MS),
        ({"flush.messages": "2", "flush.ms": "5"}, FlushRule.EVERY_N_MESSAGES_OR_T_MS),
    ],
)
def test_when_a_log_is_flushed(own: dict[str, str], rule: FlushRule) -> None:
    settings = replica(topic(own))
    assert settings.flush_rule is rule
    assert settings.log_flush_interval_messages == int(own.get("flush.messages", NEVER))
    assert settings.log_flush_interval_ms == int(own.get("flush.ms", NEVER))


def test_settings_of_the_core() -> None:
    own = {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    lines = ("replica.lag.time.max.ms=900", f"replica.selector.class={selector}")
    settings = replica(topic(own), *lines)
    assert (settings.min_insync_replicas, settings.unclean_leader_election_enable) == (2, True)
    assert (settings.replica_lag_time_max_ms, settings.replica_fetch_wait_max_ms) == (900, 500)
    assert settings.read_rule is ReadRule.ANY_REPLICA


def test_typed_settings() -> None:
    own = {
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.after.max.ms": "5",
        "leader.replication.throttled.replicas": "0:1,3:2",
        "follower.replication.throttled.replicas": "*",
    }
    settings = topic(own).settings(load("node.id=1").need())
    assert settings.records.is_append_time
    assert settings.records.timestamp_after_max_ms == 5
    assert settings.records.timestamp_before_max_ms == NEVER
    assert settings.leader_throttled.has(3, 2)
    assert not settings.leader_throttled.has(3, 1)
    assert settings.follower_throttled.has(9, 9)
    assert settings.log == LogSettings()
    assert settings.core.min_insync_replicas == 1
