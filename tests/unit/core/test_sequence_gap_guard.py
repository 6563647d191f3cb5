"""Refused batches of a connection, and the batches that must wait for them."""

from __future__ import annotations

import pytest

from holdfast.core import ProducerStates, SequenceGapGuard
from holdfast.core.producers import sequence_gap_guard as module
from holdfast.model import BatchHeader, ErrorCode, Offset, ProducerId

FOR_NOW = ErrorCode.NOT_ENOUGH_REPLICAS
LAST = 2**31 - 1


def batch(sequence: int, *, producer: int = 7, epoch: int = 0) -> BatchHeader:
    return BatchHeader(
        1, producer_id=ProducerId(producer), producer_epoch=epoch, base_sequence=sequence
    )


def soon(
    refused: SequenceGapGuard, header: BatchHeader, known: ProducerStates | None = None
) -> bool:
    return refused.is_out_of_order(("t", 0), header, known or ProducerStates())


@pytest.fixture
def refused() -> SequenceGapGuard:
    """The second batch of a producer was refused."""
    refused = SequenceGapGuard()
    refused.note(("t", 0), batch(1), FOR_NOW)
    return refused


def test_later_batches_wait_for_the_refused_one(refused: SequenceGapGuard) -> None:
    assert soon(refused, batch(2))
    refused.note(("t", 0), batch(2), FOR_NOW)
    assert soon(refused, batch(3))
    assert not soon(refused, batch(1))
    assert not refused
    assert not soon(refused, batch(2))


def test_an_earlier_refused_batch_comes_first(refused: SequenceGapGuard) -> None:
    refused.note(("t", 0), batch(0), FOR_NOW)
    assert soon(refused, batch(1))
    assert not soon(refused, batch(0))


@pytest.mark.parametrize(
    ("topic", "partition", "header"),
    [
        ("t", 1, batch(2)),
        ("u", 0, batch(2)),
        ("t", 0, batch(2, producer=8)),
        ("t", 0, batch(2, epoch=1)),
        ("t", 0, BatchHeader(1)),
    ],
)
def test_other_producers_do_not_wait_for_it(
    refused: SequenceGapGuard, topic: str, partition: int, header: BatchHeader
) -> None:
    assert not refused.is_out_of_order((topic, partition), header, ProducerStates())


def test_a_log_with_state_of_the_producer_decides_itself(refused: SequenceGapGuard) -> None:
    """Another leader accepted it meanwhile, and it was replicated to us."""
    known = ProducerStates()
    known.assign(batch(1), Offset(0))
    assert not soon(refused, batch(2), known)
    assert not refused


def test_no_batch_waits_for_one_that_can_never_be_accepted() -> None:
    refused = SequenceGapGuard()
    refused.note(("t", 0), batch(0), ErrorCode.MESSAGE_TOO_LARGE)
    refused.note(("t", 0), BatchHeader(1), FOR_NOW)
    assert not refused


def test_numbers_wrap() -> None:
    refused = SequenceGapGuard()
    refused.note(("t", 0), batch(LAST), FOR_NOW)
    assert soon(refused, batch(0))
    refused.note(("t", 0), batch(LAST - 1), FOR_NOW)
    assert soon(refused, batch(LAST))
    assert not soon(refused, batch(LAST - 1))


def test_a_client_cannot_fill_our_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    refused = SequenceGapGuard()
    for producer in range(5):
        refused.note(("t", 0), batch(0, producer=producer), FOR_NOW)
    waiting = [soon(refused, batch(1, producer=producer)) for producer in range(5)]
    assert waiting == [False, False, True, True, True]
