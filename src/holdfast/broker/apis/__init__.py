"""One module per API: `handle(broker, call)` answers a call, immediately or later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from holdfast.broker.apis import (
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    api_versions,
    controlled_shutdown,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    find_coordinator,
    get_replica_log_info,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    stop_replica,
    sync_group,
    unserved,
    update_metadata,
)
from holdfast.broker.network.calls import Call
from holdfast.protocol.messages import control

if TYPE_CHECKING:
    from holdfast.broker.node import Broker

Handle = Callable[["Broker", Call], None]

HANDLERS: Final[dict[int, Handle]] = {
    0: produce.handle,
    1: fetch.handle,
    2: list_offsets.handle,
    3: metadata.handle,
    4: leader_and_isr.handle,
    5: stop_replica.handle,
    6: update_metadata.handle,
    7: controlled_shutdown.handle,
    8: offset_commit.handle,
    9: offset_fetch.handle,
    10: find_coordinator.handle,
    11: join_group.handle,
    12: heartbeat.handle,
    13: leave_group.handle,
    14: sync_group.handle,
    15: describe_groups.handle,
    16: list_groups.handle,
    18: api_versions.handle,
    19: create_topics.handle,
    20: delete_topics.handle,
    21: delete_records.handle,
    22: init_producer_id.handle,
    23: offset_for_leader_epoch.handle,
    32: describe_configs.handle,
    33: alter_configs.handle,
    35: describe_log_dirs.handle,
    37: create_partitions.handle,
    42: delete_groups.handle,
    43: elect_leaders.handle,
    44: incremental_alter_configs.handle,
    45: alter_partition_reassignments.handle,
    46: list_partition_reassignments.handle,
    47: offset_delete.handle,
    56: alter_partition.handle,
    60: describe_cluster.handle,
    75: describe_topic_partitions.handle,
    control.GetReplicaLogInfoRequest.API_KEY: get_replica_log_info.handle,
    **dict.fromkeys((*unserved.AS_KAFKA, *unserved.UNLISTED), unserved.refuse),
}
"""All handlers, by API key."""
