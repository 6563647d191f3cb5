"""Waiting requests: in the order of their offsets, or until their deadline."""

from __future__ import annotations

from holdfast.core.replica.waiting_requests import ParkedFetches, WaitingAck, WaitingAcks
from holdfast.model import Offset


def ack(end: int, waiter: str = "", deadline_ms: int = 1_000) -> WaitingAck:
    return WaitingAck(Offset(end), Offset(end - 1), deadline_ms, waiter or str(end))


def waiting(*acks: WaitingAck) -> WaitingAcks:
    queue = WaitingAcks()
    for one in acks:
        queue.add(one)
    return queue


def waiters(acks: WaitingAcks, high_watermark: int) -> list[object]:
    return [one.waiter for one in acks.take_up_to(Offset(high_watermark))]


def test_those_up_to_the_high_watermark_are_taken_in_order() -> None:
    queue = waiting(ack(1), ack(2), ack(3))
    assert waiters(queue, 2) == ["1", "2"]
    assert len(queue) == 1


def test_a_batch_is_committed_only_as_a_whole() -> None:
    assert waiters(waiting(ack(5)), 4) == []


def test_a_retry_of_an_older_batch_finds_its_place() -> None:
    queue = waiting(ack(1), ack(3), ack(2, "retry"))
    assert waiters(queue, 3) == ["1", "retry", "3"]


def test_a_retry_stands_behind_the_first_copy() -> None:
    queue = waiting(ack(2, "first"), ack(3), ack(2, "retry"))
    assert waiters(queue, 2) == ["first", "retry"]


def test_everyone_is_taken_once() -> None:
    queue = waiting(ack(1), ack(2))
    assert [one.waiter for one in queue.take_all()] == ["1", "2"]
    assert queue.take_all() == []


def test_expired_requests_are_taken_and_the_others_stay_in_order() -> None:
    queue = waiting(ack(1), ack(2, deadline_ms=10), ack(3))
    assert [one.waiter for one in queue.take_expired(10)] == ["2"]
    assert queue.take_expired(10) == []
    assert waiters(queue, 3) == ["1", "3"]


def test_parked_fetches_leave_in_the_order_of_parking() -> None:
    parked = ParkedFetches()
    for waiter in ("b", "a"):
        parked.park(waiter, 10)
    assert len(parked) == 2
    assert parked.take_all() == ["b", "a"]
    assert len(parked) == 0


def test_a_parked_fetch_that_was_forgotten_does_not_expire() -> None:
    parked = ParkedFetches()
    parked.park("a", 10)
    assert parked.unpark("a")
    assert not parked.unpark("a")
    assert parked.take_expired(10) == []
