"""Deliberately broken logs: the crash tests must see each of them, or they prove nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.lab.crash_states import Bound
from holdfast.model import Offset
from holdfast.storage import Log
from holdfast.storage.log import Log as LogClass
from holdfast.storage.real_disk import RealFile
from holdfast.storage.scan import BadBatchError
from holdfast.storage.segment import Segment
from tests.unit.storage.crashes import Life
from tests.unit.storage.test_crashes import cut, grow

pytestmark = pytest.mark.slow
Break = Callable[[pytest.MonkeyPatch], None]


def names_are_not_flushed(patch: pytest.MonkeyPatch) -> None:
    def flush_files(log: Log) -> None:
        for segment in log.segments:
            segment.flush()

    patch.setattr(LogClass, "_flush_files", flush_files)


def bytes_are_not_flushed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Segment, "flush", lambda segment: None)


def only_the_active_segment_is_flushed(patch: pytest.MonkeyPatch) -> None:
    def flush_files(log: Log) -> None:
        log.active.flush()
        log.disk.flush_directory(log.directory)

    patch.setattr(LogClass, "_flush_files", flush_files)


def a_cut_leaves_the_recovery_point(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogClass, "_lower_recovery_point", lambda log: None)


def a_cut_forgets_to_cut(patch: pytest.MonkeyPatch) -> None:
    def truncate_to(segment: Segment, offset: int) -> Offset:
        segment.rebuild_tail(offset)
        return Offset(offset)

    patch.setattr(Segment, "truncate_to", truncate_to)


@pytest.mark.parametrize(
    ("broken", "story"),
    [
        (names_are_not_flushed, grow),
        (bytes_are_not_flushed, grow),
        (only_the_active_segment_is_flushed, grow),
        (a_cut_forgets_to_cut, cut),
        (a_cut_leaves_the_recovery_point, cut),
    ],
    ids=lambda one: one.__name__,
)
def test_the_crash_tests_see_it(
    monkeypatch: pytest.MonkeyPatch, broken: Break, story: Callable[[Life], None]
) -> None:
    broken(monkeypatch)
    life = Life(Bound(states=8, cuts=1))
    with pytest.raises((AssertionError, BadBatchError)):  # what was lost, or cannot be read
        story(life)


def test_the_simulated_file_is_what_the_real_one_is() -> None:
    """Every public name of the real file is one of the simulated file, and the other way round."""
    from holdfast.lab.byte_disk import ByteFile

    names = {name for name in dir(RealFile) if not name.startswith("_")} - {"dirty"}
    assert names == {name for name in dir(ByteFile) if not name.startswith("_")}
