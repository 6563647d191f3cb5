"""Links that are disconnected, slow, deaf or lossy: what the other side receives."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest

from holdfast.broker.faults.link_faults import Links


class Loop:
    """Timers, fired by hand."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, tuple[object, ...]]] = []

    def call_later(self, delay: float, *call: object) -> None:
        self.timers.append((delay, call))

    def fire(self, *, backwards: bool = False) -> None:
        timers, self.timers = self.timers, []
        for _, (callback, *args) in reversed(timers) if backwards else timers:
            callback(*args)  # type: ignore[operator]  # a timer's callback


class Wire:
    """A transport that remembers."""

    def __init__(self) -> None:
        self.sent = b""
        self.is_aborted = False

    def write(self, data: bytes) -> None:
        self.sent += data

    def writelines(self, parts: list[bytes]) -> None:
        self.sent += b"".join(parts)

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_aborted


class Setup:
    def __init__(self) -> None:
        self.loop = Loop()
        self.wire = Wire()
        self.links = Links(cast("asyncio.AbstractEventLoop", self.loop), random.Random(1))

    def write(self, data: bytes, broker: int | None = 1) -> None:
        self.links.write(broker, self.transport, [data])

    @property
    def transport(self) -> asyncio.Transport:
        return cast("asyncio.Transport", self.wire)


@pytest.fixture
def setup() -> Setup:
    return Setup()


def test_a_healthy_link_lets_everything_through(setup: Setup) -> None:
    setup.write(b"a")
    assert setup.wire.sent == b"a"
    assert not setup.links.swallows(1, setup.transport)


def test_a_disconnected_link_drops_data_and_is_closed_when_reconnected(setup: Setup) -> None:
    setup.links.disconnect(1)
    setup.write(b"a")
    assert setup.wire.sent == b""
    assert not setup.wire.is_aborted
    setup.links.clear_faults()
    assert setup.wire.is_aborted


def test_a_disconnection_is_one_way_unless_asked(setup: Setup) -> None:
    setup.links.disconnect(1)
    assert not setup.links.swallows(1, setup.transport)
    setup.links.disconnect(1, both_ways=True)
    assert setup.links.swallows(1, setup.transport)
    assert not setup.links.swallows(None, setup.transport)


def test_slow_writes_keep_their_order_whatever_timer_fires_first(setup: Setup) -> None:
    setup.links.delay(1, 0.5)
    setup.write(b"a")
    setup.write(b"b")
    assert setup.wire.sent == b""
    setup.loop.fire(backwards=True)
    assert setup.wire.sent == b"ab"


def test_nothing_overtakes_what_is_late(setup: Setup) -> None:
    setup.links.delay(1, 0.5)
    setup.write(b"a")
    setup.links.clear_faults()
    assert setup.wire.sent == b"a"
    setup.write(b"b")
    setup.loop.fire()
    assert setup.wire.sent == b"ab"


def test_a_lost_write_takes_its_connection_with_it(setup: Setup) -> None:
    setup.links.drop(1, 1.0)
    setup.write(b"a")
    assert setup.wire.sent == b""
    assert setup.wire.is_aborted


def test_a_link_that_seldom_drops_usually_does_not(setup: Setup) -> None:
    setup.links.drop(1, 0.1)
    for _ in range(100):
        setup.write(b"a")
    assert 80 <= len(setup.wire.sent) <= 99


def test_faults_are_of_one_broker(setup: Setup) -> None:
    setup.links.disconnect(2)
    setup.links.disconnect(None)
    setup.write(b"a")
    assert setup.wire.sent == b"a"
    assert [*setup.links.faults()] == ["2", "clients"]
