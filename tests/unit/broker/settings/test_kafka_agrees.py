"""Compares our tables, values and .properties files with Kafka itself.

The names that 4.x no longer has were taken over from 3.9.1 and are not asked about here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from holdfast.broker.settings import BROKER, TOPIC, Kind, PropertiesError, Setting, read_properties
from holdfast.broker.settings.layers import TOPIC_SYNONYMS
from holdfast.broker.settings.setting import Allowed, value_text
from tests.unit.broker.settings.test_java_properties import CASES
from tests.unit.broker.settings.test_setting import setting
from tests.unit.storage import kafka

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("AskKafka.java")
RANGE = re.compile(r"\[(-?[\d.]+?),\.\.\.(?:,(-?[\d.]+))?\](?: or (-?\d+))?")
ANYTHING = ("", "non-null string", "non-empty list")
OURS_ALONE = ("holdfast.", "zookeeper.", "password.encoder.")
QUOTAS = (
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
TEXTS = ["", " ", "0", " 7 ", "-1", "+3", "1_0", "0x1", "1.5", "1e3", "2147483647", "2147483648"]
TEXTS += ["32768", "9223372036854775807", "9223372036854775808", "true", "TRUE", "yes", "a,b"]
TEXTS += [" a , b ", "a,,b", ",", "0.00001", "1E300", "1e7", "-12345678.5", "0.001", "NaN"]


def ask(*questions: str) -> list[list[str]]:
    """The answers to some questions, each a line of cells."""
    if shutil.which("javac") is None:
        pytest.skip("no javac: Kafka cannot be asked")
    command = kafka.java(str(PROGRAM))
    text = "".join(f"{question}\n" for question in questions)
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [line.split("\t") for line in done.stdout.splitlines()]


@cache
def tables() -> list[list[str]]:
    return ask("tables")


def in_hex(text: str) -> str:
    return text.encode().hex()


def allowed(validator: str) -> Allowed:
    """Translates Kafka's description of valid values to ours."""
    if validator in ANYTHING:
        return Allowed()
    if validator == "non-empty string":
        return Allowed.parse("not empty")
    if validator.startswith("[partitionId]"):
        return Allowed.parse("partition:broker")
    if found := RANGE.fullmatch(validator):
        low, high, also = found.groups(default="")
        return Allowed.parse(f"{low}..{high}" + (f" or {also}" if also else ""))
    prefix, bracket, words = validator.partition("[")
    assert bracket, validator
    choices = words.removesuffix("]")
    return Allowed.parse(f"any case: {choices.lower()}" if prefix else choices)


def row(one: Setting, scope: str) -> list[object]:
    default = "required" if one.is_required else "null" if one.default is None else one.default
    change = "read-only" if scope == "topic" else one.change.value
    importance = one.importance if one.importance == "internal" else one.importance.upper()
    return [one.kind.name, default, one.allowed, change, importance]


@pytest.mark.parametrize("scope", ["broker", "topic"])
def test_every_setting_is_as_kafka_has_it(scope: str) -> None:
    ours = BROKER if scope == "broker" else TOPIC
    kafkas = {line[2]: line[3:] for line in tables() if line[:2] == ["setting", scope]}
    assert len(kafkas) > 30
    assert [name for name in kafkas if name not in ours] == []
    different = {
        name: (row(ours[name], scope), cells)
        for name, cells in kafkas.items()
        if row(ours[name], scope) != [*cells[:2], allowed(cells[2]), *cells[3:]]
    }
    # In plain text, without authentication: our default serves this machine only.
    ours_alone = {name: cells[1] for name, (cells, _) in different.items()}
    assert ours_alone == ({"listeners": "PLAINTEXT://127.0.0.1:9092"} if scope == "broker" else {})


def test_settings_that_kafka_lacks_are_our_own_or_old() -> None:
    kafkas = {line[2] for line in tables() if line[0] == "setting"}
    extra = [name for name in BROKER if name not in kafkas and not name.startswith(OURS_ALONE)]
    old = [name for name in extra if "3.x only" in BROKER[name].meaning]
    rest = [name for name in extra if name not in old]
    assert sorted(rest) == sorted(QUOTAS)


def test_topics_inherit_what_they_inherit_in_kafka() -> None:
    kafkas = {line[1]: tuple(line[2:]) for line in tables() if line[0] == "synonyms"}
    ours = {
        name: tuple(unit.name for unit in units)
        for name, units in TOPIC_SYNONYMS.items()
        if name in kafkas
    }
    assert ours == kafkas


def test_texts_become_the_values_they_become_in_kafka() -> None:
    asked = [(kind, text) for kind in Kind if kind is not Kind.PASSWORD for text in TEXTS]
    asked = [(kind, text) for kind, text in asked if kind is not Kind.CLASS]
    answers = ask(*(f"value\t{kind.name}\t{in_hex(text)}" for kind, text in asked))
    ours, kafkas = {}, {}
    for (kind, text), (_, answer) in zip(asked, answers, strict=True):
        kafkas[kind, text] = None if answer == "refused" else bytes.fromhex(answer).decode()
        try:
            ours[kind, text] = value_text(setting(kind).parse(text))
        except ValueError:
            ours[kind, text] = None
    # NaN is meaningless for all settings.
    assert kafkas.pop((Kind.DOUBLE, "NaN")) == "NaN"
    assert ours.pop((Kind.DOUBLE, "NaN")) is None
    assert ours == kafkas


def test_properties_are_read_as_java_reads_them() -> None:
    texts = [text for text, _ in CASES] + ["a=\\u12", "a=\\u", "=b", ":", "a\\", "\\", "a=b\\ \nc"]
    for text, answer in zip(texts, ask(*(f"properties\t{in_hex(t)}" for t in texts)), strict=True):
        try:
            found = {one.name: one.value for one in read_properties(text)}
            ours = [f"{in_hex(name)}={in_hex(value)}" for name, value in sorted(found.items())]
        except PropertiesError:
            ours = ["refused"]
        assert ours == answer[1:], text
