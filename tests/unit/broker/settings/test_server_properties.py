"""A server.properties: its settings, and its possible errors."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from holdfast.broker.settings import (
    BROKER,
    BrokerSettings,
    Endpoint,
    Kind,
    SettingsError,
    load,
    load_file,
)
from holdfast.broker.settings.layers import TOPIC_SYNONYMS
from holdfast.broker.settings.typed_settings import SPECIAL

KRAFT = """
process.roles=broker,controller
node.id=4
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://example.org:19092,CONTROLLER://example.org:9093
controller.listener.names=CONTROLLER
log.dirs=/data/one, /data/two
"""
TYPES = {
    Kind.BOOLEAN: bool,
    Kind.INT: int,
    Kind.SHORT: int,
    Kind.LONG: int,
    Kind.STRING: str | None,
}


def settings_of(*lines: str) -> BrokerSettings:
    return load("\n".join(("node.id=1", *lines))).need()


def errors_of(*lines: str, node: str = "node.id=1") -> list[str]:
    return [str(problem) for problem in load("\n".join((node, *lines)), title="f").errors]


def warnings_of(*lines: str) -> list[str]:
    return [str(problem) for problem in load("\n".join(("node.id=1", *lines)), title="f").warnings]


# Valid files.


def test_kafkas_defaults_hold_where_the_file_is_silent() -> None:
    settings = settings_of()
    assert settings.replica_lag_time_max_ms == 30_000
    assert settings.default_replication_factor == 1
    assert settings.auto_create_topics_enable is True
    assert settings.zookeeper_session_timeout_ms == 18_000
    assert settings.log_dirs == (Path("/tmp/kafka-logs"),)
    assert settings.broker_rack is None


def test_without_listeners_a_broker_serves_its_own_machine() -> None:
    """Kafka's default binds every address in plain text, which is not safe."""
    settings = settings_of()
    assert settings.listener == settings.advertised_listener == Endpoint("127.0.0.1", 9092)
    assert settings.advertised_listener == settings.listener
    assert load("node.id=1").warnings == ()


def test_a_file_of_a_kraft_cluster_starts_a_broker() -> None:
    loaded = load(KRAFT)
    settings = loaded.need()
    assert settings.node_id == 4
    assert settings.listener == Endpoint("", 9092)
    assert settings.advertised_listener == Endpoint("example.org", 19092)
    assert settings.log_dirs == (Path("/data/one"), Path("/data/two"))
    assert settings.store == Path("/data/holdfast-store.sqlite")
    [warning] = loaded.warnings
    assert "process.roles is known, and has no effect here" in warning.text


def test_zookeeper_takes_the_place_of_our_own_store() -> None:
    settings = settings_of("zookeeper.connect=z:2181/chroot", "zookeeper.session.timeout.ms=6000")
    assert (settings.store, settings.zookeeper_connect) == (None, "z:2181/chroot")
    assert settings.zookeeper_connection_timeout_ms == 6_000


def test_our_own_settings_are_paths() -> None:
    settings = settings_of("holdfast.store=/s", "holdfast.trace=", "holdfast.control=/c")
    assert (settings.store, settings.trace, settings.control) == (Path("/s"), None, Path("/c"))


def test_broker_id_replaces_node_id() -> None:
    assert load("broker.id=7").need().node_id == 7
    assert load("broker.id=7\nnode.id=7").need().node_id == 7


def test_overrides_win_over_the_file() -> None:
    loaded = load("node.id=1\nnum.partitions=2", ["num.partitions=3", "broker.rack = a=b"])
    settings = loaded.need()
    assert (settings.num_partitions, settings.broker_rack) == (3, "a=b")
    assert loaded.where["num.partitions"] == "--config num.partitions=3"


def test_limits_of_single_addresses() -> None:
    limits = settings_of("max.connections.per.ip.overrides=host:5, [::1]:7")
    assert limits.max_connections_per_ip_overrides == {"host": 5, "::1": 7}


@pytest.mark.parametrize(
    ("selector", "nearest"), [("RackAwareReplicaSelector", True), ("LeaderSelector", False)]
)
def test_the_selector_says_who_serves_readers(selector: str, nearest: bool) -> None:
    line = f"replica.selector.class=org.apache.kafka.common.replica.{selector}"
    assert settings_of(line).reads_nearest_replica is nearest


def test_a_file_need_not_be_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    for encoding in ("utf-8", "latin-1"):
        path.write_text("node.id=1\nbroker.rack=Zürich", encoding)
        assert load_file(path).need().broker_rack == "Zürich"


def test_every_field_has_the_type_of_its_setting() -> None:
    hints = get_type_hints(BrokerSettings)
    plain = [one.name for one in fields(BrokerSettings) if one.name not in SPECIAL]
    wrong = {
        name: hints[name]
        for name in plain
        if hints[name] != TYPES[BROKER[name.replace("_", ".")].kind]
    }
    assert wrong == {}


def test_every_setting_that_acts_is_read() -> None:
    """A setting that acts is a field of `BrokerSettings`, or topics inherit it; and the reverse."""
    read: dict[str, Any] = {one.name.replace("_", "."): None for one in fields(BrokerSettings)}
    read |= {unit.name: None for units in TOPIC_SYNONYMS.values() for unit in units}
    elsewhere = ("node.id", "broker.id", "listeners", "advertised.listeners", "log.dir")
    read |= dict.fromkeys((*elsewhere, "controller.listener.names", "replica.selector.class"))
    read |= dict.fromkeys(("holdfast.store", "holdfast.trace", "holdfast.control"))
    read |= {"holdfast.metrics.listener": None}
    acting = {name for name, one in BROKER.items() if one.acts}
    assert acting <= set(read)
    own = {one.name.replace("_", ".") for one in fields(BrokerSettings) if one.name not in SPECIAL}
    assert own <= acting


