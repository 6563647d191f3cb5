"""The interface of the broker that the controller runs in."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Protocol

from holdfast.broker.log_lines import LogLines
from holdfast.broker.network.peer_connection import Answered
from holdfast.broker.settings.listeners import Endpoint
from holdfast.coordination import Store
from holdfast.model import BrokerId
from holdfast.protocol import Request

if TYPE_CHECKING:
    from holdfast.broker.clock import Clock
    from holdfast.broker.controller.service import ControllerService
    from holdfast.broker.metadata.dynamic_configs import Configs
    from holdfast.broker.trace_events import BrokerTrace


class Sender(Protocol):
    """Sends requests to one broker."""

    def send(self, request: Request, version: int, answered: Answered) -> None: ...


class Senders(Protocol):
    """Gives the sender of each broker."""

    def to(self, broker: BrokerId, purpose: str = "") -> Sender: ...

    def update(self, broker: BrokerId, endpoint: Endpoint) -> None: ...


class Host(Protocol):
    """The parts of a broker that a controller needs."""

    @property
    def id(self) -> BrokerId: ...
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    @property
    def log(self) -> LogLines: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def rng(self) -> random.Random: ...
    @property
    def store(self) -> Store: ...
    @property
    def peers(self) -> Senders: ...
    @property
    def configs(self) -> Configs: ...
    @property
    def trace(self) -> BrokerTrace | None: ...

    controller: ControllerService | None
    """Set while this broker is the controller."""
