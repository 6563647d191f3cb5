"""The answers of DescribeConfigs."""

from __future__ import annotations

from holdfast.broker.settings import (
    TOPIC,
    DescribedConfig,
    Kind,
    Layers,
    Source,
    Synonym,
    TopicConfigs,
    describe_broker,
    describe_cluster,
    describe_topic,
)

LAYERS = Layers(
    static={"log.retention.hours": "2", "ssl.key.password": "geheim", "num.partitions": "3"},
    cluster={"log.retention.ms": "9", "message.max.bytes": "77"},
)


def one_of(layers: Layers, name: str) -> DescribedConfig:
    [row] = describe_broker(layers, [name])
    return row


def test_a_topics_setting_says_where_it_comes_from() -> None:
    [row] = describe_topic(TopicConfigs({"retention.ms": "5"}, LAYERS), ["retention.ms", "other"])
    assert (row.name, row.value, row.kind) == ("retention.ms", "5", Kind.LONG)
    assert (row.source, row.is_default) == (Source.DYNAMIC_TOPIC_CONFIG, False)
    assert not row.read_only
    assert row.documentation == TOPIC["retention.ms"].meaning
    assert row.synonyms == (
        Synonym("retention.ms", "5", Source.DYNAMIC_TOPIC_CONFIG),
        Synonym("log.retention.ms", "9", Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        Synonym("log.retention.hours", "2", Source.STATIC_BROKER_CONFIG),
        Synonym("log.retention.hours", "168", Source.DEFAULT_CONFIG),
    )


def test_without_names_all_settings_but_internal_ones_are_described() -> None:
    names = [row.name for row in describe_topic(TopicConfigs())]
    assert names == [name for name in TOPIC if name != "internal.segment.bytes"]
    assert "producer.id.expiration.check.interval.ms" not in [
        row.name for row in describe_broker(LAYERS)
    ]


def test_a_brokers_setting_says_whether_it_can_be_changed() -> None:
    assert one_of(LAYERS, "num.partitions").read_only
    assert one_of(LAYERS, "listeners").read_only
    assert not one_of(LAYERS, "message.max.bytes").read_only
    assert one_of(LAYERS, "num.partitions").source is Source.STATIC_BROKER_CONFIG
    assert one_of(LAYERS, "num.io.threads").is_default


def test_what_stands_in_for_a_brokers_setting_is_not_its_value() -> None:
    row = one_of(Layers(static={"log.retention.hours": "2"}), "log.retention.ms")
    assert (row.value, row.source, row.synonyms) == (None, Source.DEFAULT_CONFIG, ())
    [first, *_] = one_of(LAYERS, "log.retention.ms").synonyms
    assert first == Synonym("log.retention.ms", "9", Source.DYNAMIC_DEFAULT_BROKER_CONFIG)
    names = [one.name for one in one_of(LAYERS, "log.retention.hours").synonyms]
    assert names == ["log.retention.hours", "log.retention.hours"]


def test_a_sensitive_value_is_not_described() -> None:
    row = one_of(LAYERS, "ssl.key.password")
    assert (row.value, row.is_sensitive, row.is_default) == (None, True, False)
    assert [one.value for one in row.synonyms] == [None]


def test_of_all_brokers_only_what_was_set_for_all() -> None:
    rows = describe_cluster(LAYERS)
    assert {row.name: row.value for row in rows} == {
        "log.retention.ms": "9",
        "message.max.bytes": "77",
    }
    assert [len(row.synonyms) for row in rows] == [1, 1]
    assert [row.name for row in describe_cluster(LAYERS, ["message.max.bytes"])] == [
        "message.max.bytes"
    ]
