"""Crashes at every point of every operation, on the simulated disk.

The bound is small here and deep in `test_crashes_deep` (`make test-long`): every byte of a torn
write, many more combinations, and crashes during the recovery from a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from holdfast.simulation.disk.crash_states import Bound
from tests.unit.storage.crashes import SETTINGS, Life


def grow(life: Life) -> None:
    """Appends with and without flushes, over several segments."""
    life.append(4)
    life.flush()
    life.append(3, at_once=2)
    life.checkpoint()
    life.append(2)
    life.flush()
    life.checkpoint()
    life.append(4)


def cut(life: Life) -> None:
    """Cuts in the middle of a segment, across segments, at a boundary, and what grows after."""
    life.append(9)
    life.flush()
    life.checkpoint()
    life.elect()
    life.truncate(7)
    life.append(3)
    life.truncate(2)
    life.elect()
    life.append(5)
    life.flush()
    life.truncate(3)
    life.append(2)


def begin_anew(life: Life) -> None:
    """Everything thrown away, with a start further on and further back."""
    life.append(7)
    life.flush()
    life.checkpoint()
    life.restart(50)
    life.append(3)
    life.flush()
    life.restart(10)
    life.append(2)


def leave(life: Life) -> None:
    """Deleting records and old segments."""
    life.append(10)
    life.flush()
    life.delete_records(4)
    life.checkpoint()
    life.delete_records(9)
    life.checkpoint()
    life.append(6)
    life.flush()
    life.checkpoint()
    life.restart(3)
    life.append(2)


def rest(life: Life) -> None:
    """Clean shutdowns with work in between."""
    life.append(4)
    life.restart_cleanly()
    life.elect()
    life.append(4)
    life.restart_cleanly()
    life.truncate(6)
    life.append(1)


def transact(life: Life) -> None:
    """Transactions, committed and aborted, cut and grown again."""
    life.transaction(is_commit=True)
    life.transaction(is_commit=False)
    life.append(1)
    life.flush()
    life.transaction(is_commit=False)
    life.truncate(4)
    life.elect()
    life.transaction(is_commit=False)


def seal(life: Life) -> None:
    """Flushes on another thread, while the log grows, rolls and is cut."""
    life.append(4)
    life.flush_in_background(partial(life.append, 3))
    life.append(5)
    life.flush_in_background(partial(life.checkpoint))
    life.append(1)
    life.flush_in_background(partial(life.truncate, 9))
    life.elect()
    life.append(6)
    life.checkpoint()
    life.flush_in_background(partial(life.append, 2))
    life.checkpoint()
    life.append(3)


def take_back(life: Life) -> None:
    """An epoch that a truncation takes while a flush writes it, and a log that grows past it."""
    life.append(2)
    life.flush_in_background(partial(life.checkpoint))
    life.elect()
    life.append(1)
    life.flush_in_background(partial(life.truncate, 2), runs_first=True)
    life.epoch = 0
    life.append(6)
    life.flush()
    life.checkpoint()
    life.elect()
    life.elect()
    life.append(2)


def follow(life: Life) -> None:
    """Copies of what a compacted leader has left: gaps inside segments and between them."""
    life.append(3)
    life.append(3, gap=2)
    life.flush_in_background(partial(life.append, 2, gap=1))
    life.append(3, gap=1)
    life.flush_in_background(partial(life.append, 2))
    life.checkpoint()
    life.append(3, gap=3)
    life.truncate(20)
    life.append(2)
    life.flush()


STORIES = (grow, cut, begin_anew, leave, rest, transact, seal, take_back)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "story"),
    [
        *(("delete", story) for story in (*STORIES, follow)),
        *(("compact", story) for story in (grow, cut, seal, follow)),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_any_crash_leaves_a_prefix_with_everything_flushed(
    policy: str, story: Callable[[Life], None]
) -> None:
    life = Life(
        Bound(states=6, tear_points=1), settings=replace(SETTINGS, cleanup_policy=(policy,))
    )
    story(life)
    assert life.crashes > 100


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("policy", "story"),
    [
        *(("delete", story) for story in (*STORIES, follow)),
        *(("compact", story) for story in (*STORIES, follow)),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_crashes_deep(policy: str, story: Callable[[Life], None]) -> None:
    settings = replace(SETTINGS, cleanup_policy=(policy,))
    life = Life(Bound(states=200, tear_points=0), settings=settings)
    story(life)
    again = Life(Bound(states=12, tear_points=2), depth=2, settings=settings)
    story(again)
    assert life.crashes + again.crashes > 10_000
