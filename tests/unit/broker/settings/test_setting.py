"""One setting: its type, its limits, its text."""

from __future__ import annotations

import pytest

from holdfast.broker.settings import BROKER, TOPIC, Change, Kind, Setting, Value
from holdfast.broker.settings.setting import Allowed, value_text


def setting(kind: Kind, allowed: str = "", default: str | None = None) -> Setting:
    return Setting(
        name="a.name",
        kind=kind,
        default=default,
        is_required=False,
        allowed=Allowed.parse(allowed),
        change=Change.READ_ONLY,
        importance="low",
        test="settings/logs::segment_bytes",
        meaning="",
    )


@pytest.mark.parametrize(
    ("kind", "allowed", "text", "value"),
    [
        (Kind.BOOLEAN, "", " TRUE ", True),
        (Kind.BOOLEAN, "", "false", False),
        (Kind.INT, "1..", "2147483647", 2**31 - 1),
        (Kind.INT, "1..9 or -1", "-1", -1),
        (Kind.SHORT, "", "+5", 5),
        (Kind.LONG, "", "-9223372036854775808", -(2**63)),
        (Kind.DOUBLE, "0..1", "1e-3", 0.001),
        (Kind.LIST, "", "", ()),
        (Kind.LIST, "a, b", "b , a", ("b", "a")),
        (Kind.LIST, "partition:broker", "0:1,12:3", ("0:1", "12:3")),
        (Kind.LIST, "partition:broker", "*", ("*",)),
        (Kind.STRING, "a, b", "a", "a"),
        (Kind.STRING, "any case: a, b", "B", "B"),
        (Kind.STRING, "", "", ""),
        (Kind.PASSWORD, "", "secret", "secret"),
    ],
)
def test_a_text_becomes_a_value(kind: Kind, allowed: str, text: str, value: Value) -> None:
    assert setting(kind, allowed).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "allowed", "text", "reason"),
    [
        (Kind.BOOLEAN, "", "yes", "either true or false"),
        (Kind.INT, "", "2147483648", "Not a number of type INT"),
        (Kind.INT, "", "1_000", "Not a number of type INT"),
        (Kind.INT, "", "", "Not a number of type INT"),
        (Kind.SHORT, "", "32768", "Not a number of type SHORT"),
        (Kind.LONG, "", "1.5", "Not a number of type LONG"),
        (Kind.LONG, "1048576..", "1", "Value must be at least 1048576"),
        (Kind.INT, "1..9 or -1", "0", "Value must be at least 1"),
        (Kind.DOUBLE, "0..1", "1.5", "Value must be no more than 1"),
        (Kind.DOUBLE, "0..1", "nan", "Not a number of type DOUBLE"),
        (Kind.DOUBLE, "", "inf", "Not a number of type DOUBLE"),
        (Kind.DOUBLE, "", "1_0.5", "Not a number of type DOUBLE"),
        (Kind.LIST, "a, b", "a,c", "List must hold only: a, b"),
        (Kind.LIST, "partition:broker", "0:x", "partition:broker"),
        (Kind.STRING, "a, b", "A", "String must be one of: a, b"),
        (Kind.STRING, "not empty", "", "non-empty"),
    ],
)
def test_an_error_names_the_valid_values(kind: Kind, allowed: str, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        setting(kind, allowed).parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (("a", "b"), "a,b"),
        ((), ""),
        (0.5, "0.5"),
        (1e-05, "1.0E-5"),
        (1.25e300, "1.25E300"),
        (0.0, "0.0"),
        (7, "7"),
    ],
)
def test_values_are_written_as_kafka_writes_them(value: Value, text: str | None) -> None:
    assert value_text(value) == text


def test_every_default_of_the_tables_is_allowed() -> None:
    for one in (*BROKER.values(), *TOPIC.values()):
        assert value_text(one.default_value()) == one.default, one.name
        assert one.meaning, one.name
        assert one.importance in ("high", "medium", "low", "internal"), one.name
