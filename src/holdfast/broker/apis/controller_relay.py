"""Relays requests that only the controller can answer.

The controller answers them. Any other broker forwards a client's request unchanged and returns the
controller's answer. A request that a broker forwarded is not forwarded again: two brokers that each
take the other for the controller would send it back and forth for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from holdfast.broker.controller.service import ControllerService
from holdfast.broker.controller.store_writer import ControllerMovedError
from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.metadata.store_nodes import DamagedNodeError
from holdfast.broker.network.calls import Call
from holdfast.broker.network.peer_set import Peers
from holdfast.broker.tasks import RequestTasks
from holdfast.coordination import StoreError
from holdfast.model import BrokerId, ErrorCode
from holdfast.protocol import Response

PATIENCE_S: Final = 3.0
"""How long a request waits for a controller; the client may retry."""
RETRY_S: Final = 0.05
PURPOSE: Final = "relay"

CurrentController = Callable[[], ControllerService | None]
"""Our controller while this broker is the controller."""
Work = Callable[[ControllerService], Awaitable[Response]]
Refuse = Callable[[ErrorCode, str], Response]


@dataclass(frozen=True, slots=True)
class ControllerRelay:
    """Answers requests for the controller: here if we are the controller, or with its answer."""

    broker: BrokerId
    controller: CurrentController
    metadata: Metadata
    peers: Peers
    tasks: RequestTasks
    log: LogLines

    def answer(self, call: Call, work: Work, refuse: Refuse) -> None:
        """Answer here if we are the controller, else forward the request."""
        self.tasks.answer_by(call, self._answer(call, work, refuse))

    async def _answer(self, call: Call, work: Work, refuse: Refuse) -> Response:
        from_broker = call.connection.broker is not None
        loop = asyncio.get_running_loop()
        until_s = loop.time() + PATIENCE_S
        while True:
            service = self.controller()
            if service is not None:
                response = await self._work(call, service, work, refuse)
            elif from_broker:
                return _not_controller(refuse)
            else:
                response = await self._relay(call, refuse)
            is_final = response != _not_controller(refuse)
            if is_final or from_broker or loop.time() >= until_s:
                return response
            await asyncio.sleep(RETRY_S)

    async def _work(
        self, call: Call, service: ControllerService, work: Work, refuse: Refuse
    ) -> Response:
        try:
            return await work(service)
        except ControllerMovedError:
            return _not_controller(refuse)
        except (StoreError, DamagedNodeError) as error:
            self.log.warning("the store did not answer", error=str(error))
            return refuse(
                ErrorCode.REQUEST_TIMED_OUT, f"The coordination store did not answer: {error}"
            )
        except Exception as error:  # noqa: BLE001  # whatever it was, the client gets an answer
            self.log.bug("request failed at the controller", error, call.sender, api=call.api.name)
            return refuse(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "The server experienced an unexpected error when processing the request.",
            )

    async def _relay(self, call: Call, refuse: Refuse) -> Response:
        controller = self.metadata.controller
        if controller is None or controller == self.broker or not self.peers.knows(controller):
            return _not_controller(refuse)
        answer: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()

        def answered(response: Response | None) -> None:
            if not answer.done():
                answer.set_result(response)

        self.peers.to(controller, PURPOSE).send(call.request, call.version, answered)
        response = await answer
        return _not_controller(refuse) if response is None else response


def _not_controller(refuse: Refuse) -> Response:
    return refuse(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")
