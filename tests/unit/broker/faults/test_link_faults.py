"""Links that are disconnected and delayed on purpose."""

import asyncio
from typing import Any, cast

from holdfast.broker.faults.link_faults import Links


class Wire:
    """Stands for a transport: records what reaches it."""

    def __init__(self) -> None:
        self.sent = b""
        self.is_broken = False

    def writelines(self, parts: list[bytes]) -> None:
        self.sent += b"".join(parts)

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.is_broken

    def abort(self) -> None:
        self.is_broken = True


def write(links: Links, broker: int | None, wire: Wire, data: bytes) -> None:
    links.write(broker, cast("Any", wire), [data])


def test_a_disconnected_link_discards_writes_and_breaks_when_faults_are_cleared() -> None:
    loop = asyncio.new_event_loop()
    links, disconnected, whole = Links(loop), Wire(), Wire()
    links.disconnect(2)
    write(links, 2, disconnected, b"lost")
    write(links, 3, whole, b"kept")
    assert (disconnected.sent, whole.sent) == (b"", b"kept")
    assert not disconnected.is_closing(), "the other side must not notice"
    links.clear_faults()
    assert disconnected.is_closing(), "it has lost bytes: only a new connection is in step again"
    assert not whole.is_closing()
    loop.close()


def test_a_slow_link_keeps_the_order() -> None:
    loop = asyncio.new_event_loop()
    links, wire = Links(loop), Wire()
    links.delay(None, 0.01)
    for letter in (b"a", b"b", b"c"):
        write(links, None, wire, letter)
    assert wire.sent == b""

    arrived = loop.create_future()
    loop.call_later(0.05, arrived.set_result, None)
    loop.run_until_complete(arrived)
    assert wire.sent == b"abc"
    loop.close()