# Errors.


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("num.partitons=3", "f:2: num.partitons is not a setting; did you mean num.partitions?"),
        ("qwertz=3", "f:2: qwertz is not a setting"),
        ("num.partitions=0", "f:2: num.partitions=0: Value must be at least 1"),
        ("offsets.topic.replication.factor=0", "f:2: offsets.topic.replication.factor=0: Value mu"),
        ("ssl.key.password=\\u00zz", "f:2: \\u needs four hexadecimal digits"),
        ("retention.ms=5", "f:2: retention.ms is a setting of topics; a broker's is log.retention"),
        ("remote.storage.enable=true", "f:2: remote.storage.enable is a setting of topics"),
        ("replica.lag.time.max.ms=400", "f:2: replica.lag.time.max.ms=400: is below replica.fetch"),
        ("replica.fetch.wait.max.ms=30001", "f:2: replica.lag.time.max.ms: is below replica.fetch"),
        ("group.max.session.timeout.ms=5", "f:2: group.max.session.timeout.ms=5: is below group.m"),
        ("request.timeout.ms=0", "f:2: request.timeout.ms=0: Value must be at least 1"),
        ("queued.max.request.bytes=5", "f:2: queued.max.request.bytes=5: is below socket.request"),
        ("max.connections.per.ip=0", "f:2: max.connections.per.ip=0: 0 is possible only with"),
        ("max.connections.per.ip.overrides=a:b", "f:2: max.connections.per.ip.overrides: 'a:b' is"),
        ("log.retention.hours=0", "f:2: log.retention.hours=0: 0 would delete every"),
        ("log.dirs=", "f:2: log.dirs=: names an empty path"),
        ("log.dirs=/a,/a", "f:2: log.dirs=/a,/a: names a directory twice"),
        ("replica.selector.class=x", "f:2: replica.selector.class=x: no Java class can be loaded"),
        ("broker.id=2", "f:2: broker.id=2: contradicts node.id=1"),
        ("listeners=SSL://:1", "f:2: listeners: 'SSL://:1': only PLAINTEXT is supported"),
        ("listeners=PLAINTEXT://h", "f:2: listeners: 'PLAINTEXT://h' is not of the form"),
        ("listeners=PLAINTEXT://:70000", "f:2: listeners: 'PLAINTEXT://:70000': a port is at most"),
        ("listeners=", "f:2: listeners: one PLAINTEXT listener is needed, not 0"),
        ("advertised.listeners=PLAINTEXT://0.0.0.0:1", "f:2: advertised.listeners: clients cannot"),
    ],
)
def test_what_is_wrong_and_where(line: str, error: str) -> None:
    assert errors_of(line)[0].startswith(error)


def test_all_errors_are_reported_together() -> None:
    found = errors_of("num.partitions=x", "log.dirz=/a", "holdfast.store=/s", "zookeeper.connect=z")
    assert [error.split(":")[1] for error in found] == ["2", "3", "4"]


def test_a_wrong_value_is_not_blamed_twice() -> None:
    assert len(errors_of(node="node.id=x")) == 1
    assert len(errors_of("replica.lag.time.max.ms=x")) == 1
    assert len(errors_of("listeners=SSL://:1", "num.partitions=1")) == 1


def test_a_broker_needs_a_number() -> None:
    assert errors_of(node="") == [
        "f: node.id: is missing: every broker needs a number of its own",
    ]
    assert "at least 0" in errors_of(node="node.id=-1")[0]
    assert "at least 0" in errors_of(node="broker.id=-2")[0]


def test_binding_everywhere_needs_an_advertised_address() -> None:
    assert "clients cannot connect to 0.0.0.0" in errors_of("listeners=PLAINTEXT://0.0.0.0:9092")[0]
    advertised = "advertised.listeners=PLAINTEXT://[::1]:9092"
    settings = settings_of("listeners=PLAINTEXT://0.0.0.0:9092", advertised)
    assert str(settings.advertised_listener) == "[::1]:9092"


@pytest.mark.parametrize("override", ["num.partitions", "=3"])
def test_an_override_is_a_name_and_a_value(override: str) -> None:
    [error] = load("node.id=1", [override]).errors
    assert str(error) == f"--config {override}: an override is name=value"


@pytest.mark.parametrize(
    ("lines", "warning"),
    [
        (["num.io.threads=3"], "f:2: num.io.threads is known, and has no effect here"),
        (["listener.name.x.ssl.key=3"], "f:2: listener.name.x.ssl.key has no effect here"),
        (["num.partitions=2", "num.partitions=3"], "f:3: num.partitions is given twice: this line"),
        (["min.insync.replicas=2"], "f:2: min.insync.replicas=2: is above default.replication"),
    ],
)
def test_what_may_be_meant_is_a_warning(lines: list[str], warning: str) -> None:
    [found] = warnings_of(*lines)
    assert found.startswith(warning)
    assert errors_of(*lines) == []


def test_a_secret_is_not_shown() -> None:
    shown = [*warnings_of("ssl.key.password=geheim"), *errors_of("ssl.key.password=geheim")]
    assert not any("geheim" in line for line in shown)


def test_need_raises_all_errors() -> None:
    with pytest.raises(SettingsError, match=r"num\.partitions=0.*log\.dirz") as caught:
        load("node.id=1\nnum.partitions=0\nlog.dirz=/a").need()
    assert len(caught.value.problems) == 2
