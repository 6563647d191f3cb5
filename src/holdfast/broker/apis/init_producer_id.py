"""InitProducerId: a producer id for an idempotent producer."""

from __future__ import annotations

from holdfast.broker.network.calls import Call
from holdfast.broker.producer_ids import ProducerIds
from holdfast.broker.tasks import RequestTasks
from holdfast.coordination import StoreError
from holdfast.model import ErrorCode
from holdfast.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse


def handle(tasks: RequestTasks, producer_ids: ProducerIds, call: Call) -> None:
    """A new producer id; transactions are not supported yet and are refused."""
    request: InitProducerIdRequest = call.request
    if request.transactional_id is not None:
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        call.answer(InitProducerIdResponse(error_code=error, producer_epoch=-1))
        return
    tasks.answer_by(call, _take(producer_ids))


async def _take(producer_ids: ProducerIds) -> InitProducerIdResponse:
    try:
        producer_id = await producer_ids.take()
    except StoreError:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return InitProducerIdResponse(error_code=error, producer_epoch=-1)
    return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)
