"""Relays requests that only the controller can answer.

The controller answers them. Any other broker forwards a client's request unchanged and returns the
controller's answer. A request that a broker forwarded is not forwarded again: two brokers that each
take the other for the controller would send it back and forth for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from holdfast.broker.controller.service import ControllerService
from holdfast.broker.controller.store_writer import ControllerMovedError
from holdfast.broker.metadata.store_nodes import DamagedNodeError
from holdfast.broker.network.calls import Call
from holdfast.coordination import StoreError
from holdfast.model import ErrorCode
from holdfast.protocol import Response

if TYPE_CHECKING:
    from holdfast.broker.node import Broker

PATIENCE_S: Final = 3.0
"""How long a request waits for a controller; the client may retry."""
RETRY_S: Final = 0.05
PURPOSE: Final = "relay"

Work = Callable[[ControllerService], Awaitable[Response]]
Refuse = Callable[[ErrorCode, str], Response]


def answer_as_controller(broker: Broker, call: Call, work: Work, refuse: Refuse) -> None:
    """Answer here if we are the controller, else forward the request."""
    broker.tasks.answer_by(call, _answer(broker, call, work, refuse))


async def _answer(broker: Broker, call: Call, work: Work, refuse: Refuse) -> Response:
    from_broker = call.connection.broker is not None
    until_s = broker.loop.time() + PATIENCE_S
    while True:
        if broker.controller is not None:
            response = await _work(broker, broker.controller, work, refuse)
        elif from_broker:
            return _not_controller(refuse)
        else:
            response = await _relay(broker, call, refuse)
        is_final = response != _not_controller(refuse)
        if is_final or from_broker or broker.loop.time() >= until_s:
            return response
        await asyncio.sleep(RETRY_S)


def _not_controller(refuse: Refuse) -> Response:
    return refuse(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")


async def _work(broker: Broker, service: ControllerService, work: Work, refuse: Refuse) -> Response:
    try:
        return await work(service)
    except ControllerMovedError:
        return _not_controller(refuse)
    except (StoreError, DamagedNodeError) as error:
        broker.log.warning("the store did not answer", error=str(error))
        return refuse(
            ErrorCode.REQUEST_TIMED_OUT, f"The coordination store did not answer: {error}"
        )
    except Exception as error:  # noqa: BLE001  # whatever it was, the client gets an answer
        broker.log.bug("request failed at the controller", error)
        return refuse(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "The server experienced an unexpected error when processing the request.",
        )


async def _relay(broker: Broker, call: Call, refuse: Refuse) -> Response:
    controller = broker.metadata.controller
    if controller is None or controller == broker.id or not broker.peers.knows(controller):
        return _not_controller(refuse)
    answer: asyncio.Future[Response | None] = broker.loop.create_future()

    def answered(response: Response | None) -> None:
        if not answer.done():
            answer.set_result(response)

    broker.peers.to(controller, PURPOSE).send(call.request, call.version, answered)
    response = await answer
    return _not_controller(refuse) if response is None else response
