"""Where `consume` begins and ends: kcat's -o.

| -o | meaning |
|---|---|
| `beginning`, `end` | the first record; only records that are new |
| `N`, `-N` | an offset; N records before the end of each partition |
| `s@TIME`, `e@TIME` | from that time on; until that time |

TIME is in milliseconds since 1970, or as 2013-01-31T08:00:00Z.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from holdfast.cli.errors import BadInput

HINT = "try beginning, end, N, -N, s@TIME or e@TIME"


class Positions(NamedTuple):
    """What -o asks for."""

    offset: int | None = None
    """Negative: before the end."""
    at_end: bool = False
    start_ms: int | None = None
    stop_ms: int | None = None


def positions(given: Iterable[str]) -> Positions:
    """All -o of a command; the last of each kind counts."""
    found = Positions()
    for text in given:
        if text in ("beginning", "earliest"):
            found = Positions(stop_ms=found.stop_ms)
        elif text in ("end", "latest"):
            found = Positions(at_end=True, stop_ms=found.stop_ms)
        elif text.startswith("s@"):
            found = Positions(start_ms=milliseconds(text[2:]), stop_ms=found.stop_ms)
        elif text.startswith("e@"):
            found = found._replace(stop_ms=milliseconds(text[2:]))
        else:
            found = Positions(offset=_number(text), stop_ms=found.stop_ms)
    return found


def milliseconds(text: str) -> int:
    """A time as Kafka counts it. Without a zone it is UTC."""
    if text.isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        hint = "milliseconds since 1970, or 2013-01-31T08:00:00Z"
        raise BadInput(f"{text!r} is no time", hint=hint) from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _number(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise BadInput(f"-o {text!r} is no position", hint=HINT) from None
    if text.startswith("-") and number == 0:
        raise BadInput("-o -0 is no position", hint=HINT)
    return number


class Span(NamedTuple):
    """The offsets of a partition: from `start`, and up to `stop` if there is one."""

    partition: int
    start: int
    stop: int | None
    end: int
    """The high watermark when the command began."""


def span(
    wanted: Positions,
    partition: int,
    watermarks: tuple[int, int],
    by_time: Sequence[int | None],
) -> Span:
    """`by_time`: the offsets of `start_ms` and `stop_ms`; None where no record is that late."""
    low, high = watermarks
    start = low
    if wanted.at_end:
        start = high
    elif wanted.start_ms is not None:
        start = high if by_time[0] is None else by_time[0]
    elif wanted.offset is not None:
        start = max(low, high + wanted.offset) if wanted.offset < 0 else wanted.offset
    stop = None
    if wanted.stop_ms is not None:
        stop = high if by_time[1] is None else by_time[1]
    return Span(partition, start, stop, high)
