"""GetReplicaLogInfo: the controller compares logs when no other fact decides the election.

Every answer names our broker epoch and the leader epoch of the replica. From then on no leader of
an earlier epoch can change the log.
"""

from __future__ import annotations

from holdfast.broker.membership.registration import Membership
from holdfast.broker.network.calls import Call
from holdfast.broker.replication.replicas import Replicas
from holdfast.model import ErrorCode, Offset
from holdfast.protocol.messages.control import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    PartitionLogInfo,
    TopicPartitionLogInfo,
)


def handle(replicas: Replicas, membership: Membership, call: Call) -> None:
    """The end of each log."""
    request: GetReplicaLogInfoRequest = call.request
    topics = [
        TopicPartitionLogInfo(
            topic_id=topic.topic_id,
            partition_log_info=[
                _info(replicas, topic.topic_id, index) for index in topic.partitions
            ],
        )
        for topic in request.topic_partitions or ()
    ]
    call.answer(
        GetReplicaLogInfoResponse(
            broker_epoch=membership.incarnation.broker_epoch, topic_partition_log_info_list=topics
        )
    )


def _info(replicas: Replicas, topic_id: bytes, index: int) -> PartitionLogInfo:
    partition = replicas.find(topic_id, index)
    error = ErrorCode.NONE
    if partition is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif partition.replica.has_failed:
        error = ErrorCode.KAFKA_STORAGE_ERROR
    if partition is None or error:
        return PartitionLogInfo(
            partition=index,
            last_written_leader_epoch=-1,
            current_leader_epoch=-1,
            log_end_offset=-1,
            error_code=error,
        )
    log = partition.replica.log
    return PartitionLogInfo(
        partition=index,
        last_written_leader_epoch=log.epochs.epoch_at(Offset(log.log_end_offset - 1)),
        current_leader_epoch=partition.replica.leader_epoch,
        log_end_offset=log.log_end_offset,
        error_code=0,
    )
