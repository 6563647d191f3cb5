"""`holdfast groups`, against Holdfast and Apache Kafka."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.commands.shell import Shell

pytestmark = pytest.mark.slow


def described(shell: Shell, group: str) -> dict[str, Any]:
    [found] = shell.json("groups", "describe", "-G", group)["groups"]
    assert isinstance(found, dict)
    return found


def with_offsets(shell: Shell, rows: bytes = b"a\nb\nc\nd\n") -> tuple[str, str]:
    """A topic of two partitions, and a group that has read all of it."""
    topic, group = shell.topic(2), shell.new_name("group")
    shell.run("produce", "-t", topic, "-p", "0", stdin=rows)
    shell.run("consume", "-t", topic, "-G", group, "-e")
    return topic, group


@contextmanager
def member(shell: Shell, topic: str, group: str) -> Iterator[None]:
    """A consumer that stays; it has read a record when this begins."""
    command = [sys.executable, "-m", "holdfast", "consume", "-t", topic, "-G", group]
    with subprocess.Popen([*command, "-b", shell.bootstrap], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.terminate()


def test_offsets_and_lag(shell: Shell) -> None:
    topic, group = with_offsets(shell)
    shell.run("produce", "-t", topic, "-p", "0", stdin=b"e\nf\n")
    assert group in [one["group"] for one in shell.json("groups", "list")["groups"]]
    found = described(shell, group)
    assert (found["state"], found["members"]) == ("EMPTY", [])
    assert found["partitions"] == [
        {"topic": topic, "partition": 0, "committed": 4, "end": 6, "lag": 2, "member": None}
    ]
    table = shell.lines("groups", "describe", "-G", group)
    assert table[0] == f"{group}: EMPTY, 0 members, lag 2"
    assert table[2].split() == [topic, "0", "4", "6", "2", "-"]


def test_members_own_partitions_and_hold_their_offsets(shell: Shell) -> None:
    topic, group = shell.topic(2), shell.new_name("group")
    shell.run("produce", "-t", topic, "-p", "0", stdin=b"a\n")
    with member(shell, topic, group):
        found = described(shell, group)
        [one] = found["members"]
        assert found["state"] == "STABLE"
        assert [row["member"] for row in found["partitions"]] == [one["member"]] * 2
        assert one["host"]
        words = ("-G", group, "-t", topic, "--to-latest", "--execute")
        assert "stop its consumers first" in shell.ended("groups", "reset", *words, code=1)[1]
        assert "NON_EMPTY_GROUP" in shell.ended("groups", "delete", "-G", group, code=1)[1]


def test_offsets_are_reset_only_when_asked_to(shell: Shell) -> None:
    topic, group = with_offsets(shell)
    words = ("groups", "reset", "-G", group, "-t", f"{topic}:0")
    for target, new in (
        (("--to-earliest",), 0),
        (("--to-latest",), 4),
        (("--to-current",), 4),
        (("--to-offset", "1"), 1),
        (("--to-offset", "99"), 4),
        (("--shift-by", "-3"), 1),
        (("--shift-by", "-99"), 0),
        (("--to-datetime", "1980-01-01"), 0),
        (("--to-datetime", "2100-01-01T00:00:00+01:00"), 4),
    ):
        planned = shell.json(*words, *target)
        assert planned["executed"] is False
        [row] = planned["offsets"]
        assert row == {"topic": topic, "partition": 0, "current": 4, "new": new}, target
    assert described(shell, group)["partitions"][0]["committed"] == 4
    _, said = shell.ended(*words, "--to-earliest")
    assert said == "nothing was changed: --execute commits the new offsets\n"
    done = shell.json(*words, "--shift-by", "-3", "--execute")
    assert done["executed"] is True
    assert described(shell, group)["partitions"][0]["committed"] == 1
    assert shell.lines("consume", "-t", topic, "-G", group, "-e") == ["b", "c", "d"]


def test_a_topic_without_offsets_gets_some(shell: Shell) -> None:
    topic, group = with_offsets(shell)
    other = shell.topic(2)
    shell.run("produce", "-t", other, "-p", "1", stdin=b"x\n")
    words = ("groups", "reset", "-G", group, "--execute")
    rows = shell.json(*words, "-t", other, "--to-latest")["offsets"]
    assert [(row["current"], row["new"]) for row in rows] == [(None, 0), (None, 1)]
    rows = shell.json(*words, "--all-topics", "--to-earliest")["offsets"]
    assert {row["topic"] for row in rows} == {topic, other}
    assert {row["new"] for row in rows} == {0}


def test_groups_are_deleted(shell: Shell) -> None:
    _, group = with_offsets(shell)
    shell.run("groups", "delete", "-G", group)
    assert group not in shell.run("groups", "list")
    assert f"describe group {group}: " in shell.ended("groups", "describe", "-G", group, code=1)[1]
    assert f"delete group {group}: " in shell.ended("groups", "delete", "-G", group, code=1)[1]


def test_bad_input_is_64(shell: Shell) -> None:
    for arguments in (
        ("reset", "-G", "g", "-t", "x"),
        ("reset", "-G", "g", "-t", "x", "--to-latest", "--to-earliest"),
        ("reset", "-G", "g", "--to-latest"),
        ("reset", "-G", "g", "-t", "x", "--all-topics", "--to-latest"),
        ("reset", "-G", "g", "-t", "x:a", "--to-latest"),
        ("reset", "-G", "g", "-t", "x", "--to-datetime", "soon"),
        ("delete",),
    ):
        shell.run("groups", *arguments, code=64)
