"""Fetch sessions: partitions that count as fetched although the request omits them."""

from __future__ import annotations

from holdfast.broker.fetch.fetch_sessions import FetchSession, Reader
from holdfast.model import BrokerId

TWO, THREE = BrokerId(2), BrokerId(3)


def test_a_follower_out_of_the_isr_is_checked_with_every_request() -> None:
    session, reader = FetchSession(1, THREE), Reader("events", 0)
    session.isr_changed(reader, (TWO,))
    assert list(session.outsiders) == [reader]
    session.isr_changed(reader, (TWO, THREE))
    assert not session.outsiders


def test_a_consumer_is_in_no_isr() -> None:
    session, reader = FetchSession(1, None), Reader("events", 0)
    session.isr_changed(reader, (TWO,))
    assert not session.outsiders
