"""Indexes of sealed segments take a bounded part of memory."""

from __future__ import annotations

import pytest

from holdfast.storage import Disk, LogSettings, offset_for_timestamp
from holdfast.storage.segment import indexed_segment, segment
from holdfast.storage.segment.index_cache import LoadedIndexes
from tests.unit.storage.support import NOW, fill, open_, reopened, values_of

SETTINGS = LogSettings(segment_bytes=1_000, index_interval_bytes=100)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> LoadedIndexes:
    few = LoadedIndexes(150)
    for module in (indexed_segment, segment):
        monkeypatch.setattr(module, "INDEXES", few)
    return few


def test_a_reader_of_a_long_log_keeps_few_indexes(disk: Disk, loaded: LoadedIndexes) -> None:
    log = open_(disk, SETTINGS)
    fill(log, 100, step_ms=10)
    expected = values_of(log)
    log = reopened(log, is_clean=True)
    assert loaded.total == 0
    assert values_of(log, max_bytes=300) == expected
    sealed = log.segments[:-1]
    kept = [one for one in sealed if one.index_bytes()]
    assert 0 < loaded.total == sum(one.index_bytes() for one in kept) <= 150
    assert sealed[-1] in kept
    assert log.active.index_bytes() > 0
    for place in range(100):
        found = offset_for_timestamp(log, NOW + 10 * place)
        assert found is not None
        assert found.offset == place
    assert loaded.total <= 150
    log.close(NOW)
    assert loaded.total == 0


def test_the_active_segment_keeps_its_own(disk: Disk, loaded: LoadedIndexes) -> None:
    log = open_(disk, SETTINGS)
    fill(log, 40)
    log.truncate_to(log.segments[3].base_offset, NOW)
    fill(log, 3)
    values_of(log)
    before = log.active.index_bytes()
    log.active.unload()
    assert log.active.index_bytes() == before


def test_the_most_recently_used_stays() -> None:
    class One:
        def __init__(self) -> None:
            self.is_there = True

        def index_bytes(self) -> int:
            return 10

        def unload(self) -> None:
            self.is_there = False

    loaded = LoadedIndexes(30)
    first, second, third, fourth = many = [One() for _ in range(4)]
    for one in (first, second, third, first, fourth):
        loaded.used(one)
    assert [one.is_there for one in many] == [True, False, True, True]
    loaded.forget(second)
    loaded.forget(first)
    assert loaded.total == 20
