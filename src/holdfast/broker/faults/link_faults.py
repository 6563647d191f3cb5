"""Links to other brokers and to clients, which can be disconnected, delayed or made lossy.

Every byte that a broker sends passes here, and every byte that it receives is checked here. Without
a fault that costs one look at an empty dict. A disconnected link discards what is written to it, as
a network partition does: the other side receives nothing, not even the end of the connection. A
deaf link also discards what it receives. A lossy link loses a write now and then, and its
connection with it: a stream with a hole is useless. When the faults are cleared, connections that
lost bytes are broken so that both sides reconnect, and delayed bytes are sent immediately, in
order.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from dataclasses import dataclass
from typing import Final

from holdfast.protocol import Payload

JOINED_BYTES: Final = 16 * 1024
"""Up to this size pieces are copied into one: cheaper than a vectored write of a dozen pieces."""


@dataclass(slots=True)
class Fault:
    """The fault of the link to one broker, or to all clients."""

    is_disconnected: bool = False
    is_deaf: bool = False
    """Received bytes are discarded too."""
    delay_s: float = 0.0
    drop: float = 0.0
    """The probability that a write is lost."""


class Links:
    """The links from this broker to others; the key None stands for clients."""

    def __init__(self, loop: asyncio.AbstractEventLoop, rng: random.Random | None = None) -> None:
        self._loop = loop
        self._rng = rng or random.Random()  # noqa: S311  # faults on purpose, no secrets
        self._faults: dict[int | None, Fault] = {}
        self._torn: dict[asyncio.Transport, None] = {}
        """Connections that have lost bytes."""
        self._late: dict[asyncio.Transport, deque[bytes]] = {}
        """Delayed writes of a slow link. Later writes must not overtake them."""

    def write(self, broker: int | None, transport: asyncio.Transport, parts: list[Payload]) -> None:
        """Send bytes to a broker or client, unless a fault prevents it."""
        if not self._faults and not self._late:
            _send(transport, parts)
            return
        fault = self._faults.get(broker)
        if transport in self._late or (fault is not None and fault.delay_s):
            self._send_late(broker, transport, parts, fault.delay_s if fault is not None else 0.0)
        elif self._is_lost(fault, transport):
            return
        else:
            _send(transport, parts)

    def _is_lost(self, fault: Fault | None, transport: asyncio.Transport) -> bool:
        if fault is None:
            return False
        if fault.is_disconnected or transport in self._torn:
            self._torn[transport] = None
            return True
        if fault.drop and self._rng.random() < fault.drop:
            transport.abort()
            return True
        return False

    def _send_late(
        self,
        broker: int | None,
        transport: asyncio.Transport,
        parts: list[Payload],
        delay_s: float,
    ) -> None:
        self._late.setdefault(transport, deque()).append(b"".join(parts))
        self._loop.call_later(delay_s, self._write_late, broker, transport)

    def _write_late(self, broker: int | None, transport: asyncio.Transport) -> None:
        """One timer per write, but always the oldest write: timers may fire in another order."""
        late = self._late.get(transport)
        if late is None:
            return
        data = late.popleft()
        if not late:
            del self._late[transport]
        if not self._is_lost(self._faults.get(broker), transport) and not transport.is_closing():
            transport.write(data)

    def swallows(self, broker: int | None, transport: asyncio.Transport | None) -> bool:
        """Whether to discard bytes that were received from there."""
        if not self._faults:
            return False
        fault = self._faults.get(broker)
        if fault is None or not fault.is_deaf:
            return False
        if transport is not None:
            self._torn[transport] = None
        return True

    def is_disconnected(self, broker: int | None) -> bool:
        """Whether the link is disconnected."""
        fault = self._faults.get(broker)
        return fault is not None and fault.is_disconnected

    def disconnect(self, broker: int | None, *, both_ways: bool = False) -> None:
        """Disconnect a link: from here to there, or both ways."""
        self._faults[broker] = Fault(is_disconnected=True, is_deaf=both_ways)

    def delay(self, broker: int | None, delay_s: float) -> None:
        """Delay every write."""
        fault = self._faults.setdefault(broker, Fault())
        fault.delay_s = delay_s

    def drop(self, broker: int | None, probability: float) -> None:
        """Lose a write now and then, and its connection with it."""
        fault = self._faults.setdefault(broker, Fault())
        fault.drop = probability

    def clear_faults(self) -> None:
        """Clear all faults; break connections that lost bytes, and send delayed writes."""
        self._faults.clear()
        torn, self._torn = self._torn, {}
        late, self._late = self._late, {}
        for transport in torn:
            transport.abort()
        for transport, writes in late.items():
            if transport not in torn and not transport.is_closing():
                transport.writelines(list(writes))

    def faults(self) -> dict[str, dict[str, float | bool]]:
        """The current faults, ready for JSON."""
        return {
            "clients" if broker is None else str(broker): {
                "cut": fault.is_disconnected,
                "deaf": fault.is_deaf,
                "delay_s": fault.delay_s,
                "drop": fault.drop,
            }
            for broker, fault in self._faults.items()
        }


def _send(transport: asyncio.Transport, parts: list[Payload]) -> None:
    if len(parts) > 1 and sum(map(len, parts)) <= JOINED_BYTES:
        transport.write(b"".join(parts))
    else:
        transport.writelines(parts)
