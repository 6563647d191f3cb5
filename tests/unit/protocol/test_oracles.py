"""Byte for byte the same as kio and kafka-python, for every API and version that they have.

An oracle decodes our bytes, must find our values, and must encode the same bytes.
"""

from __future__ import annotations

import importlib
import io
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import kio.index
import kio.schema.index
import kio.serial
import pytest

from holdfast.protocol import APIS, Message, Request, RequestHeader, Response, ResponseHeader
from holdfast.protocol import Struct as OurStruct
from holdfast.protocol.messages.api_versions import ApiVersionsResponse
from tests.unit.protocol.kafka_python import KAFKA_PYTHON
from tests.unit.protocol.sampler import Sampler, every_api_message, for_each

CLASSES = [cls for api in APIS.values() for cls in (api.request, api.response)]

IN_KAFKA_PYTHON = [cls for cls in CLASSES if cls.__name__ in KAFKA_PYTHON]
IN_KIO = [cls for cls in CLASSES if cls.API_KEY in kio.schema.index.api_key_map]

KIO_LAST_ERROR = 133
"""kio refuses the error codes that came after it."""

NEWER_THAN_BOTH = {
    ("ApiVersionsRequest", 5),
    ("ApiVersionsResponse", 5),
    ("DeleteGroupsRequest", 3),
    ("DeleteGroupsResponse", 3),
    ("GetReplicaLogInfoRequest", 0),
    ("GetReplicaLogInfoResponse", 0),
    ("TxnOffsetCommitRequest", 6),
    ("TxnOffsetCommitResponse", 6),
}
OLDER_THAN_BOTH = ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")


def kio_class(cls: type[Message], version: int) -> Any:
    try:
        if issubclass(cls, Request):
            return kio.index.load_request_schema(cls.API_KEY, version)
        assert issubclass(cls, Response)
        return kio.index.load_response_schema(cls.API_KEY, version)
    except kio.index.KioIndexError:
        return None


def samples(cls: type[Message], version: int, count: int) -> list[Message]:
    made = [Sampler(Random(seed)).message(cls, version) for seed in range(count)]
    for message in made:
        if isinstance(message, ApiVersionsResponse):
            message.error_code = 0  # kafka-python reads any other as version 0, as a client must
    return made


def without_new_errors(value: Any) -> None:
    """Lower the error codes that kio does not have."""
    if isinstance(value, list):
        for each in value:
            without_new_errors(each)
    if isinstance(value, OurStruct):
        for name in value.SPECS:
            inner = getattr(value, name)
            if name.endswith("error_code") and inner > KIO_LAST_ERROR:
                setattr(value, name, KIO_LAST_ERROR)
            without_new_errors(inner)


def as_ours(value: Any, ours: Any) -> Any:
    """An oracle's value in our terms."""
    match value:
        case UUID():
            return value.bytes
        case timedelta():
            return round(value / timedelta(milliseconds=1))
        case datetime():
            return round(value.timestamp() * 1000)
        case None if ours == bytes(16):  # kio's name for an id of zeros
            return ours
        case _:
            return value


def assert_same(ours: Any, theirs: Any, path: str) -> None:
    if isinstance(ours, OurStruct):
        assert theirs is not None, path
        for name in ours.SPECS:
            assert_same_field(ours, theirs, name, path)
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs), path
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(one, other, f"{path}[{index}]")
    else:
        assert as_ours(theirs, ours) == ours, path


def assert_same_field(ours: OurStruct, theirs: Any, name: str, path: str) -> None:
    value = getattr(ours, name)
    if name.endswith("authorized_operations"):
        return  # kafka-python turns the bits into a set; the bytes are compared all the same
    for their_name in (name, name.removesuffix("_ms"), name.removesuffix("_or_member_epoch")):
        if hasattr(theirs, their_name):
            other = getattr(theirs, their_name)
            if value is not None or ours.SPECS[name].tag is None:
                assert_same(value, other, f"{path}.{name}")
            return
    assert value == ours.SPECS[name].default, f"{path}.{name}: they do not have it"


def check_kafka_python(cls: type[Message], count: int) -> None:
    oracle = KAFKA_PYTHON[cls.__name__]
    for version in cls.VERSIONS:
        if version > oracle.max_version:
            continue
        for message in samples(cls, version, count):
            ours = message.encode(version)
            theirs = oracle.decode(ours, version=version)
            assert_same(message, theirs, f"{cls.__name__} v{version}")
            theirs._header = None  # it asks for one even where it writes none
            assert theirs.encode(version=version) == ours, f"v{version}"


def check_kio(cls: type[Message], count: int) -> None:
    known = [(version, kio_class(cls, version)) for version in cls.VERSIONS]
    for version, oracle in known:
        for message in samples(cls, version, count) if oracle else []:
            without_new_errors(message)
            ours = message.encode(version)
            theirs, size = kio.serial.entity_reader(oracle)(ours, 0)
            assert size == len(ours)
            assert_same(message, theirs, f"{cls.__name__} v{version}")
            out = io.BytesIO()
            kio.serial.entity_writer(oracle)(out, theirs)
            assert out.getvalue() == ours, f"v{version}"


@for_each(IN_KAFKA_PYTHON)
def test_kafka_python_writes_the_same_bytes(cls: type[Message]) -> None:
    check_kafka_python(cls, 2)


@for_each(IN_KIO)
def test_kio_writes_the_same_bytes(cls: type[Message]) -> None:
    check_kio(cls, 2)


@pytest.mark.slow
@for_each(CLASSES)
def test_both_write_the_same_bytes_for_many_values(cls: type[Message]) -> None:
    if cls in IN_KAFKA_PYTHON:
        check_kafka_python(cls, 40)
    if cls in IN_KIO:
        check_kio(cls, 40)


def test_only_the_named_versions_have_no_oracle() -> None:
    alone = set()
    for cls, version in every_api_message():
        theirs = KAFKA_PYTHON.get(cls.__name__)
        if kio_class(cls, version) is None and (theirs is None or version > theirs.max_version):
            alone.add((cls.__name__, version))
    assert {each for each in alone if not each[0].startswith(OLDER_THAN_BOTH)} == NEWER_THAN_BOTH


@pytest.mark.parametrize("version", [1, 2])
def test_request_headers_are_the_oracles(version: int) -> None:
    oracle = importlib.import_module(f"kio.schema.request_header.v{version}.header").RequestHeader
    for seed in range(20):
        header = Sampler(Random(seed)).message(RequestHeader, version)
        check_header(header, oracle, version)


@pytest.mark.parametrize("version", ResponseHeader.VERSIONS)
def test_response_headers_are_the_oracles(version: int) -> None:
    oracle = importlib.import_module(f"kio.schema.response_header.v{version}.header").ResponseHeader
    for seed in range(20):
        header = Sampler(Random(seed)).message(ResponseHeader, version)
        check_header(header, oracle, version)


def check_header(header: Message, oracle: Any, version: int) -> None:
    ours = header.encode(version)
    theirs, _ = kio.serial.entity_reader(oracle)(ours, 0)
    assert_same(header, theirs, "header")
    out = io.BytesIO()
    kio.serial.entity_writer(oracle)(out, theirs)
    assert out.getvalue() == ours
