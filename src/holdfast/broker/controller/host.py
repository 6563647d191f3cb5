"""The broker that a controller runs in."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.broker.clock import Clock
from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.network.peer_connection import Answered
from holdfast.broker.settings.listeners import Endpoint
from holdfast.broker.trace_events import BrokerTrace
from holdfast.coordination import Store
from holdfast.model import BrokerId
from holdfast.protocol import Request


class Sender(Protocol):
    """Sends requests to one broker."""

    def send(self, request: Request, version: int, answered: Answered) -> None: ...


class Senders(Protocol):
    """Gives the sender of each broker."""

    def to(self, broker: BrokerId, purpose: str = "") -> Sender: ...

    def update(self, broker: BrokerId, endpoint: Endpoint) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The parts of a broker that a controller uses."""

    id: BrokerId
    loop: asyncio.AbstractEventLoop
    clock: Clock
    log: LogLines
    rng: random.Random
    trace: BrokerTrace | None
    store: Store
    peers: Senders
    configs: Configs
    elections: Counter[str] = field(default_factory=Counter)
    """Leader elections in all terms of this broker as controller, by rule."""
