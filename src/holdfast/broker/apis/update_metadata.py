"""UpdateMetadata: the controller says what to tell clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.calls import Call
from holdfast.broker.commands import refusal_of
from holdfast.protocol.messages.control import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from holdfast.broker.node import Broker


def handle(broker: Broker, call: Call) -> None:
    """Take over brokers, topics and leaders."""
    request = call.request
    assert isinstance(request, UpdateMetadataRequest)
    error = refusal_of(broker, request.controller_epoch, request.broker_epoch)
    if not error:
        broker.groups.partitions_deleted(broker.metadata.update(request))
        for one in broker.metadata.brokers.values():
            broker.peers.update(one.id, one.endpoint)
    call.answer(UpdateMetadataResponse(error_code=error))
