"""Which tests one worker runs together, and which it runs first (`--dist loadgroup`).

A file's tests stay together if they share something that costs to make: a cluster, a Spark, a
ZooKeeper. Slow tests that share nothing go to any free worker. The slow ones come first,
so that quick ones fill the end, where workers would wait for the last slow file.
"""

from __future__ import annotations

import pytest

SHARED = ("module", "package", "session")
CHEAP = ("descriptors",)
"""Our fixtures that are cheap to create twice."""


def distribute(items: list[pytest.Item]) -> None:
    """Group and order all tests of a run, in place."""
    slow_files = {item.path for item in items if _is_slow(item)}
    for item in items:
        if not _is_slow(item) or _shares(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=lambda item: item.path not in slow_files)


def _is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) is not None for name in ("slow", "long"))


def _shares(item: pytest.Item) -> bool:
    """Whether a test uses one of our fixtures that outlives it."""
    info = getattr(item, "_fixtureinfo", None)
    known = info.name2fixturedefs if info is not None else {}
    return any(
        one.scope in SHARED and one.baseid.startswith("tests") and name not in CHEAP
        for name, several in known.items()
        for one in several
    )
