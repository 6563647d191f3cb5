"""`holdfast produce` and `consume`, with kcat's habits, against Holdfast and Apache Kafka."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.shell import Shell

pytestmark = pytest.mark.slow


def test_keys_headers_and_nulls_come_back(shell: Shell) -> None:
    topic = shell.topic(2)
    rows = b"a:1\nb:2\nno key\n:empty key\nd:\n"
    words = ("-p", "1", "-K", ":", "-Z", "-H", "x=1", "-H", "x=2", "-H", "y")
    sent = shell.run("produce", "-t", topic, *words, "--json", stdin=rows).splitlines()
    acknowledged = [json.loads(line) for line in sent]
    assert [one["offset"] for one in acknowledged] == [0, 1, 2, 3, 4]
    assert {(one["topic"], one["partition"]) for one in acknowledged} == {(topic, 1)}
    assert acknowledged[2]["from"] == "stdin:3"
    found = [json.loads(line) for line in shell.lines("consume", "-t", topic, "-e", "-J")]
    assert [(one["key"], one["payload"]) for one in found] == [
        ("a", "1"),
        ("b", "2"),
        (None, "no key"),
        (None, "empty key"),
        ("d", None),
    ]
    first = found[0]
    assert first["headers"] == ["x", "1", "x", "2", "y", None]
    assert (first["topic"], first["partition"], first["offset"]) == (topic, 1, 0)
    assert first["tstype"] == "create"
    assert first["ts"] == acknowledged[0]["ts"]
    assert first["leader_epoch"] >= 0


def test_formats_are_kcat_s(shell: Shell) -> None:
    topic = shell.topic()
    shell.run("produce", "-t", topic, "-K", "|", "-Z", "-H", "h=v", stdin="k|vä\n|\n".encode())
    text = r"%t [%p] %o %k/%K %s/%S %h 100%% \x41\t|\n"
    assert shell.lines("consume", "-t", topic, "-e", "-f", text) == [
        f"{topic} [0] 0 k/1 vä/3 h=v 100% A\t|",
        f"{topic} [0] 1 /-1 /-1 h=v 100% A\t|",
    ]
    assert shell.run("consume", "-t", topic, "-e", "-Z", "-K", "=", "-D", ";") == "k=vä;NULL=NULL;"
    assert shell.run("consume", "-t", topic, "-c", "1", "-f", "%R").encode() == b"\0\0\0\x03"
    _, words = shell.ended("consume", "-t", topic, "-e", "-f", "%z", code=64)
    assert "%z is no token" in words


def test_what_is_no_text_is_base64_in_json(shell: Shell, tmp_path: Path) -> None:
    topic = shell.topic()
    (tmp_path / "picture").write_bytes(b"\xff\x00")
    shell.run("produce", "-t", topic, str(tmp_path / "picture"))
    [row] = [json.loads(line) for line in shell.lines("consume", "-t", topic, "-e", "-J")]
    assert row["payload_base64"] == "/wA="
    assert "payload" not in row


def test_positions(shell: Shell) -> None:
    topic = shell.topic(2)
    for number in range(5):
        shell.run("produce", "-t", topic, "-p", str(number % 2), stdin=f"{number}\n".encode())
    stamps = shell.lines("consume", "-t", topic, "-e", "-f", r"%T %s\n")
    time_of = {word: stamp for stamp, word in (line.split() for line in stamps)}
    for words, expected in (
        (("-o", "beginning"), "01234"),
        (("-o", "-1"), "34"),
        (("-o", "1"), "234"),
        (("-o", "1", "-p", "0"), "24"),
        (("-p", "1"), "13"),
        (("-o", f"s@{time_of['3']}"), "34"),
        (("-o", f"e@{time_of['2']}"), "01"),
        (("-o", f"s@{time_of['1']}", "-o", f"e@{time_of['4']}"), "123"),
        (("-o", "s@2100-01-01T00:00:00Z"), ""),
        (("-o", "e@1980-01-01"), ""),
        (("-o", "end"), ""),
    ):
        found = shell.lines("consume", "-t", topic, "-e", *words)
        assert "".join(sorted(found)) == expected, words
    until = ("-o", f"e@{time_of['4']}")
    assert sorted(shell.lines("consume", "-t", topic, *until)) == list("0123"), "ends without -e"


def test_a_count_ends_both(shell: Shell) -> None:
    topic = shell.topic()
    _, words = shell.ended("produce", "-t", topic, "-c", "2", stdin=b"a\nb\nc\n")
    assert words == f"2 records to {topic}\n"
    assert shell.lines("consume", "-t", topic, "-c", "1") == ["a"]


def test_files_are_records_or_lines(shell: Shell, tmp_path: Path) -> None:
    topic = shell.topic()
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("1\n2")
    second.write_text("3;4;")
    shell.run("produce", "-t", topic, "-z", "zstd", "-k", "same", str(first), str(second))
    shell.run("produce", "-t", topic, "-l", "-D", ";", str(second))
    found = shell.run("consume", "-t", topic, "-e", "-f", "(%k=%s)")
    assert found == "(same=1\n2)(same=3;4;)(=3)(=4)"


def test_a_record_that_is_not_acknowledged_is_named_and_1(shell: Shell) -> None:
    topic = shell.topic(1, "--config", "max.message.bytes=1000")
    rows = b"small\n" + b"x" * 5000 + b"\n"
    one_by_one = ("-X", "batch.num.messages=1")  # a batch is refused as a whole
    out, words = shell.ended("produce", "-t", topic, "--json", *one_by_one, stdin=rows, code=1)
    assert [json.loads(line)["from"] for line in out.splitlines()] == ["stdin:1"]
    assert words.startswith(f"holdfast: 1 not acknowledged: stdin:2 to {topic} [0]: ")
    assert "MESSAGE_TOO_LARGE" in words
    _, words = shell.ended("produce", "-t", topic, "-p", "7", stdin=b"a\n", code=1)
    assert f"stdin:1 to {topic} [7]: " in words


def test_what_is_not_there_is_1(shell: Shell) -> None:
    topic = shell.topic()
    assert "no topic none" in shell.ended("consume", "-t", "none", code=1)[1]
    assert "has no partition 3" in shell.ended("consume", "-t", topic, "-p", "3", code=1)[1]
    assert "ffset out of range" in shell.ended("consume", "-t", topic, "-o", "9", code=1)[1]


def test_a_group_reads_each_record_once(shell: Shell) -> None:
    topic, group = shell.topic(2), shell.new_name("group")
    shell.run("produce", "-t", topic, stdin=b"a\nb\nc\nd\n")
    first = shell.lines("consume", "-t", topic, "-G", group, "-c", "3")
    rest = shell.lines("consume", "-t", topic, "-G", group, "-e")
    assert sorted(first + rest) == ["a", "b", "c", "d"]


def test_bad_input_is_64(shell: Shell) -> None:
    for arguments in (
        ("consume", "-t", "x", "-o", "soon"),
        ("consume", "-t", "x", "-o", "s@soon"),
        ("consume", "-t", "x", "-J", "-f", "%s"),
        ("consume", "-t", "x", "-G", "g", "-p", "0"),
        ("consume", "-t", "x", "-G", "g", "-o", "5"),
        ("consume", "-t", "x", "-X", "no.such.property"),
        ("produce", "-t", "x", "-k", "a", "-K", ":"),
        ("produce", "-t", "x", "-D", ""),
        ("produce", "-t", "x", "-X", "acks=some"),
        ("produce", "-t", "x", "no-such-file"),
    ):
        shell.run(*arguments, code=64)


def test_records_flow_through_pipes_while_they_come(holdfast: Shell) -> None:
    """Each line is sent when it is there, and printed when it is read."""
    topic = holdfast.topic()
    command = [sys.executable, "-m", "holdfast"]
    where = ("-b", holdfast.bootstrap, "-t", topic)
    with (
        subprocess.Popen(
            [*command, "produce", *where], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as sender,
        subprocess.Popen([*command, "consume", *where], stdout=subprocess.PIPE) as reader,
    ):
        assert sender.stdin is not None
        assert reader.stdout is not None
        for word in (b"one\n", b"two\n"):
            sender.stdin.write(word)
            sender.stdin.flush()
            assert reader.stdout.readline() == word
        sender.stdin.close()
        assert sender.wait(60) == 0
        reader.stdout.close()
        holdfast.run("produce", "-t", topic, stdin=b"nobody reads this\n")
        assert reader.wait(60) == 141
