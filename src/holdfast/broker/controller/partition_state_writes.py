"""Writes partition states to the store, and passes the store's answers to the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.broker.metadata.store_nodes import (
    DamagedNodeError,
    UncleanElection,
    decode_state,
    decode_unclean,
    encode_state,
)
from holdfast.coordination import ConflictError, Create, Node, Operation, Set, StoreError, paths
from holdfast.core import WriteState
from holdfast.model import NO_BROKER, TopicPartition

if TYPE_CHECKING:
    from holdfast.broker.controller.service import ControllerService

RETRY_S: Final = 0.05
MOST_UNCLEAN: Final = 20
"""Unclean elections that a partition's node keeps."""


class StateWrites:
    """The state writes of a controller. The core allows one per partition at a time."""

    def __init__(self, service: ControllerService) -> None:
        self._service = service
        self.versions: dict[TopicPartition, int] = {}
        """Version of each partition's node. Nodes that are being created have none yet."""
        self.unclean: dict[TopicPartition, tuple[UncleanElection, ...]] = {}
        """The unclean elections in each partition's node, including the write in progress."""
        self._newest: dict[TopicPartition, WriteState] = {}
        """The write in progress; an answer to another one is ignored."""
        self._held: list[WriteState] | None = None
        """While this is a list, writes are collected for one transaction."""

    def write(self, write: WriteState) -> None:
        """Compare-and-set one partition's node."""
        self._newest[write.partition] = write
        self._remember(write)
        if self._held is not None:
            self._held.append(write)
            return
        path, data = self._node(write)
        operation = Set(path, data, self.versions[write.partition])
        self._service.writer.add([operation], lambda outcome: self._written(write, outcome))

    def _remember(self, write: WriteState) -> None:
        """Record a leader that was neither in sync nor eligible (KIP-966), for the audit."""
        before, state = self._service.core.partitions[write.partition], write.state
        if state.leader in (NO_BROKER, before.leader, *before.isr, *before.eligible_leaders):
            return
        if before.leader_epoch < 0:
            return  # It is being created.
        now = self._service.host.clock.wall_ms()
        found = UncleanElection(state.leader_epoch, state.leader, now, before.isr)
        known = self.unclean.get(write.partition, ())
        self.unclean[write.partition] = (*known, found)[-MOST_UNCLEAN:]

    def _node(self, write: WriteState) -> tuple[str, bytes]:
        unclean = self.unclean.get(write.partition, ())
        data = encode_state(write.state, self._service.controller_epoch, unclean)
        return paths.partition_state(*write.partition), data

    def hold(self, decide: Callable[[], None]) -> list[WriteState]:
        """The writes of a decision on new partitions, kept for `create`."""
        assert self._held is None
        self._held = held = list[WriteState]()
        try:
            decide()
        finally:
            self._held = None
        return held

    async def create(self, writes: Sequence[WriteState], others: Iterable[Operation]) -> None:
        """Write new partitions and their other nodes in one transaction; raises ConflictError."""
        operations = list(others)
        for write in writes:
            operations.append(Create(paths.partition(*write.partition)))
            operations.append(Create(*self._node(write)))
        await self._service.writer.write(*operations)

    def created(self, writes: Sequence[WriteState]) -> None:
        """The store has the new partitions."""
        for write in writes:
            self.versions[write.partition] = 0
            self._confirm(write)

    def forget(self, partition: TopicPartition) -> None:
        """Ignore the answers to writes in progress for this partition."""
        self._newest.pop(partition, None)
        self.versions.pop(partition, None)
        self.unclean.pop(partition, None)

    def _written(self, write: WriteState, outcome: tuple[Node, ...] | ConflictError) -> None:
        if isinstance(outcome, ConflictError):
            self._look_what_is_there(write)
        elif self._newest.get(write.partition) is write:
            self.versions[write.partition] = outcome[0].version
            self._confirm(write)

    def _confirm(self, write: WriteState) -> None:
        service = self._service
        if service.is_over or self._newest.get(write.partition) is not write:
            return
        del self._newest[write.partition]
        service.run(service.core.store_confirmed(write.partition))
        service.conditions.changed()

    def _look_what_is_there(self, write: WriteState) -> None:
        service = self._service
        service.tasks.run(self._refused(write))

    async def _refused(self, write: WriteState) -> None:
        """The node has another version than we expected: load its state."""
        service, path = self._service, paths.partition_state(*write.partition)
        try:
            node = await service.host.store.get(path)
        except StoreError:
            service.host.loop.call_later(RETRY_S, self._look_what_is_there, write)
            return
        if service.is_over or self._newest.get(write.partition) is not write:
            return
        del self._newest[write.partition]
        try:
            if node is None:
                raise DamagedNodeError(path, "it is missing")
            state = decode_state(path, node.data)
            self.unclean[write.partition] = decode_unclean(path, node.data)
        except DamagedNodeError as error:
            service.host.log.error("partition ignored", error=str(error))
            service.forget(write.partition)
            return
        self.versions[write.partition] = node.version
        service.run(service.core.store_refused(write.partition, state))
        service.conditions.changed()
