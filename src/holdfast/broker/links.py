"""The links to other brokers, which can be cut and slowed on purpose.

Every byte a broker sends passes here. Usually that costs one look at an empty dict. A cut link
swallows what is written to it, as a network does that has lost its way: the other side hears
nothing, not even an end. When it is healed the connections that lost bytes are broken, so that both
sides begin anew.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from holdfast.protocol import Payload


@dataclass(slots=True)
class Fault:
    """What is wrong with the way to one broker."""

    is_cut: bool = False
    delay_s: float = 0.0


class Links:
    """The ways from this broker to others; the key None stands for clients."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._faults: dict[int | None, Fault] = {}
        self._torn: list[tuple[int | None, asyncio.Transport]] = []
        """Connections that have lost bytes."""

    def write(self, broker: int | None, transport: asyncio.Transport, parts: list[Payload]) -> None:
        """Send bytes to a broker or client, if the way is there."""
        if not self._faults:
            transport.writelines(parts)
            return
        fault = self._faults.get(broker)
        if fault is None:
            transport.writelines(parts)
        elif fault.is_cut:
            self._torn.append((broker, transport))
        else:
            data = b"".join(parts)
            self._loop.call_later(fault.delay_s, self._write_late, broker, transport, data)

    def _write_late(self, broker: int | None, transport: asyncio.Transport, data: bytes) -> None:
        fault = self._faults.get(broker)
        if fault is not None and fault.is_cut:
            self._torn.append((broker, transport))
        elif not transport.is_closing():
            transport.write(data)

    def is_cut(self, broker: int | None) -> bool:
        """Whether nothing gets through."""
        fault = self._faults.get(broker)
        return fault is not None and fault.is_cut

    def cut(self, broker: int | None) -> None:
        """From now on nothing gets through."""
        self._faults[broker] = Fault(is_cut=True)

    def delay(self, broker: int | None, delay_s: float) -> None:
        """From now on everything comes later."""
        self._faults[broker] = Fault(delay_s=delay_s)

    def heal(self) -> None:
        """All ways are as they should be; what lost bytes is broken."""
        self._faults.clear()
        torn, self._torn = self._torn, []
        for _, transport in torn:
            transport.abort()
