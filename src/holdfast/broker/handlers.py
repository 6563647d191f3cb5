"""The handler of every API, with the parts of the broker that it needs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

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
from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.network.requests import Handler
from holdfast.protocol.messages.control import GetReplicaLogInfoRequest

if TYPE_CHECKING:
    from holdfast.broker.controller.service import ControllerService
    from holdfast.broker.node import Broker


def handlers(broker: Broker) -> dict[int, Handler]:
    """By API key."""

    def controller() -> ControllerService | None:
        return broker.controller

    known, replicas, configs = broker.metadata, broker.replicas, broker.configs
    groups, commands, tasks = broker.groups, broker.commands, broker.tasks
    peers, store, clock, trace = broker.peers, broker.store, broker.clock, broker.trace
    relay = ControllerRelay(broker.id, controller, known, peers, tasks, broker.log)
    roles = leader_and_isr.RoleParts(commands, replicas, configs, peers, controller, store)
    updates = update_metadata.UpdateParts(commands, known, replicas, peers, groups, store)
    return {
        0: partial(produce.handle, replicas, known, clock, trace),
        1: partial(fetch.handle, broker.fetch_parts),
        2: partial(list_offsets.handle, replicas, known),
        3: partial(metadata.handle, known, broker.auto_creation, configs, tasks),
        4: partial(leader_and_isr.handle, roles),
        5: partial(stop_replica.handle, commands, replicas),
        6: partial(update_metadata.handle, updates),
        7: partial(controlled_shutdown.handle, relay),
        8: partial(offset_commit.handle, groups, known),
        9: partial(offset_fetch.handle, groups, known),
        10: partial(find_coordinator.handle, groups),
        11: partial(join_group.handle, groups),
        12: partial(heartbeat.handle, groups),
        13: partial(leave_group.handle, groups),
        14: partial(sync_group.handle, groups),
        15: partial(describe_groups.handle, groups),
        16: partial(list_groups.handle, groups),
        18: api_versions.handle,
        19: partial(create_topics.handle, relay),
        20: partial(delete_topics.handle, relay),
        21: partial(delete_records.handle, tasks, replicas, known, clock),
        22: partial(init_producer_id.handle, tasks, broker.producer_ids),
        23: partial(offset_for_leader_epoch.handle, replicas, known),
        32: partial(describe_configs.handle, tasks, known, configs, store),
        33: partial(alter_configs.handle, relay),
        35: partial(describe_log_dirs.handle, replicas, broker.directory),
        37: partial(create_partitions.handle, relay),
        42: partial(delete_groups.handle, groups),
        43: partial(elect_leaders.handle, relay),
        44: partial(incremental_alter_configs.handle, relay),
        45: partial(alter_partition_reassignments.handle, relay),
        46: partial(list_partition_reassignments.handle, relay),
        47: partial(offset_delete.handle, groups, known),
        56: partial(alter_partition.handle, controller),
        60: partial(describe_cluster.handle, known),
        75: partial(describe_topic_partitions.handle, relay),
        GetReplicaLogInfoRequest.API_KEY: partial(
            get_replica_log_info.handle, replicas, broker.membership
        ),
        **dict.fromkeys((*unserved.AS_KAFKA, *unserved.UNLISTED), unserved.handle),
    }
