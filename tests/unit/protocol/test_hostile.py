"""Any bytes decode to a message, or raise a MalformedMessage that names the position."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest

from holdfast.protocol import APIS, MalformedMessage, Message
from holdfast.protocol.codec.careful_decoder import read_carefully
from holdfast.protocol.codec.varints import encode_unsigned
from holdfast.protocol.messages.fetch import FetchRequest
from holdfast.protocol.messages.metadata import MetadataRequest, MetadataResponse
from holdfast.protocol.messages.produce import ProduceRequest
from holdfast.protocol.messages.quotas import DescribeClientQuotasResponse
from tests.unit.protocol.sampler import Sampler, every_message, for_each

CLASSES = list(dict.fromkeys(cls for cls, _ in every_message()))
HUGE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x80" * 12)
"""Lengths that nobody has the bytes for, and a varint that does not end."""


def read_both_ways(cls: type[Message], version: int, wire: bytes) -> Message | MalformedMessage:
    """The result. The fast and the careful decoder must agree."""
    try:
        careful, end = read_carefully(cls.layout(version), memoryview(wire), 0)
    except MalformedMessage as problem:
        with pytest.raises(MalformedMessage) as caught:
            cls.decode(wire, version)
        assert str(caught.value) == str(problem)
        assert problem.api == cls.__name__
        assert problem.version == version
        assert 0 <= problem.position <= len(wire)
        return problem
    quick, quick_end = cls.decode_from(wire, version)
    assert quick_end == end
    assert same(quick, careful)
    return quick


def same(one: Any, other: Any) -> bool:
    """Equal, or both the one float that is not equal to itself."""
    return bool(one == other) or repr(one) == repr(other) or "nan" in repr(one)


def truncate(cls: type[Message], version: int, sampler: Sampler) -> None:
    wire = sampler.message(cls, version).encode(version)
    for end in range(len(wire)):
        with pytest.raises(MalformedMessage) as caught:
            cls.decode(wire[:end], version)
        assert caught.value.field
        assert caught.value.position <= end


def mutate(wire: bytes, rng: Random) -> bytes:
    position = rng.randrange(len(wire))
    match rng.randrange(4):
        case 0:
            return wire[:position] + rng.randbytes(1) + wire[position + 1 :]
        case 1:
            return wire[:position] + rng.randbytes(rng.randint(1, 4)) + wire[position:]
        case 2:
            return wire[:position] + wire[position + rng.randint(1, 4) :]
        case _:
            return wire[:position] + rng.choice(HUGE) + wire[position + 4 :]


@for_each(CLASSES)
def test_a_message_truncated_anywhere_is_malformed(cls: type[Message]) -> None:
    versions = cls.VERSIONS if len(cls.VERSIONS) <= 2 else (cls.VERSIONS[0], cls.VERSIONS[-1])
    for version in versions:
        truncate(cls, version, Sampler(Random(version), small=True))


@pytest.mark.slow
@for_each(CLASSES)
def test_a_message_of_any_version_truncated_anywhere_is_malformed(cls: type[Message]) -> None:
    for version in cls.VERSIONS:
        truncate(cls, version, Sampler(Random(version), small=True, unknown_tags=True))


def mutations(cls: type[Message], version: int, count: int) -> None:
    rng = Random(f"{cls.__name__} {version}")
    wire = Sampler(rng, small=True, unknown_tags=True).message(cls, version).encode(version)
    for _ in range(count if wire else 0):
        changed = mutate(wire, rng)
        found = read_both_ways(cls, version, changed)
        if isinstance(found, Message):
            again = found.encode(version)
            assert same(cls.decode(again, version), found)


@for_each(CLASSES)
def test_a_changed_message_is_read_or_malformed(cls: type[Message]) -> None:
    for version in cls.VERSIONS:
        mutations(cls, version, 8)


@pytest.mark.slow
@for_each(CLASSES)
def test_a_message_changed_in_many_ways_is_read_or_malformed(cls: type[Message]) -> None:
    for version in cls.VERSIONS:
        mutations(cls, version, 200)


@for_each(CLASSES)
def test_random_bytes_are_read_or_malformed(cls: type[Message]) -> None:
    for version in cls.VERSIONS:
        rng = Random(version)
        for size in (0, 1, 2, 5, 30):
            read_both_ways(cls, version, rng.randbytes(size))
            read_both_ways(cls, version, bytes(size))


def peak_of_decoding(cls: type[Message], version: int, wire: bytes) -> int:
    """The peak memory in bytes, besides the input."""
    tracemalloc.start()
    try:
        cls.decode(wire, version)
    except MalformedMessage:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.slow
@for_each(CLASSES)
def test_a_huge_length_takes_no_memory(cls: type[Message]) -> None:
    """In every field: a length is compared with the bytes left before anything is allocated."""
    for version in {cls.VERSIONS[0], cls.VERSIONS[-1]}:
        wire = Sampler(Random(1), small=True).message(cls, version).encode(version)
        cls.decode(wire, version)  # compiled before memory is watched
        for position in range(len(wire)):
            for huge in HUGE:
                changed = wire[:position] + huge + wire[position + 4 :]
                assert peak_of_decoding(cls, version, changed) < 100_000 + 200 * len(changed)


@pytest.mark.parametrize(
    ("cls", "version", "head"),
    [
        (MetadataRequest, 0, b"\x7f\xff\xff\xff"),
        (MetadataRequest, 13, b"\xff\xff\xff\xff\x07"),
        (MetadataResponse, 13, bytes(4) + b"\xff\xff\xff\xff\x07"),
        (ProduceRequest, 3, b"\xff\xff\0\1" + bytes(4) + b"\x7f\xff\xff\xff"),
        (FetchRequest, 12, bytes(25) + b"\xff\xff\xff\xff\x07"),
    ],
)
def test_a_count_beyond_the_input_is_refused_immediately(
    cls: type[Message], version: int, head: bytes
) -> None:
    wire = head + bytes(1000)
    with pytest.raises(MalformedMessage, match="are left"):
        cls.decode(wire, version)
    assert peak_of_decoding(cls, version, wire) < 50_000


def test_the_error_names_api_version_field_and_position() -> None:
    sampler = Sampler(Random(3), small=True)
    wire = sampler.message(ProduceRequest, 3).encode(3)
    with pytest.raises(MalformedMessage) as caught:
        ProduceRequest.decode(wire[:-1], 3)
    problem = caught.value
    assert (problem.api, problem.version) == ("ProduceRequest", 3)
    assert problem.field == "topic_data[0].partition_data[0].records"
    assert "are left" in problem.reason
    assert str(problem.position) in str(problem)


def test_what_follows_a_message_is_malformed() -> None:
    wire = Sampler(Random(3), small=True).message(ProduceRequest, 9).encode(9)
    with pytest.raises(MalformedMessage, match="2 bytes after the end"):
        ProduceRequest.decode(wire + b"\0\0", 9)


def test_many_small_elements_take_memory_in_proportion() -> None:
    """The worst case: an entry of three bytes becomes an object with two empty lists."""
    count = 16_000
    entries = b"\x01\x01\x00" * count
    head = bytes(6) + b"\0" + encode_unsigned(count + 1)
    wire = head + entries + b"\0"
    assert len(DescribeClientQuotasResponse.decode(wire, 1).entries or ()) == count
    assert peak_of_decoding(DescribeClientQuotasResponse, 1, wire) < 66 * len(wire)


def test_a_disagreement_of_the_readers_is_our_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(view: memoryview, position: int) -> tuple[Message, int]:
        raise ValueError

    monkeypatch.setitem(MetadataRequest._decoders, 0, refuse)
    with pytest.raises(AssertionError, match="refused and accepted"):
        MetadataRequest.decode(bytes(4), 0)


def test_every_api_is_under_attack() -> None:
    assert {cls.__name__ for cls in CLASSES} >= {f"{api.name}Request" for api in APIS.values()}
