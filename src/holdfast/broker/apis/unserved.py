"""APIs that this broker understands and does not serve: the answer is an error.

Without an answer the connection would close, and the client would retry for ever. Where Apache
Kafka has an error for a broker on which the feature is disabled, ours is the same, and ApiVersions
lists the API as Kafka does: no authorizer, no SASL on a plaintext listener, groups of the classic
protocol only. The other APIs are not listed, so that clients use the listed ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from holdfast.broker.network.calls import Call
from holdfast.model import ErrorCode
from holdfast.protocol import Response
from holdfast.protocol.messages import (
    acls,
    cluster,
    consumer_groups,
    quotas,
    sasl,
    scram,
    share_groups,
    transaction_admin,
    transactions,
)

Refusal = Callable[[Any], Response]
"""Makes the response that refuses a request."""

_UNSUPPORTED: Final = ErrorCode.UNSUPPORTED_VERSION
_NO_AUTHORIZER: Final[dict[str, Any]] = {
    "error_code": ErrorCode.SECURITY_DISABLED,
    "error_message": "No Authorizer is configured.",
}
_NOT_SERVED: Final[dict[str, Any]] = {
    "error_code": _UNSUPPORTED,
    "error_message": "this broker does not serve this API",
}
_CLASSIC_ONLY: Final[dict[str, Any]] = {
    "error_code": _UNSUPPORTED,
    "error_message": "this broker serves groups of the classic protocol: group.protocol=classic",
}


def _create_acls(request: acls.CreateAclsRequest) -> Response:
    results = [acls.AclCreationResult(**_NO_AUTHORIZER) for _ in request.creations]
    return acls.CreateAclsResponse(results=results)


def _delete_acls(request: acls.DeleteAclsRequest) -> Response:
    results = [
        acls.DeleteAclsFilterResult(**_NO_AUTHORIZER, matching_acls=[]) for _ in request.filters
    ]
    return acls.DeleteAclsResponse(filter_results=results)


def _describe_consumer_groups(request: consumer_groups.ConsumerGroupDescribeRequest) -> Response:
    groups = [
        consumer_groups.DescribedConsumerGroup(
            **_CLASSIC_ONLY,
            group_id=group,
            group_state="",
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=[],
        )
        for group in request.group_ids
    ]
    return consumer_groups.ConsumerGroupDescribeResponse(groups=groups)


def _add_partitions(request: transactions.AddPartitionsToTxnRequest) -> Response:
    topics = [
        transactions.AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                transactions.AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=_UNSUPPORTED
                )
                for index in topic.partitions
            ],
        )
        for topic in request.v3_and_below_topics
    ]
    return transactions.AddPartitionsToTxnResponse(
        error_code=_UNSUPPORTED, results_by_topic_v3_and_below=topics
    )


def _write_markers(request: transactions.WriteTxnMarkersRequest) -> Response:
    def of_topic(
        topic: transactions.WritableTxnMarkerTopic,
    ) -> transactions.WritableTxnMarkerTopicResult:
        partitions = [
            transactions.WritableTxnMarkerPartitionResult(
                partition_index=index, error_code=_UNSUPPORTED
            )
            for index in topic.partition_indexes
        ]
        return transactions.WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions)

    markers = [
        transactions.WritableTxnMarkerResult(
            producer_id=one.producer_id, topics=[of_topic(topic) for topic in one.topics]
        )
        for one in request.markers
    ]
    return transactions.WriteTxnMarkersResponse(markers=markers)


def _commit_offsets(request: transactions.TxnOffsetCommitRequest) -> Response:
    topics = [
        transactions.TxnOffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                transactions.TxnOffsetCommitResponsePartition(
                    partition_index=one.partition_index, error_code=_UNSUPPORTED
                )
                for one in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return transactions.TxnOffsetCommitResponse(topics=topics)


def _alter_quotas(request: quotas.AlterClientQuotasRequest) -> Response:
    entries = [
        quotas.AlterClientQuotasResponseEntryData(
            **_NOT_SERVED,
            entity=[
                quotas.ClientQuotasEntityData(
                    entity_type=one.entity_type, entity_name=one.entity_name
                )
                for one in entry.entity
            ],
        )
        for entry in request.entries
    ]
    return quotas.AlterClientQuotasResponse(entries=entries)


def _alter_scram(request: scram.AlterUserScramCredentialsRequest) -> Response:
    users = dict.fromkeys(one.name for one in request.deletions)
    users |= dict.fromkeys(one.name for one in request.upsertions)
    results = [scram.AlterUserScramCredentialsResult(user=user, **_NOT_SERVED) for user in users]
    return scram.AlterUserScramCredentialsResponse(results=results)


def _describe_producers(request: transaction_admin.DescribeProducersRequest) -> Response:
    topics = [
        transaction_admin.DescribeProducersTopicResponse(
            name=topic.name,
            partitions=[
                transaction_admin.DescribeProducersPartitionResponse(
                    partition_index=index, **_NOT_SERVED, active_producers=[]
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics
    ]
    return transaction_admin.DescribeProducersResponse(topics=topics)


def _describe_transactions(request: transaction_admin.DescribeTransactionsRequest) -> Response:
    states = [
        transaction_admin.DescribedTransaction(
            error_code=_UNSUPPORTED,
            transactional_id=one,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=-1,
            producer_epoch=-1,
            topics=[],
        )
        for one in request.transactional_ids
    ]
    return transaction_admin.DescribeTransactionsResponse(transaction_states=states)


AS_KAFKA: Final[dict[int, Refusal]] = {
    17: lambda _: sasl.SaslHandshakeResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[]
    ),
    29: lambda _: acls.DescribeAclsResponse(**_NO_AUTHORIZER, resources=[]),
    30: _create_acls,
    31: _delete_acls,
    36: lambda _: sasl.SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="this listener has no SASL",
        auth_bytes=b"",
    ),
    68: lambda _: consumer_groups.ConsumerGroupHeartbeatResponse(
        **_CLASSIC_ONLY, member_epoch=0, heartbeat_interval_ms=0
    ),
    69: _describe_consumer_groups,
}
"""Listed by ApiVersions, and answered as by a Kafka broker with the feature disabled."""

UNLISTED: Final[dict[int, Refusal]] = {
    24: _add_partitions,
    25: lambda _: transactions.AddOffsetsToTxnResponse(error_code=_UNSUPPORTED),
    26: lambda _: transactions.EndTxnResponse(error_code=_UNSUPPORTED),
    27: _write_markers,
    28: _commit_offsets,
    48: lambda _: quotas.DescribeClientQuotasResponse(**_NOT_SERVED, entries=None),
    49: _alter_quotas,
    50: lambda _: scram.DescribeUserScramCredentialsResponse(**_NOT_SERVED, results=[]),
    51: _alter_scram,
    55: lambda _: cluster.DescribeQuorumResponse(error_code=_UNSUPPORTED, topics=[]),
    61: _describe_producers,
    65: _describe_transactions,
    66: lambda _: transaction_admin.ListTransactionsResponse(
        error_code=_UNSUPPORTED, unknown_state_filters=[], transaction_states=[]
    ),
    76: lambda _: share_groups.ShareGroupHeartbeatResponse(
        **_NOT_SERVED, member_epoch=0, heartbeat_interval_ms=0
    ),
    78: lambda _: share_groups.ShareFetchResponse(
        **_NOT_SERVED, acquisition_lock_timeout_ms=0, responses=[], node_endpoints=[]
    ),
    79: lambda _: share_groups.ShareAcknowledgeResponse(
        **_NOT_SERVED, responses=[], node_endpoints=[]
    ),
}
"""Not listed by ApiVersions."""


def handle(call: Call) -> None:
    """Answer with the error of an API that is not served."""
    key = call.api.key
    call.answer((AS_KAFKA.get(key) or UNLISTED[key])(call.request))
