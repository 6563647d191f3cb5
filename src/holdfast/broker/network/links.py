"""The links to other brokers and to clients, as the network uses them (`faults.link_faults`)."""

from __future__ import annotations

import asyncio
from typing import Protocol

from holdfast.protocol import Payload


class Links(Protocol):
    """Every byte that a broker sends or receives passes here; None stands for clients."""

    def write(self, broker: int | None, transport: asyncio.Transport, parts: list[Payload]) -> None:
        """Send bytes to a broker or client, unless a fault prevents it."""

    def swallows(self, broker: int | None, transport: asyncio.Transport | None) -> bool:
        """Whether to discard bytes that were received from there."""

    def is_disconnected(self, broker: int | None) -> bool:
        """Whether the link is disconnected."""
