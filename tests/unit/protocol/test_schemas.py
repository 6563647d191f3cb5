"""Our definitions are Kafka's, field by field and version by version, down to default and tag."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast.protocol import APIS, ZERO_UUID, Message, RequestHeader, ResponseHeader
from holdfast.protocol.codec.layout import (
    ArrayOf,
    FieldLayout,
    Layout,
    StructOf,
    Wire,
    parse_range,
)
from holdfast.protocol.codec.structs import REQUIRED
from holdfast.protocol.codec.types import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UINT16,
    UINT32,
    UUID,
)
from tests.unit.protocol.sampler import for_each
from tests.unit.protocol.schemas import CURRENT, LAST_WITH_CONTROL, schema

CONTROL = (4, 5, 6, 7)
"""LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown: gone from 4.0."""

UNRELEASED = (30_093,)
"""GetReplicaLogInfo: our own, between brokers."""

CLASSES = [
    cls for api in APIS.values() if api.key not in UNRELEASED for cls in (api.request, api.response)
]

WIRES: dict[str, Wire] = {
    "bool": BOOL,
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "uint16": UINT16,
    "uint32": UINT32,
    "float64": FLOAT64,
    "uuid": UUID,
    "string": STRING,
    "bytes": BYTES,
    "records": RECORDS,
}
ZEROS: dict[str, Any] = {
    "bool": False,
    "float64": 0.0,
    "uuid": ZERO_UUID,
    "string": "",
    "bytes": b"",
}


def snake_case(name: str) -> str:
    name = name.replace("KRaft", "Kraft")
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def default_of(field: Any) -> Any:
    """The default that Kafka's generator would give."""
    kind = field["type"]
    if "default" not in field:
        if kind.startswith("[]"):
            return ()
        return None if kind == "records" else ZEROS.get(kind, 0)
    text = str(field["default"])
    if text == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "string":
        return text
    return float(text) if kind == "float64" else int(text, 0)


class Comparison:
    """Compares one message in one version with its schema; `where` is the path of the field."""

    def __init__(self, definition: Any, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.common = {each["name"]: each for each in definition.get("commonStructs", [])}

    def compare(self, layout: Layout, fields: list[Any], where: str) -> None:
        present = [each for each in fields if self.version in parse_range(each["versions"])]
        tagged = [each for each in present if self.is_tagged(each)]
        plain = [each for each in present if not self.is_tagged(each)]
        tagged.sort(key=lambda each: int(each["tag"]))
        assert [each.name for each in layout.plain] == names(plain), where
        assert [each.name for each in layout.tagged] == names(tagged), where
        for ours, theirs in zip((*layout.plain, *layout.tagged), plain + tagged, strict=True):
            self.compare_field(ours, theirs, f"{where}.{ours.name}")
        self.compare_absent(layout, fields, where)

    def is_tagged(self, field: Any) -> bool:
        return self.version in parse_range(field.get("taggedVersions", "none"))

    def compare_field(self, ours: FieldLayout, theirs: Any, where: str) -> None:
        kind = theirs["type"]
        is_struct = isinstance(ours.wire, StructOf)
        assert ours.tag == (theirs["tag"] if self.is_tagged(theirs) else None), where
        assert ours.compact == (self.flexible and theirs.get("flexibleVersions") != "none"), where
        nullable = self.version in parse_range(theirs.get("nullableVersions", "none"))
        assert ours.nullable == nullable, where
        if is_struct and ours.tag is not None:
            assert ours.default is None, where  # our way to say "left out"
        elif "default" in theirs or ours.default is not REQUIRED:
            assert ours.default == default_of(theirs), where
            assert type(ours.default) is type(default_of(theirs)), where
        self.compare_wire(ours.wire, kind, theirs, where)

    def compare_wire(self, ours: Wire, kind: str, theirs: Any, where: str) -> None:
        match ours:
            case ArrayOf(element=element):
                assert kind.startswith("[]"), where
                self.compare_wire(element, kind[2:], theirs, where)
            case StructOf():
                fields = theirs.get("fields") or self.common[kind]["fields"]
                self.compare(ours.layout, fields, where)
            case _:
                assert ours == WIRES[kind], where

    def compare_absent(self, layout: Layout, fields: list[Any], where: str) -> None:
        """Fields that this version lacks are dropped or refused as in Kafka."""
        known = {snake_case(each["name"]): each for each in fields}
        for name, spec in layout.absent:
            if name not in known:
                continue  # Another of Kafka's structures that share ours has it, and is compared.
            assert spec.ignorable == (known[name].get("ignorable") in (True, "true")), where
            if not (spec.tag is not None and spec.default is None):
                assert spec.default == default_of(known[name]), f"{where}.{name}"


def names(fields: list[Any]) -> list[str]:
    return [snake_case(each["name"]) for each in fields]


def compare_message(cls: type[Message], definition: Any, versions: range) -> None:
    for version in versions:
        flexible = version in parse_range(definition["flexibleVersions"])
        assert cls.is_flexible(version) == flexible
        layout = cls.layout(version)
        where = f"{cls.__name__} v{version}"
        Comparison(definition, version, flexible).compare(layout, definition["fields"], where)


@pytest.mark.slow
@for_each(CLASSES)
def test_a_definition_is_kafkas(cls: Any) -> None:
    release = LAST_WITH_CONTROL if cls.API_KEY in CONTROL else CURRENT
    definition = schema(release, cls.__name__)
    assert cls.API_KEY == definition["apiKey"]
    assert cls.VERSIONS == parse_range(definition["validVersions"])
    compare_message(cls, definition, cls.VERSIONS)


@pytest.mark.slow
@for_each([RequestHeader, ResponseHeader])
def test_a_header_is_kafkas(cls: type[Message]) -> None:
    """From 3.9, which still had request header 0."""
    definition = schema(LAST_WITH_CONTROL, cls.__name__)
    assert cls.VERSIONS == parse_range(definition["validVersions"])
    compare_message(cls, definition, cls.VERSIONS)


@pytest.mark.slow
def test_an_unstable_version_is_not_advertised() -> None:
    for api in APIS.values():
        if api.key not in (*CONTROL, *UNRELEASED):
            definition = schema(CURRENT, api.request.__name__)
            unstable = definition.get("latestVersionUnstable", False)
            assert api.advertised[-1] == api.versions[-1] - bool(unstable), api.name
