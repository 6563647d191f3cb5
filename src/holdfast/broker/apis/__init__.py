"""One module an API: `handle(broker, call)` answers a call, now or later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from holdfast.broker.apis import (
    api_versions,
    delete_records,
    describe_cluster,
    describe_log_dirs,
    fetch,
    get_replica_log_info,
    init_producer_id,
    leader_and_isr,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
    stop_replica,
    update_metadata,
)
from holdfast.broker.calls import Call

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
    18: api_versions.handle,
    21: delete_records.handle,
    22: init_producer_id.handle,
    23: offset_for_leader_epoch.handle,
    35: describe_log_dirs.handle,
    60: describe_cluster.handle,
    93: get_replica_log_info.handle,
}
"""By API key, in the order of the keys. What is here is what ApiVersions advertises."""
