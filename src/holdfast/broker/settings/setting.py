"""The definition of one setting: its type, default and valid values, and whether it acts here.

The error messages are Kafka's, since AlterConfigs and CreateTopics answer with them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import cache
from types import MappingProxyType

Value = bool | int | float | str | tuple[str, ...] | None

_INTEGER = re.compile(r"[+-]?[0-9]+")
_BITS: Mapping[str, int] = MappingProxyType({"short": 16, "int": 32, "long": 64})
_THROTTLED = re.compile(r"\*|[0-9]+:[0-9]+")


class Kind(Enum):
    """A setting's type, by its code in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9

    @property
    def word(self) -> str:
        """As the tables write it."""
        return self.name.lower()


class Change(Enum):
    """Whether a setting can be changed at run time, and for which brokers."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"
    """For one broker or for all."""
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Allowed:
    """The valid values, beyond the type."""

    text: str = ""
    """The text of the table; empty if any value of the type is valid."""
    low: float | None = None
    high: float | None = None
    also: int | None = None
    """One value outside the range."""
    choices: tuple[str, ...] = ()
    any_case: bool = False
    not_empty: bool = False
    throttled: bool = False
    """A list of partition:broker, or *."""

    @classmethod
    @cache
    def parse(cls, text: str) -> Allowed:
        """From a table: "1..", "0..1", "1..9 or -1", "a, b", "any case: a, b", or a word."""
        if text in ("", "not empty", "partition:broker"):
            return cls(text, not_empty=text == "not empty", throttled=text == "partition:broker")
        if ".." not in text:
            words = text.removeprefix("any case: ")
            choices = tuple(part.strip() for part in words.split(","))
            return cls(text, choices=choices, any_case=words != text)
        bounds, _, also = text.partition(" or ")
        low, _, high = bounds.partition("..")
        return cls(
            text,
            low=float(low) if low else None,
            high=float(high) if high else None,
            also=int(also) if also else None,
        )

    def check(self, value: Value) -> None:
        """ValueError names the valid values."""
        match value:
            case bool() | None:
                return
            case int() | float():
                self._check_number(value)
            case str():
                self._check_text(value)
            case tuple():
                self._check_list(value)

    def _check_number(self, value: float) -> None:
        if self.also is not None and value == self.also:
            return
        if self.low is not None and value < self.low:
            raise ValueError(f"Value must be at least {self.low:.15g}")
        if self.high is not None and value > self.high:
            raise ValueError(f"Value must be no more than {self.high:.15g}")

    def _check_text(self, value: str) -> None:
        if self.choices and (value.lower() if self.any_case else value) not in self.choices:
            raise ValueError(f"String must be one of: {', '.join(self.choices)}")
        if self.not_empty and not value:
            raise ValueError("String must be non-empty")

    def _check_list(self, value: tuple[str, ...]) -> None:
        for one in value:
            if self.choices and one not in self.choices:
                raise ValueError(f"List must hold only: {', '.join(self.choices)}")
            if self.throttled and _THROTTLED.fullmatch(one) is None:
                raise ValueError("List must hold only partition:broker, or be *")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One line of the tables."""

    name: str
    kind: Kind
    default: str | None
    """None: no default; the meaning explains that."""
    is_required: bool
    """Required in Kafka. `BrokerSettings` has Holdfast's own requirements."""
    allowed: Allowed
    change: Change
    importance: str
    """high, medium, low; or internal, which is not shown."""
    test: str | None
    """The test that observes its effect on a running broker."""
    meaning: str

    @property
    def acts(self) -> bool:
        """Whether it has an effect here that a test observes."""
        return self.test is not None

    @property
    def is_sensitive(self) -> bool:
        """Its value is never shown."""
        return self.kind is Kind.PASSWORD

    @property
    def is_dynamic(self) -> bool:
        return self.change is not Change.READ_ONLY

    def parse(self, text: str) -> Value:
        """The typed value; ValueError names the valid values."""
        value = _typed(self.kind, text.strip())
        self.allowed.check(value)
        return value

    def default_value(self) -> Value:
        """None also for a setting that Kafka requires."""
        return None if self.default is None else self.parse(self.default)


def value_text(value: Value) -> str | None:
    """The text of a value in DescribeConfigs."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case float():
            return _java_double(value)
        case _:
            return str(value)


def _java_double(value: float) -> str:
    """Java writes 1.0E-5 where Python writes 1e-05, and 1.0E7 where Python writes 10000000.0."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    exact = Decimal(repr(value))
    mantissa = exact.scaleb(-exact.adjusted()).normalize()
    text = str(mantissa)
    return f"{text}{'' if '.' in text else '.0'}E{exact.adjusted()}"


def _typed(kind: Kind, text: str) -> Value:
    match kind:
        case Kind.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise ValueError("Expected value to be either true or false")
            return text.lower() == "true"
        case Kind.INT | Kind.SHORT | Kind.LONG:
            return _integer(kind, text)
        case Kind.DOUBLE:
            return _double(text)
        case Kind.LIST:
            return tuple(part.strip() for part in text.split(",")) if text else ()
        case Kind.STRING | Kind.CLASS | Kind.PASSWORD:
            return text


def _integer(kind: Kind, text: str) -> int:
    half = 1 << (_BITS[kind.word] - 1)
    if _INTEGER.fullmatch(text) is None or not -half <= int(text) < half:
        raise ValueError(f"Not a number of type {kind.name}")
    return int(text)


def _double(text: str) -> float:
    try:
        value = float(text.replace("_", "x"))  # Python's "1_000" is not a number in Kafka's files
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError("Not a number of type DOUBLE")
    return value
