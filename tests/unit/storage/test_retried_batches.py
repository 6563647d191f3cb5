"""After a clean start a log has the batches that a client may send again."""

from __future__ import annotations

import pytest

from holdfast.core import ProducerStates
from holdfast.model import BatchHeader, ErrorCode, ProducerId
from holdfast.storage import Disk, Log, LogSettings
from tests.unit.storage.support import CLEAN, NOW, SMALL, open_, produced


def sequences(log: Log) -> dict[int, list[int]]:
    """The base sequences that the log knows, by producer."""
    states = log.producers.states.values()
    return {one.producer_id: [seen.base_sequence for seen in one.batches] for one in states}


def test_batches_that_a_client_may_send_again_are_known_after_a_clean_start(disk: Disk) -> None:
    """A snapshot has one batch per producer; a client has up to five in flight."""
    log = open_(disk)
    for number in range(12):
        log.append([produced(number, 40 + number % 3, number // 3)], NOW)
    log.close(NOW)
    known = sequences(open_(disk, SMALL, CLEAN))
    assert known == {40: [0, 1, 2, 3], 41: [0, 1, 2, 3], 42: [0, 1, 2, 3]}


def test_only_the_last_batches_of_a_long_log_are_read(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_(disk, LogSettings(index_interval_bytes=100))
    for number in range(40):
        log.append([produced(number, 40, number, [b"x" * 500_000])], NOW)
    log.close(NOW)
    recalled: list[int] = []
    recall = ProducerStates.recall

    def counted(states: ProducerStates, header: BatchHeader) -> None:
        recalled.append(header.base_sequence)
        recall(states, header)

    monkeypatch.setattr(ProducerStates, "recall", counted)
    again = open_(disk, LogSettings(index_interval_bytes=100), CLEAN)
    assert recalled == list(range(recalled[0], 40))
    assert 5 <= len(recalled) <= 12
    assert sequences(again) == {40: [35, 36, 37, 38, 39]}


def test_a_clean_restart_still_knows_a_retry_of_any_of_the_last_five_batches(disk: Disk) -> None:
    """Chaos found it: stopped with five unanswered batches, and elected again."""
    log = open_(disk)
    for number in range(12):
        log.append([produced(number, 40, number)], NOW)
    log.close(NOW)
    producers = open_(disk, SMALL, CLEAN).producers
    for number in range(7, 12):
        sent = BatchHeader(
            record_count=1, producer_id=ProducerId(40), producer_epoch=0, base_sequence=number
        )
        checked = producers.check(sent)
        assert checked.error is ErrorCode.NONE
        assert checked.duplicate is not None
        assert checked.duplicate.base_offset == number


def test_a_producer_that_was_forgotten_stays_forgotten_after_a_restart(disk: Disk) -> None:
    log = open_(disk)
    log.append([produced(0, 40, 0), produced(1, 41, 0)], NOW)
    del log.producers.states[ProducerId(40)]
    log.close(NOW)
    assert list(open_(disk, SMALL, CLEAN).producers.states) == [41]
