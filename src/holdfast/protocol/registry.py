"""All APIs with their message classes and versions.

`versions` are those that we can encode and decode; `advertised` are those in a broker's ApiVersions
response. They differ where Kafka's do: see ProduceRequest and InitProducerIdRequest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.protocol.message import Request, Response
from holdfast.protocol.messages import (
    acls,
    api_versions,
    cluster,
    committed_offsets,
    configs,
    consumer_groups,
    control,
    fetch,
    group_admin,
    groups,
    metadata,
    offsets,
    produce,
    quotas,
    reassignments,
    sasl,
    scram,
    share_groups,
    topics,
    transaction_admin,
    transactions,
)


@dataclass(frozen=True, slots=True)
class Api:
    """One API."""

    key: int
    """Its number on the wire."""
    name: str
    request: type[Request]
    response: type[Response]
    lowest_advertised: int
    highest_advertised: int

    @property
    def versions(self) -> range:
        """The versions that can be read and written."""
        return self.request.VERSIONS

    @property
    def advertised(self) -> range:
        """The versions in a broker's response to ApiVersions."""
        return range(self.lowest_advertised, self.highest_advertised + 1)


def _api(
    request: type[Request],
    response: type[Response],
    lowest: int | None = None,
    highest: int | None = None,
) -> Api:
    versions = request.VERSIONS
    return Api(
        request.API_KEY,
        request.__name__.removesuffix("Request"),
        request,
        response,
        versions[0] if lowest is None else lowest,
        versions[-1] if highest is None else highest,
    )


_ALL: Final = (
    _api(produce.ProduceRequest, produce.ProduceResponse, lowest=0),
    _api(fetch.FetchRequest, fetch.FetchResponse),
    _api(offsets.ListOffsetsRequest, offsets.ListOffsetsResponse),
    _api(metadata.MetadataRequest, metadata.MetadataResponse),
    _api(control.LeaderAndIsrRequest, control.LeaderAndIsrResponse),
    _api(control.StopReplicaRequest, control.StopReplicaResponse),
    _api(control.UpdateMetadataRequest, control.UpdateMetadataResponse),
    _api(control.ControlledShutdownRequest, control.ControlledShutdownResponse),
    _api(committed_offsets.OffsetCommitRequest, committed_offsets.OffsetCommitResponse),
    _api(committed_offsets.OffsetFetchRequest, committed_offsets.OffsetFetchResponse),
    _api(groups.FindCoordinatorRequest, groups.FindCoordinatorResponse),
    _api(groups.JoinGroupRequest, groups.JoinGroupResponse),
    _api(groups.HeartbeatRequest, groups.HeartbeatResponse),
    _api(groups.LeaveGroupRequest, groups.LeaveGroupResponse),
    _api(groups.SyncGroupRequest, groups.SyncGroupResponse),
    _api(group_admin.DescribeGroupsRequest, group_admin.DescribeGroupsResponse),
    _api(group_admin.ListGroupsRequest, group_admin.ListGroupsResponse),
    _api(sasl.SaslHandshakeRequest, sasl.SaslHandshakeResponse),
    _api(api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse),
    _api(topics.CreateTopicsRequest, topics.CreateTopicsResponse),
    _api(topics.DeleteTopicsRequest, topics.DeleteTopicsResponse),
    _api(offsets.DeleteRecordsRequest, offsets.DeleteRecordsResponse),
    _api(transactions.InitProducerIdRequest, transactions.InitProducerIdResponse, highest=5),
    _api(offsets.OffsetForLeaderEpochRequest, offsets.OffsetForLeaderEpochResponse),
    _api(transactions.AddPartitionsToTxnRequest, transactions.AddPartitionsToTxnResponse),
    _api(transactions.AddOffsetsToTxnRequest, transactions.AddOffsetsToTxnResponse),
    _api(transactions.EndTxnRequest, transactions.EndTxnResponse),
    _api(transactions.WriteTxnMarkersRequest, transactions.WriteTxnMarkersResponse),
    _api(transactions.TxnOffsetCommitRequest, transactions.TxnOffsetCommitResponse),
    _api(acls.DescribeAclsRequest, acls.DescribeAclsResponse),
    _api(acls.CreateAclsRequest, acls.CreateAclsResponse),
    _api(acls.DeleteAclsRequest, acls.DeleteAclsResponse),
    _api(configs.DescribeConfigsRequest, configs.DescribeConfigsResponse),
    _api(configs.AlterConfigsRequest, configs.AlterConfigsResponse),
    _api(cluster.DescribeLogDirsRequest, cluster.DescribeLogDirsResponse),
    _api(sasl.SaslAuthenticateRequest, sasl.SaslAuthenticateResponse),
    _api(topics.CreatePartitionsRequest, topics.CreatePartitionsResponse),
    _api(group_admin.DeleteGroupsRequest, group_admin.DeleteGroupsResponse),
    _api(reassignments.ElectLeadersRequest, reassignments.ElectLeadersResponse),
    _api(configs.IncrementalAlterConfigsRequest, configs.IncrementalAlterConfigsResponse),
    _api(
        reassignments.AlterPartitionReassignmentsRequest,
        reassignments.AlterPartitionReassignmentsResponse,
    ),
    _api(
        reassignments.ListPartitionReassignmentsRequest,
        reassignments.ListPartitionReassignmentsResponse,
    ),
    _api(committed_offsets.OffsetDeleteRequest, committed_offsets.OffsetDeleteResponse),
    _api(quotas.DescribeClientQuotasRequest, quotas.DescribeClientQuotasResponse),
    _api(quotas.AlterClientQuotasRequest, quotas.AlterClientQuotasResponse),
    _api(scram.DescribeUserScramCredentialsRequest, scram.DescribeUserScramCredentialsResponse),
    _api(scram.AlterUserScramCredentialsRequest, scram.AlterUserScramCredentialsResponse),
    _api(cluster.DescribeQuorumRequest, cluster.DescribeQuorumResponse),
    _api(control.AlterPartitionRequest, control.AlterPartitionResponse),
    _api(cluster.DescribeClusterRequest, cluster.DescribeClusterResponse),
    _api(transaction_admin.DescribeProducersRequest, transaction_admin.DescribeProducersResponse),
    _api(
        transaction_admin.DescribeTransactionsRequest,
        transaction_admin.DescribeTransactionsResponse,
    ),
    _api(transaction_admin.ListTransactionsRequest, transaction_admin.ListTransactionsResponse),
    _api(
        consumer_groups.ConsumerGroupHeartbeatRequest,
        consumer_groups.ConsumerGroupHeartbeatResponse,
    ),
    _api(
        consumer_groups.ConsumerGroupDescribeRequest, consumer_groups.ConsumerGroupDescribeResponse
    ),
    _api(metadata.DescribeTopicPartitionsRequest, metadata.DescribeTopicPartitionsResponse),
    _api(share_groups.ShareGroupHeartbeatRequest, share_groups.ShareGroupHeartbeatResponse),
    _api(share_groups.ShareFetchRequest, share_groups.ShareFetchResponse),
    _api(share_groups.ShareAcknowledgeRequest, share_groups.ShareAcknowledgeResponse),
    _api(control.GetReplicaLogInfoRequest, control.GetReplicaLogInfoResponse),
)

APIS: Final[dict[int, Api]] = {api.key: api for api in _ALL}
"""Every API by its key, in the order of the keys."""
