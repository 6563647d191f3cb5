"""Delimiters, positions and times of `produce` and `consume`."""

from __future__ import annotations

import io

import pytest

from holdfast.cli.errors import BadInput
from holdfast.cli.records import input as records
from holdfast.cli.records.escapes import unescaped
from holdfast.cli.records.positions import Positions, milliseconds, positions, span


def test_escapes_are_bytes() -> None:
    assert unescaped(r"a\n\t\r\0\\\x41\xff\q") == b"a\n\t\r\0\\A\xff\\q"
    assert unescaped("ä") == "ä".encode()
    assert unescaped("\\") == b"\\"


@pytest.mark.parametrize(
    ("text", "milliseconds_"),
    [
        ("1359619200000", 1359619200000),
        ("2013-01-31T08:00:00Z", 1359619200000),
        ("2013-01-31T09:00:00+01:00", 1359619200000),
        ("2013-01-31T08:00:00", 1359619200000),
        ("2013-01-31", 1359590400000),
    ],
)
def test_times(text: str, milliseconds_: int) -> None:
    assert milliseconds(text) == milliseconds_


def test_the_last_start_counts_and_a_stop_stays() -> None:
    assert positions([]) == Positions()
    assert positions(["end", "e@7", "-3"]) == Positions(offset=-3, stop_ms=7)
    assert positions(["s@5", "e@7"]) == Positions(start_ms=5, stop_ms=7)
    assert positions(["5", "beginning"]) == Positions()
    for bad in ("soon", "-0", "s@", "1.5", ""):
        with pytest.raises(BadInput):
            positions([bad])


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Positions(), (10, None)),
        (Positions(at_end=True), (20, None)),
        (Positions(offset=15), (15, None)),
        (Positions(offset=-3), (17, None)),
        (Positions(offset=-99), (10, None)),
        (Positions(start_ms=1), (12, None)),
        (Positions(stop_ms=1), (10, 18)),
    ],
)
def test_a_span_is_within_the_log(wanted: Positions, found: tuple[int, int | None]) -> None:
    one = span(wanted, 0, (10, 20), (12, 18))
    assert (one.start, one.stop) == found


def test_a_time_after_the_last_record_is_the_end() -> None:
    late = Positions(start_ms=1, stop_ms=2)
    assert span(late, 0, (10, 20), (None, None))[1:3] == (20, 20)


def test_a_delimiter_may_be_longer_than_one_byte_and_across_reads() -> None:
    class Slow(io.BytesIO):
        def read1(self, _: int | None = -1, /) -> bytes:
            return super().read1(3)

    pieces = records._pieces(Slow(b"a--bc--d-e--"), b"--")
    assert list(pieces) == [b"a", b"bc", b"d-e"]
    assert list(records._pieces(io.BytesIO(b"a\n\nb"), b"\n")) == [b"a", b"", b"b"]


def test_a_key_ends_at_the_first_delimiter() -> None:
    one = records.record(b"k:v:w", "stdin:1", b":", empty_is_null=False)
    assert (one.key, one.value) == (b"k", b"v:w")
    one = records.record(b":", "stdin:1", b":", empty_is_null=False)
    assert (one.key, one.value) == (b"", b"")
    one = records.record(b"", "stdin:1", None, empty_is_null=True)
    assert (one.key, one.value) == (None, None)
