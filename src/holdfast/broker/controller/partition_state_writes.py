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
"""Unclean elections that a partition's node remembers."""


class StateWrites:
    """The writes of a reign. One is under way per partition: the core sees to that."""

    def __init__(self, service: ControllerService) -> None:
        self._service = service
        self.versions: dict[TopicPartition, int] = {}
        """Of each partition's node. Those that are being created have none yet."""
        self.unclean: dict[TopicPartition, tuple[UncleanElection, ...]] = {}
        """What each partition's node remembers, with the write under way."""
        self._newest: dict[TopicPartition, WriteState] = {}
        """The write under way; an answer to another one means nothing."""
        self._held: list[WriteState] | None = None
        """While a list: writes are collected for one transaction."""

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
        """A leader that was neither in sync nor eligible (KIP-966): the audit asks for it."""
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
        """What a decision on new partitions wants written, held back for `create`."""
        assert self._held is None
        self._held = held = list[WriteState]()
        try:
            decide()
        finally:
            self._held = None
        return held

    async def create(self, writes: Sequence[WriteState], others: Iterable[Operation]) -> None:
        """New partitions and what belongs to them in one transaction; raises ConflictError."""
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
        """Whatever is under way for it means nothing any more."""
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
        """The node is not what we took it for: take over what it says."""
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
            service.host.log.error("partition not governed", error=str(error))
            service.forget(write.partition)
            return
        self.versions[write.partition] = node.version
        service.run(service.core.store_refused(write.partition, state))
        service.conditions.changed()
