"""ControlledShutdown: the controller moves a broker's leaderships before the broker stops."""

from __future__ import annotations

from typing import Final

from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.network.calls import Call
from holdfast.core import is_current
from holdfast.model import BrokerEpoch, BrokerId, ErrorCode, TopicPartition
from holdfast.protocol.messages.control import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

AGREE_S: Final = 5.0


def handle(relay: ControllerRelay, call: Call) -> None:
    """Move the leaderships that can move, and name the remaining partitions."""
    request: ControlledShutdownRequest = call.request

    def refuse(error: ErrorCode, _: str) -> ControlledShutdownResponse:
        return ControlledShutdownResponse(error_code=error, remaining_partitions=[])

    async def work(service: ControllerService) -> ControlledShutdownResponse:
        leaving = BrokerId(request.broker_id)
        epoch = BrokerEpoch(request.broker_epoch)
        if leaving not in service.core.brokers:
            return refuse(ErrorCode.BROKER_ID_NOT_REGISTERED, "")
        # Versions 0 and 1 name no broker epoch: Holdfast does not send them, and refuses them.
        if not is_current(service.core.brokers, leaving, epoch):
            return refuse(ErrorCode.STALE_BROKER_EPOCH, "")
        service.run(service.core.shutdown_asked(leaving, epoch))
        hosted = [
            one for one, state in service.core.partitions.items() if leaving in state.replicas
        ]
        await service.settled(hosted, AGREE_S)
        moved = [one for one in hosted if not _leads(service, one, leaving)]
        await service.admin.until_delivered(moved, AGREE_S)
        remaining = [
            RemainingPartition(topic_name=one.topic, partition_index=one.partition)
            for one in hosted
            if _leads(service, one, leaving) and _has_heir(service, one, leaving)
        ]
        return ControlledShutdownResponse(error_code=0, remaining_partitions=remaining)

    relay.answer(call, work, refuse)


def _leads(service: ControllerService, partition: TopicPartition, broker: BrokerId) -> bool:
    state = service.core.partitions.get(partition)
    return state is not None and state.leader == broker


def _has_heir(service: ControllerService, partition: TopicPartition, broker: BrokerId) -> bool:
    """Whether to wait: another in-sync replica is alive and not shutting down."""
    brokers = service.core.fit(partition)
    heirs = [one for one in service.core.partitions[partition].isr if one != broker]
    return any(one in brokers and not brokers[one].shutting_down for one in heirs)
