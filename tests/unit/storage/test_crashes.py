"""Crashes at every point of every operation, on the simulated disk.

The bound is small here and deep in `test_crashes_deep` (`make test-long`): every byte of a torn
write, many more combinations, and crashes during the recovery from a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from tests.support.crash_states import Bound
from tests.unit.storage.crashes import SETTINGS, CrashCheckedLog


def grow(checked: CrashCheckedLog) -> None:
    """Appends with and without flushes, over several segments."""
    checked.append(4)
    checked.flush()
    checked.append(3, per_call=2)
    checked.checkpoint()
    checked.append(2)
    checked.flush()
    checked.checkpoint()
    checked.append(4)


def truncate(checked: CrashCheckedLog) -> None:
    """Truncations inside a segment, across segments, at a boundary, and appends after them."""
    checked.append(9)
    checked.flush()
    checked.checkpoint()
    checked.elect()
    checked.truncate(7)
    checked.append(3)
    checked.truncate(2)
    checked.elect()
    checked.append(5)
    checked.flush()
    checked.truncate(3)
    checked.append(2)


def restart(checked: CrashCheckedLog) -> None:
    """The log restarted, at a higher and at a lower offset."""
    checked.append(7)
    checked.flush()
    checked.checkpoint()
    checked.restart(50)
    checked.append(3)
    checked.flush()
    checked.restart(10)
    checked.append(2)


def leave(checked: CrashCheckedLog) -> None:
    """Deleting records and old segments."""
    checked.append(10)
    checked.flush()
    checked.delete_records(4)
    checked.checkpoint()
    checked.delete_records(9)
    checked.checkpoint()
    checked.append(6)
    checked.flush()
    checked.checkpoint()
    checked.restart(3)
    checked.append(2)


def rest(checked: CrashCheckedLog) -> None:
    """Clean shutdowns with work in between."""
    checked.append(4)
    checked.restart_cleanly()
    checked.elect()
    checked.append(4)
    checked.restart_cleanly()
    checked.truncate(6)
    checked.append(1)


def transact(checked: CrashCheckedLog) -> None:
    """Transactions, committed and aborted, truncated and appended again."""
    checked.transaction(is_commit=True)
    checked.transaction(is_commit=False)
    checked.append(1)
    checked.flush()
    checked.transaction(is_commit=False)
    checked.truncate(4)
    checked.elect()
    checked.transaction(is_commit=False)


def seal(checked: CrashCheckedLog) -> None:
    """Flushes on another thread, while the log grows, rolls and is truncated."""
    checked.append(4)
    checked.flush_in_background(partial(checked.append, 3))
    checked.append(5)
    checked.flush_in_background(partial(checked.checkpoint))
    checked.append(1)
    checked.flush_in_background(partial(checked.truncate, 9))
    checked.elect()
    checked.append(6)
    checked.checkpoint()
    checked.flush_in_background(partial(checked.append, 2))
    checked.checkpoint()
    checked.append(3)


def take_back(checked: CrashCheckedLog) -> None:
    """An epoch that a truncation removes while a flush writes it, and a log that grows past it."""
    checked.append(2)
    checked.flush_in_background(partial(checked.checkpoint))
    checked.elect()
    checked.append(1)
    checked.flush_in_background(partial(checked.truncate, 2), runs_first=True)
    checked.epoch = 0
    checked.append(6)
    checked.flush()
    checked.checkpoint()
    checked.elect()
    checked.elect()
    checked.append(2)


def follow(checked: CrashCheckedLog) -> None:
    """Copies from a compacted leader: gaps inside segments and between them."""
    checked.append(3)
    checked.append(3, gap=2)
    checked.flush_in_background(partial(checked.append, 2, gap=1))
    checked.append(3, gap=1)
    checked.flush_in_background(partial(checked.append, 2))
    checked.checkpoint()
    checked.append(3, gap=3)
    checked.truncate(20)
    checked.append(2)
    checked.flush()


SCENARIOS = (grow, truncate, restart, leave, rest, transact, seal, take_back)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "scenario"),
    [
        *(("delete", scenario) for scenario in (*SCENARIOS, follow)),
        *(("compact", scenario) for scenario in (grow, truncate, seal, follow)),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_any_crash_leaves_a_prefix_with_everything_flushed(
    policy: str, scenario: Callable[[CrashCheckedLog], None]
) -> None:
    checked = CrashCheckedLog(
        Bound(states=6, tear_points=1), settings=replace(SETTINGS, cleanup_policy=(policy,))
    )
    scenario(checked)
    assert checked.crashes > 100


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("policy", "scenario"),
    [
        *(("delete", scenario) for scenario in (*SCENARIOS, follow)),
        *(("compact", scenario) for scenario in (*SCENARIOS, follow)),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_crashes_deep(policy: str, scenario: Callable[[CrashCheckedLog], None]) -> None:
    settings = replace(SETTINGS, cleanup_policy=(policy,))
    checked = CrashCheckedLog(Bound(states=200, tear_points=0), settings=settings)
    scenario(checked)
    again = CrashCheckedLog(Bound(states=12, tear_points=2), depth=2, settings=settings)
    scenario(again)
    assert checked.crashes + again.crashes > 10_000
