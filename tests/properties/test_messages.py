"""Every message at every version: what is written is read back, and the two readers agree."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.protocol import Message, UnsupportedFieldError
from holdfast.protocol.codec.careful_decoder import read_carefully
from holdfast.protocol.codec.varints import decode_unsigned, encode_unsigned
from tests.unit.protocol.sampler import Sampler, every_message, for_each

CLASSES = list(dict.fromkeys(cls for cls, _ in every_message()))


def round_trip(cls: type[Message], version: int, rng: Random) -> None:
    message = Sampler(rng, unknown_tags=True).message(cls, version)
    wire = message.encode(version)
    read = cls.decode(memoryview(wire), version)
    assert read == message
    assert read.encode(version) == wire
    assert read_carefully(cls.layout(version), memoryview(wire), 0) == (message, len(wire))
    assert b"".join(message.encode_parts(version)) == wire


@for_each(CLASSES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_message_survives_the_wire(cls: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(cls.VERSIONS))
    round_trip(cls, version, data.draw(st.randoms(use_true_random=False)))


@pytest.mark.slow
@for_each(CLASSES)
@settings(max_examples=10, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_a_message_survives_the_wire_in_every_version(cls: type[Message], rng: Random) -> None:
    for version in cls.VERSIONS:
        round_trip(cls, version, rng)


@for_each(CLASSES)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_another_version_drops_or_refuses_but_never_garbles(
    cls: type[Message], data: st.DataObject
) -> None:
    """Values of one version written in another: what both have arrives, or the writer refuses."""
    rng = data.draw(st.randoms(use_true_random=False))
    made, sent = (data.draw(st.sampled_from(cls.VERSIONS)) for _ in range(2))
    message = Sampler(rng).message(cls, made)
    try:
        wire = message.encode(sent)
    except (UnsupportedFieldError, TypeError, AttributeError):
        return  # a field that the version lacks, or a None that it does not allow
    assert cls.decode(wire, sent).encode(sent) == wire


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_unsigned_varints_are_read_back(number: int, rest: bytes) -> None:
    wire = encode_unsigned(number)
    assert len(wire) <= 5
    assert decode_unsigned(wire + rest, 0) == (number, len(wire))
