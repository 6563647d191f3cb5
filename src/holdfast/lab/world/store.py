"""The simulated coordination store: partition states by version, sessions, broker epochs.

It never fails. But a broker may be unable to reach it, and a session may end while its broker runs.
"""

from __future__ import annotations

from holdfast.core import Registration, Settings
from holdfast.model import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    PartitionEpoch,
    PartitionState,
    TopicPartition,
)


class SimStore:
    """Versioned nodes, compare-and-set, sessions."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.sessions: dict[BrokerId, Registration] = {}
        self.controller_epoch = ControllerEpoch(0)
        self._next_epoch = 0

    def register(self, broker: BrokerId, intact_since: BrokerEpoch) -> Registration:
        """Open a session. A broker that kept nothing intact is intact from this epoch on."""
        self._next_epoch += 1
        epoch = BrokerEpoch(self._next_epoch)
        since = intact_since if intact_since >= 0 else epoch
        registration = Registration(broker, epoch, since)
        self.sessions[broker] = registration
        return registration

    def expire(self, broker: BrokerId) -> Registration | None:
        """End a session, if there is one."""
        return self.sessions.pop(broker, None)

    def next_controller(self) -> ControllerEpoch:
        """Elect a controller: it gets the next epoch."""
        self.controller_epoch = ControllerEpoch(self.controller_epoch + 1)
        return self.controller_epoch

    def compare_and_set(
        self,
        partition: TopicPartition,
        state: PartitionState,
        expected: PartitionEpoch,
        controller_epoch: ControllerEpoch,
    ) -> bool:
        """Write if the version is the expected one and the writer is still the controller."""
        if controller_epoch != self.controller_epoch:
            return False
        known = self.partitions.get(partition)
        if known is not None and known.partition_epoch != expected:
            return False
        self.partitions[partition] = state
        return True

    def set_settings(self, settings: Settings, controller_epoch: ControllerEpoch) -> bool:
        """Write the topic's settings if the writer is still the controller."""
        if controller_epoch != self.controller_epoch:
            return False
        self.settings = settings
        return True
