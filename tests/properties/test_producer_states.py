"""Compares producer states with a slow read of the whole log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.producers.producer_state import REMEMBERED_BATCHES, ProducerStates
from holdfast.model import BatchHeader, ErrorCode, LeaderEpoch, Offset, ProducerId

WRAP = 1 << 31

Verdict = tuple[ErrorCode, Offset | None]
"""The error, and where the first copy of a duplicate is."""

producers = st.sampled_from((-1, 7, 8))
counts = st.integers(1, 3)
starts = st.sampled_from((0, 1, 5, WRAP - 3, WRAP - 1))


@st.composite
def requests(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """What clients send: (producer, its epoch, base sequence, records), mostly in order."""
    sent: list[tuple[int, int, int, int]] = []
    following: dict[int, int] = {}
    for _ in range(draw(st.integers(0, 15))):
        kind = draw(st.sampled_from(("next", "next", "next", "again", "odd")))
        if kind == "again" and sent:
            sent.append(draw(st.sampled_from(sent)))
            continue
        producer, count = draw(producers), draw(counts)
        sequence = following.get(producer, draw(starts))
        if kind == "odd":
            sequence = draw(starts)
        epoch = draw(st.sampled_from((0, 0, 0, 1)))
        sent.append((producer, epoch, sequence, count))
        following[producer] = (sequence + count) % WRAP
    return sent


def header(request: tuple[int, int, int, int], offset: int) -> BatchHeader:
    producer, epoch, sequence, count = request
    return BatchHeader(count, LeaderEpoch(0), Offset(offset), ProducerId(producer), epoch, sequence)


def slow_check(log: list[BatchHeader], batch: BatchHeader) -> Verdict:
    """The rules, by reading every batch of the log again."""
    ours = [one for one in log if one.producer_id == batch.producer_id]
    if not ours:
        return ErrorCode.NONE, None
    last = ours[-1]
    if batch.producer_epoch < last.producer_epoch:
        return ErrorCode.INVALID_PRODUCER_EPOCH, None
    expected = (last.base_sequence + last.record_count) % WRAP
    if batch.producer_epoch > last.producer_epoch:
        expected = 0
    if batch.base_sequence == expected:
        return ErrorCode.NONE, None
    for one in ours[-REMEMBERED_BATCHES:]:
        if one._replace(base_offset=batch.base_offset) == batch:
            return ErrorCode.NONE, one.base_offset
    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None


def fast_check(states: ProducerStates, batch: BatchHeader) -> Verdict:
    check = states.check(batch)
    return check.error, check.duplicate.base_offset if check.duplicate else None


def append_all(sent: list[tuple[int, int, int, int]]) -> tuple[ProducerStates, list[BatchHeader]]:
    """Send everything; the log has what the slow rules accept."""
    states, log, end = ProducerStates(), list[BatchHeader](), 0
    for request in sent:
        batch = header(request, end)
        if request[0] >= 0:
            verdict = slow_check(log, batch)
            assert fast_check(states, batch) == verdict
            if verdict != (ErrorCode.NONE, None):
                continue
        states.append(batch)
        log.append(batch)
        end += batch.record_count
    return states, log


@given(sent=requests())
def test_every_batch_is_judged_as_the_whole_log_would_judge_it(
    sent: list[tuple[int, int, int, int]],
) -> None:
    append_all(sent)


@given(sent=requests(), probe=requests(), kept=st.integers(0, 15))
def test_a_state_rebuilt_from_a_truncated_log_is_the_state_of_that_log(
    sent: list[tuple[int, int, int, int]], probe: list[tuple[int, int, int, int]], kept: int
) -> None:
    states, log = append_all(sent)
    states.rebuild(log[:kept])
    for request in [*sent, *probe]:
        if request[0] >= 0:
            batch = header(request, 99)
            assert fast_check(states, batch) == slow_check(log[:kept], batch)
