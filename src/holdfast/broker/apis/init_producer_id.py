"""InitProducerId: a producer id for an idempotent producer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.network.calls import Call
from holdfast.coordination import StoreError
from holdfast.model import ErrorCode
from holdfast.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from holdfast.broker.node import Broker


def handle(broker: Broker, call: Call) -> None:
    """A new producer id; transactions are not supported yet and are refused."""
    request = call.request
    assert isinstance(request, InitProducerIdRequest)
    if request.transactional_id is not None:
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        call.answer(InitProducerIdResponse(error_code=error, producer_epoch=-1))
        return
    broker.tasks.answer_by(call, _take(broker))


async def _take(broker: Broker) -> InitProducerIdResponse:
    try:
        producer_id = await broker.producer_ids.take()
    except StoreError:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return InitProducerIdResponse(error_code=error, producer_epoch=-1)
    return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)
