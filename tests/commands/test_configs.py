"""`holdfast configs`, against Holdfast and Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cluster.waiting import wait_for
from tests.commands.shell import Shell

pytestmark = pytest.mark.slow


def listed(shell: Shell, *resource: str) -> dict[str, dict[str, Any]]:
    rows = shell.json("configs", "list", *resource)["configs"]
    return {row["name"]: row for row in rows}


def wait_listed(shell: Shell, name: str, value: str | None, *resource: str) -> dict[str, Any]:
    """A broker applies a change a moment after the cluster has accepted it."""

    def look() -> dict[str, Any] | None:
        row = listed(shell, *resource).get(name, {})
        return {"row": row} if row.get("value") == value else None

    found = wait_for(look, 60, lambda: f"{name} is {listed(shell, *resource).get(name)}")["row"]
    assert isinstance(found, dict)
    return found


def test_a_topic_s_settings_are_set_and_removed(shell: Shell) -> None:
    topic = shell.topic()
    assert "retention.ms" not in listed(shell, "-t", topic)
    shell.run("configs", "set", "-t", topic, "retention.ms=1000", "cleanup.policy=compact")
    row = wait_listed(shell, "retention.ms", "1000", "-t", topic)
    assert (row["source"], row["is_read_only"]) == ("DYNAMIC_TOPIC_CONFIG", False)
    [row] = shell.json("configs", "describe", "-t", topic, "cleanup.policy")["configs"]
    assert (row["value"], row["default"]) == ("compact", "delete")
    shell.run("configs", "delete", "-t", topic, "retention.ms", "cleanup.policy")
    wait_listed(shell, "retention.ms", None, "-t", topic)
    table = shell.lines("configs", "describe", "-t", topic, "cleanup.policy")
    assert table[0].split() == ["name", "value", "source", "default"]
    assert table[1].split()[:4] == ["cleanup.policy", "delete", "DEFAULT_CONFIG", "delete"]


def test_a_broker_s_setting_wins_over_the_default_of_all(shell: Shell) -> None:
    name, one = "log.cleaner.threads", ("--broker", str(shell.brokers[0]))
    shell.run("configs", "set", "--cluster", f"{name}=2")
    wait_listed(shell, name, "2", "--cluster")
    row = wait_listed(shell, name, "2", *one)
    assert row["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    shell.run("configs", "set", *one, f"{name}=3")
    row = wait_listed(shell, name, "3", *one)
    assert (row["source"], row["default"]) == ("DYNAMIC_BROKER_CONFIG", "1")
    shell.run("configs", "delete", *one, name)
    wait_listed(shell, name, "2", *one)
    shell.run("configs", "delete", "--cluster", name)
    wait_listed(shell, name, None, *one)


def test_what_the_cluster_refuses_is_1_and_changes_nothing(shell: Shell) -> None:
    topic = shell.topic()
    words = ("configs", "set", "-t", topic, "retention.ms=1000", "max.message.bytes=many")
    assert "INVALID_CONFIG" in shell.ended(*words, code=1)[1]
    assert "retention.ms" not in listed(shell, "-t", topic)
    assert "has no setting" in shell.ended("configs", "describe", "-t", topic, "no", code=1)[1]
    shell.run("configs", "describe", "-t", "none", code=1)


def test_bad_input_is_64(shell: Shell) -> None:
    for arguments in (
        ("list",),
        ("list", "-t", "x", "--cluster"),
        ("set", "-t", "x"),
        ("set", "-t", "x", "nothing"),
        ("delete", "--cluster"),
    ):
        shell.run("configs", *arguments, code=64)
