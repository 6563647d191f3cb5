"""Controlled shutdown: asks the controller to move our leaderships before the broker stops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.protocol import Response
from holdfast.protocol.messages.control import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

if TYPE_CHECKING:
    from holdfast.broker.node import Broker

SHUTDOWN_VERSION: Final = 3
POLL_S: Final = 0.02


async def move_leaderships(broker: Broker) -> None:
    """Ask the controller, and wait until no other broker can take a leadership from us."""
    settings = broker.settings
    for attempt in range(1 + settings.controlled_shutdown_max_retries):
        if attempt:
            await asyncio.sleep(min(POLL_S * 2**attempt, _longest_s(broker)))
        if await _ask(broker):
            return
    broker.log.warning("stopping although we still lead partitions")


def _longest_s(broker: Broker) -> float:
    return broker.settings.controlled_shutdown_retry_backoff_ms / 1000


async def _ask(broker: Broker) -> bool:
    controller = broker.metadata.controller
    if controller is None or not broker.peers.knows(controller):
        return False
    answer: asyncio.Future[Response | None] = broker.loop.create_future()
    request = ControlledShutdownRequest(
        broker_id=broker.id, broker_epoch=broker.incarnation.broker_epoch
    )

    def answered(response: Response | None) -> None:
        if not answer.done():
            answer.set_result(response)

    broker.peers.to(controller).send(request, SHUTDOWN_VERSION, answered)
    try:
        response = await asyncio.wait_for(answer, _longest_s(broker))
    except TimeoutError:
        return False
    return (
        isinstance(response, ControlledShutdownResponse)
        and not response.error_code
        and not response.remaining_partitions
    )
