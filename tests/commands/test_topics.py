"""`holdfast topics` and `brokers`, against Holdfast and Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cluster.waiting import wait_for
from tests.commands.shell import Shell

pytestmark = pytest.mark.slow


def described(shell: Shell, topic: str) -> dict[str, Any]:
    [found] = shell.json("topics", "describe", "-t", topic)["topics"]
    assert isinstance(found, dict)
    return found


def test_a_topic_is_created_listed_altered_and_deleted(shell: Shell) -> None:
    topic = shell.topic(2, "--config", "retention.ms=1000", "--config", "max.message.bytes=2000")
    [row] = [one for one in shell.json("topics", "list")["topics"] if one["topic"] == topic]
    assert row == {
        "topic": topic,
        "is_internal": False,
        "partitions": 2,
        "replication_factor": len(shell.brokers) if shell.kind == "kafka" else 3,
        "under_replicated": 0,
        "offline": 0,
    }
    words = ("--config", "retention.ms=2000", "--delete-config", "max.message.bytes")
    shell.run("topics", "alter", "-t", topic, "--partitions", "3", *words)
    found = described(shell, topic)
    assert found["config"] == {"retention.ms": "2000"}
    assert [one["partition"] for one in found["partitions"]] == [0, 1, 2]
    shell.run("topics", "delete", "-t", topic)
    assert topic not in shell.run("topics", "list")


def test_every_replica_has_its_offsets(shell: Shell) -> None:
    topic = shell.topic()
    shell.run("produce", "-t", topic, stdin=b"a\nb\nc\n")

    def caught_up() -> Any:
        [partition] = described(shell, topic)["partitions"]
        offsets = [(one["log_end_offset"], one["high_watermark"]) for one in partition["replicas"]]
        return partition if set(offsets) == {(3, 3)} else None

    partition = wait_for(caught_up, 60, lambda: str(described(shell, topic)))
    assert {one["broker"] for one in partition["replicas"]} == set(shell.brokers)
    assert partition["leader"] in shell.brokers
    assert partition["leader_epoch"] >= 0
    assert set(partition["isr"]) == set(shell.brokers)
    assert (partition["elr"], partition["last_known_elr"]) == ([], [])
    table = shell.lines("topics", "describe", "-t", topic)
    assert table[0].startswith(f"{topic}: 1 partition, id ")
    assert " ".join(table[1].split()) == "partition leader epoch isr elr replica start hw leo"
    assert [line.split()[-3:] for line in table[2:]] == [["0", "3", "3"]] * len(shell.brokers)


def test_what_the_cluster_refuses_is_1_and_names_the_reason(shell: Shell) -> None:
    topic = shell.topic()
    for arguments, reason in (
        (("create", "-t", topic), "TOPIC_ALREADY_EXISTS"),
        (("create", "-t", "no/name"), "INVALID_TOPIC_EXCEPTION"),
        (("create", "-t", "x", "--replication-factor", "99"), "INVALID_REPLICATION_FACTOR"),
        (("create", "-t", "x", "--config", "no.such=1", "--dry-run"), "INVALID_CONFIG"),
        (("alter", "-t", topic, "--partitions", "1"), "INVALID_PARTITIONS"),
        (("alter", "-t", "none", "--partitions", "1"), "no topic none"),
        (("describe", "-t", "none"), "no topic none"),
        (("delete", "-t", topic, "-t", "none"), "no topic none"),
    ):
        out, words = shell.ended("topics", *arguments, code=1)
        assert out == ""
        assert reason in words, (arguments, words)
        assert len(words.splitlines()) == 1
    assert topic in shell.run("topics", "list"), "a wrong name deletes nothing"


def test_a_dry_run_and_an_existing_topic_change_nothing(shell: Shell) -> None:
    name = shell.new_name("dry")
    assert "could be created" in shell.ended("topics", "create", "-t", name, "--dry-run")[1]
    assert name not in shell.run("topics", "list")
    topic = shell.topic(2)
    words = shell.ended("topics", "create", "-t", topic, "--partitions", "5", "--if-not-exists")[1]
    assert words == f"{topic}: exists already\n"
    assert len(described(shell, topic)["partitions"]) == 2


def test_bad_input_is_64_before_anything_is_asked(shell: Shell) -> None:
    for arguments in (
        ("alter", "-t", "x"),
        ("create", "-t", "x", "--partitions", "0"),
        ("create", "-t", "x", "--config", "nothing"),
        ("create",),
    ):
        assert shell.run("topics", *arguments, code=64) == ""


def test_brokers_have_racks_disks_and_one_controller(shell: Shell) -> None:
    shell.topic()
    rows = shell.json("brokers", "list")["brokers"]
    assert [row["broker"] for row in rows] == list(shell.brokers)
    assert [row["address"] for row in rows] == shell.bootstrap.split(",")
    assert {row["rack"] for row in rows} == {"r1"}
    assert sum(row["is_controller"] for row in rows) == 1
    for row in rows:
        [disk] = row["log_dirs"]
        assert disk["error"] is None
        assert disk["logs"] == row["replicas"] > 0
        assert 0 < disk["usable_bytes"] <= disk["total_bytes"]
    table = shell.lines("brokers", "list")
    assert table[0].split()[:4] == ["broker", "address", "rack", "leaders"]
    assert table[-1] == "* the controller"
