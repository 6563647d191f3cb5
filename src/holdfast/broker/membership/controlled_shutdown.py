"""Controlled shutdown: asks the controller to move our leaderships before the broker stops."""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.controller_channel import ControllerChannel
from holdfast.broker.settings import BrokerSettings
from holdfast.core import BrokerIncarnation
from holdfast.protocol import Response
from holdfast.protocol.messages.control import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

SHUTDOWN_VERSION: Final = 3
POLL_S: Final = 0.02


async def move_leaderships(
    controller: ControllerChannel,
    settings: BrokerSettings,
    incarnation: BrokerIncarnation,
    log: LogLines,
) -> None:
    """Ask the controller, and wait until no other broker can take a leadership from us."""
    longest_s = settings.controlled_shutdown_retry_backoff_ms / 1000
    for attempt in range(1 + settings.controlled_shutdown_max_retries):
        if attempt:
            await asyncio.sleep(min(POLL_S * 2**attempt, longest_s))
        request = ControlledShutdownRequest(
            broker_id=settings.node_id, broker_epoch=incarnation.broker_epoch
        )
        if controller.is_open and await _ask(controller, request, longest_s):
            return
    log.warning("stopping although we still lead partitions")


async def _ask(
    controller: ControllerChannel, request: ControlledShutdownRequest, timeout_s: float
) -> bool:
    answer: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()

    def answered(response: Response | None) -> None:
        if not answer.done():
            answer.set_result(response)

    controller.send(request, SHUTDOWN_VERSION, answered)
    try:
        response = await asyncio.wait_for(answer, timeout_s)
    except TimeoutError:
        return False
    return (
        isinstance(response, ControlledShutdownResponse)
        and not response.error_code
        and not response.remaining_partitions
    )
