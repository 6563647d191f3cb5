"""Where to look first: bounds for those who give none, from the smallest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.lab.search.bounds import Bounds

LADDER: tuple[Bounds, ...] = (
    Bounds(records=1, in_sync=2, delays=1),
    Bounds(records=1, elections=1, delays=1),
)


def ladder(options: Mapping[str, str]) -> Iterator[Bounds]:
    """Bounds to try one after the other."""
    del options
    yield from LADDER
