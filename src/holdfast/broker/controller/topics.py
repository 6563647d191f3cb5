"""Creates, grows and deletes topics, each in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.broker.controller.broker_channel import Stop
from holdfast.broker.controller.request_builders import GoneTopic
from holdfast.broker.controller.topic_validation import (
    Assignment,
    AssignmentStart,
    Cluster,
    check_given,
    check_is_new,
    check_name,
    choose,
    replicas_of_new,
)
from holdfast.broker.errors import RefusedError
from holdfast.broker.metadata.store_nodes import TopicNode, encode_config, encode_topic
from holdfast.broker.settings import check_topic_configs
from holdfast.coordination import Create, Delete, Operation, Set, paths
from holdfast.core import DURING_DELETION, WriteState
from holdfast.model import BrokerId, ErrorCode, TopicPartition
from holdfast.protocol.messages.topics import CreatableTopic, CreatePartitionsTopic

if TYPE_CHECKING:
    from holdfast.broker.controller.service import ControllerService

ALL_BROKERS_TIMEOUT_S: Final = 1.0
"""How long an answer waits for brokers other than the leaders, which may be dying."""
CHANGED: Final = b'{"version":2}'
"""The content of /config/changes; the write itself is the notification."""


class PlannedTopic(NamedTuple):
    """A valid topic that is not created yet."""

    name: str
    topic_id: bytes
    assignment: Assignment
    configs: dict[str, str]

    @property
    def partitions(self) -> list[TopicPartition]:
        """Their names."""
        return [TopicPartition(self.name, number) for number in self.assignment]


class Topics:
    """The topics of a controller."""

    def __init__(self, service: ControllerService) -> None:
        self._service = service
        self._reserved: dict[str, None] = {}
        """Names of topics that are being created or changed."""

    async def cluster(self) -> Cluster:
        """The brokers that replicas may be assigned to."""
        service = self._service
        names = await service.host.store.children(paths.BROKER_INCARNATIONS)
        known = [BrokerId(int(name)) for name in names if name.isdecimal()]
        live = {
            broker: service.broker_nodes[broker].rack
            for broker, registration in service.core.brokers.items()
            if not registration.shutting_down and broker in service.broker_nodes
        }
        return Cluster(live, list(dict.fromkeys((*live, *known))))

    def _assignment_start(self) -> AssignmentStart:
        rng = self._service.host.rng
        return AssignmentStart(rng.randrange(1 << 16), rng.randrange(1 << 16))

    @contextmanager
    def _reserving(self, name: str) -> Iterator[None]:
        """Refuse other changes of a topic until this one is written."""
        if name in self._reserved:
            raise RefusedError(
                ErrorCode.INVALID_REQUEST, f"The topic {name} is being changed by another request."
            )
        self._reserved[name] = None
        try:
            yield
        finally:
            del self._reserved[name]

    # Creating.

    def plan(self, topic: CreatableTopic, cluster: Cluster) -> PlannedTopic:
        """Plan a topic; RefusedError."""
        service = self._service
        check_name(topic.name)
        check_is_new(topic.name, (*service.topics, *self._reserved))
        configs = check_topic_configs({one.name: one.value for one in topic.configs})
        settings = service.host.configs.settings
        defaults = (settings.num_partitions, settings.default_replication_factor)
        assignment = replicas_of_new(topic, cluster, defaults, self._assignment_start())
        topic_id = service.host.rng.getrandbits(128).to_bytes(16, "big")
        return PlannedTopic(topic.name, topic_id, assignment, configs)

    async def create(self, planned: PlannedTopic) -> None:
        """Write a topic to the store and queue the requests to its brokers."""
        service = self._service
        with self._reserving(planned.name), self._with_configs(planned):
            writes = self._decide(planned.name, planned.assignment, planned.configs)
            node = TopicNode(planned.topic_id, planned.assignment, {}, {})
            configs = encode_config(planned.configs)
            operations: list[Operation] = [
                Create(paths.topic_config(planned.name), configs),
                Create(paths.topic(planned.name), encode_topic(node)),
                Create(paths.partitions(planned.name)),
            ]
            if planned.configs:
                operations.append(Set(paths.CONFIG_CHANGES, CHANGED))
            await self._write(writes, operations)
        service.topics[planned.name] = node
        service.topic_names[planned.topic_id] = planned.name
        service.states.created(writes)

    @contextmanager
    def _with_configs(self, planned: PlannedTopic) -> Iterator[None]:
        """A change of the settings for all brokers concerns a topic that is being created, too."""
        service = self._service
        configs, change = service.topic_configs, service.core.settings_change
        configs[planned.name] = planned.configs
        if change is not None and service.next_layers is not None:
            settings = service.core_settings(planned.name, layers=service.next_layers)
            change.add(planned.name, settings)
        try:
            yield
        except BaseException:
            del configs[planned.name]
            raise

    def _decide(
        self, name: str, assignment: Assignment, configs: dict[str, str]
    ) -> list[WriteState]:
        service = self._service
        settings = service.core_settings(name, configs)

        def decide() -> None:
            for number, replicas in assignment.items():
                partition = TopicPartition(name, number)
                service.run(service.core.create(partition, replicas, settings))

        return service.states.hold(decide)

    async def _write(self, writes: Sequence[WriteState], operations: list[Operation]) -> None:
        try:
            await self._service.states.create(writes, operations)
        except BaseException:
            for write in writes:
                self._service.forget(write.partition)
            raise

    async def until_delivered(self, partitions: Sequence[TopicPartition], timeout_s: float) -> bool:
        """Whether the leaders have accepted their roles; waits only briefly for other brokers."""
        service = self._service
        conditions = service.conditions

        def all_know() -> bool:
            channels = service.channels.values()
            return all(one.has_delivered(name) for one in channels for name in partitions)

        def leaders_know() -> bool:
            return all(self._leader_knows(name) for name in partitions)

        if await conditions.until(all_know, min(timeout_s, ALL_BROKERS_TIMEOUT_S)):
            return True
        return await conditions.until(leaders_know, timeout_s - ALL_BROKERS_TIMEOUT_S)

    def _leader_knows(self, partition: TopicPartition) -> bool:
        service = self._service
        state = service.core.partitions.get(partition)
        channel = service.channels.get(state.leader) if state is not None else None
        return channel is not None and channel.has_delivered(partition)

    # Growing.

    def plan_growth(self, topic: CreatePartitionsTopic, cluster: Cluster) -> Assignment:
        """The partitions to add; RefusedError."""
        node = self._service.topics.get(topic.name)
        if node is None:
            raise _unknown()
        count = len(node.replicas)
        if topic.count == count:
            raise _bad_count(f"Topic already has {count} partition(s).")
        if topic.count < count:
            raise _bad_count(
                f"The topic {topic.name} currently has {count} partition(s); {topic.count} would "
                "not be an increase."
            )
        numbers = range(count, topic.count)
        first = next(iter(node.replicas.values()))
        replicas = len([one for one in first if one not in node.adding.get(0, ())])
        if topic.assignments is None:
            return choose(numbers, replicas, cluster, self._assignment_start())
        if len(topic.assignments) != len(numbers):
            raise RefusedError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {len(numbers)} additional partition(s), but only "
                f"{len(topic.assignments)} assignment(s) were specified.",
            )
        given = [tuple(map(BrokerId, one.broker_ids)) for one in topic.assignments]
        assignment = dict(zip(numbers, given, strict=True))
        check_given(assignment, cluster, replicas)
        return assignment

    async def grow(self, name: str, assignment: Assignment) -> None:
        """Add partitions to a topic."""
        service = self._service
        with self._reserving(name):
            writes = self._decide(name, assignment, service.topic_configs.get(name, {}))
            view = service.topic_view(name)
            grown = view._replace(replicas=view.replicas | assignment)
            await self._write(writes, [Set(paths.topic(name), encode_topic(grown))])
        if name in service.topics:
            service.topics[name] = service.topics[name]._replace(replicas=grown.replicas)
            service.states.created(writes)

    # Deleting.

    async def delete(self, name: str) -> list[TopicPartition]:
        """Delete a topic: first from the store, then from the brokers."""
        service = self._service
        store = service.host.store
        topic = service.topics[name]
        with self._reserving(name):
            numbers = sorted(map(int, await store.children(paths.partitions(name))))
            partitions = [TopicPartition(name, number) for number in numbers]
            wanted = _nodes_of(name, partitions)
            nodes = await store.get_many(wanted)
            hosts = self._hosts(partitions)
            for partition in partitions:
                service.forget(partition)
            present = [path for path, node in zip(wanted, nodes, strict=True) if node is not None]
            deletions = [Delete(path) for path in present]
            await service.writer.write(*deletions, Set(paths.CONFIG_CHANGES, CHANGED))
        del service.topics[name], service.topic_names[topic.topic_id]
        service.topic_configs.pop(name, None)
        gone = GoneTopic(name, topic.topic_id)
        for broker, channel in service.channels.items():
            for partition in hosts.get(broker, ()):
                channel.stop(partition, Stop(DURING_DELETION, delete=True))
            channel.publish_gone(gone)
        service.flush_soon()
        return partitions

    def _hosts(self, partitions: Iterable[TopicPartition]) -> dict[BrokerId, list[TopicPartition]]:
        hosts: dict[BrokerId, list[TopicPartition]] = {}
        for partition in partitions:
            state = self._service.core.partitions.get(partition)
            for broker in state.replicas if state is not None else ():
                hosts.setdefault(broker, []).append(partition)
        return hosts


def _nodes_of(name: str, partitions: Iterable[TopicPartition]) -> list[str]:
    """All nodes of a topic, children before their parents."""
    wanted: list[str] = []
    for partition in partitions:
        wanted.append(paths.partition_state(*partition))
        wanted.append(paths.partition(*partition))
    return [*wanted, paths.partitions(name), paths.topic_config(name), paths.topic(name)]


def _unknown() -> RefusedError:
    return RefusedError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
    )


def _bad_count(message: str) -> RefusedError:
    return RefusedError(ErrorCode.INVALID_PARTITIONS, message)
