"""Whether a broker may create an empty log for a partition that is not on its disks."""

from __future__ import annotations

from holdfast.model import BrokerId, PartitionEpoch, PartitionState

FIRST_PARTITION_EPOCH = PartitionEpoch(1)
"""The partition epoch of a partition that has not changed since its creation."""


def may_begin_empty(broker: BrokerId, state: PartitionState, *, is_directory_offline: bool) -> bool:
    """Whether an empty log may take this role.

    While a log directory is offline, the log may be there, with committed records: an empty log in
    another directory could be elected, and every record would be lost. So only a new partition, or
    one that is being added to this broker and has not joined the ISR, begins empty then. (A broker
    that starts with an offline directory registers as one that has lost records, and that changes
    every partition whose ISR it was in: an old partition does not look new.)
    """
    if not is_directory_offline or state.partition_epoch == FIRST_PARTITION_EPOCH:
        return True
    return broker in state.adding and broker not in state.isr
