"""AlterPartition: a leader proposes a new ISR; the answer follows the write to the store."""

from __future__ import annotations

from functools import partial

from holdfast.broker.apis.controller_relay import CurrentController
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.network.calls import Call
from holdfast.core import ProposeIsr, is_current
from holdfast.model import (
    BrokerEpoch,
    BrokerId,
    ErrorCode,
    LeaderEpoch,
    PartitionEpoch,
    PartitionState,
    ReplicaBroker,
    TopicPartition,
)
from holdfast.protocol.messages.control import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)


def handle(controller: CurrentController, call: Call) -> None:
    """Pass each partition's proposal to the core; the last answer sends the response."""
    request: AlterPartitionRequest = call.request
    service = controller()
    error = ErrorCode.NOT_CONTROLLER if service is None else _refusal(service, request)
    if service is None or error:
        call.answer(AlterPartitionResponse(error_code=error, topics=[]))
        return
    _Alteration(service, call, request).begin()


def _refusal(service: ControllerService, request: AlterPartitionRequest) -> ErrorCode:
    broker, epoch = BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch)
    if is_current(service.core.brokers, broker, epoch):
        return ErrorCode.NONE
    return ErrorCode.STALE_BROKER_EPOCH


class _Alteration:
    """One request, and its partitions without an answer."""

    def __init__(
        self, service: ControllerService, call: Call, request: AlterPartitionRequest
    ) -> None:
        self._service = service
        self._call = call
        self._request = request
        self._open = 1
        """Partitions without an answer, and one for `begin` itself."""
        self._found: dict[bytes, list[AlterPartitionResponsePartitionData]] = {}

    def begin(self) -> None:
        """Pass all proposals to the core; it may answer some immediately."""
        self._service.open_calls[self] = None
        leader = BrokerId(self._request.broker_id)
        for topic in self._request.topics:
            name = self._service.topic_names.get(topic.topic_id)
            for asked in topic.partitions:
                self._open += 1
                answered = partial(self._answered, topic.topic_id, asked.partition_index)
                if name is None:
                    answered(ErrorCode.UNKNOWN_TOPIC_ID, None)
                    continue
                partition = TopicPartition(name, asked.partition_index)
                core = self._service.core
                self._service.run(
                    core.alter_partition(partition, leader, _proposal(asked), answered)
                )
        self._close_one()

    def _answered(
        self, topic_id: bytes, index: int, error: ErrorCode, state: PartitionState | None
    ) -> None:
        data = AlterPartitionResponsePartitionData(
            partition_index=index,
            error_code=error,
            leader_id=state.leader if state else -1,
            leader_epoch=state.leader_epoch if state else -1,
            isr=state.isr if state else (),
            partition_epoch=state.partition_epoch if state else -1,
        )
        self._found.setdefault(topic_id, []).append(data)
        self._close_one()

    def abandon(self) -> None:
        """Make the leader retry at the next controller."""
        self._service.open_calls.pop(self, None)
        self._call.answer(AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[]))

    def _close_one(self) -> None:
        self._open -= 1
        if self._open or self not in self._service.open_calls:
            return
        del self._service.open_calls[self]
        topics = [
            AlterPartitionResponseTopicData(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in self._found.items()
        ]
        self._call.answer(AlterPartitionResponse(error_code=0, topics=topics))


def _proposal(asked: AlterPartitionRequestPartitionData) -> ProposeIsr:
    members = [
        ReplicaBroker(BrokerId(one.broker_id), BrokerEpoch(one.broker_epoch))
        for one in asked.new_isr_with_epochs
    ]
    # Version 2 names no broker epoch; the core refuses such a new ISR member.
    members = members or [ReplicaBroker(BrokerId(one)) for one in asked.new_isr]
    return ProposeIsr(
        tuple(members), LeaderEpoch(asked.leader_epoch), PartitionEpoch(asked.partition_epoch)
    )
