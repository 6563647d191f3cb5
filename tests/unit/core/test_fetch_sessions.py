"""Fetch sessions: partitions that count as fetched although the request omits them."""

from __future__ import annotations

from typing import Any

from holdfast.core import FetchSession, Reader
from holdfast.model import BrokerId

TWO, THREE = BrokerId(2), BrokerId(3)


def new_session(follower: BrokerId | None) -> tuple[FetchSession[Any], Reader[Any]]:
    return FetchSession(1, follower), Reader(("events", 0))


def test_a_follower_out_of_the_isr_is_checked_with_every_request() -> None:
    session, reader = new_session(THREE)
    session.isr_changed(reader, (TWO,))
    assert list(session.outsiders) == [reader]
    session.isr_changed(reader, (TWO, THREE))
    assert not session.outsiders


def test_a_consumer_is_in_no_isr() -> None:
    session, reader = new_session(None)
    session.isr_changed(reader, (TWO,))
    assert not session.outsiders
