"""A simulated cluster: machines with real brokers, a store, a network, clients, one timeline."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from random import Random
from typing import Any, Final

from holdfast.broker.metadata.store_nodes import decode_state
from holdfast.coordination import Node, paths
from holdfast.model import ErrorCode, PartitionState, TopicPartition
from holdfast.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from holdfast.simulation.clients.connection import FAILURES, Client, check
from holdfast.simulation.machine import PORT, Machine, Surroundings
from holdfast.simulation.network import Network
from holdfast.simulation.store.memory_store import MemoryServer
from holdfast.simulation.trace_recording import Recording
from holdfast.simulation.virtual_time_loop import SimLoop, Timeline

CLIENTS: Final = "clients"
CREATE_VERSION: Final = 7
DISK_S: Final = 0.002
START_S: Final = 60.0
SETTINGS: Final = {
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.backoff.ms": "200",
    "replica.socket.timeout.ms": "4000",
    "request.timeout.ms": "4000",
    "socket.connection.setup.timeout.ms": "3000",
    "controlled.shutdown.retry.backoff.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
}
"""Shorter than Kafka's defaults, so that a failure plays out in a few seconds of virtual time."""


class SimulatedCluster:
    """The parts of a simulated cluster, all driven by one seed."""

    def __init__(
        self,
        seed: int,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        disk_s: float = DISK_S,
    ) -> None:
        """`disk_s`: the longest time that a flush takes."""
        self.rng = Random(seed)  # noqa: S311  # a schedule, not a secret
        self.timeline = Timeline()
        self.recording = Recording(self.timeline)
        self.network = Network(self.timeline, self.rng, self.recording.log_of(0))
        self.server = MemoryServer(lambda: 0.0005 + 0.002 * self.rng.random())
        self.server.loop = self.network.kernel
        around = Surroundings(
            self.timeline, self.network, self.server, self.recording, self.rng, disk_s
        )
        copies = str(min(3, brokers))
        chosen = {
            **SETTINGS,
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": "1",
            "min.insync.replicas": str(min(2, brokers)),
            **(settings or {}),
        }
        self.machines = {
            number: Machine(around, number, chosen) for number in range(1, brokers + 1)
        }
        self._states: dict[str, tuple[Node, PartitionState]] = {}
        self.clients = SimLoop(
            self.timeline, self.network, CLIENTS, self.rng, self.recording.log_of(0)
        )

    def client(self, name: str) -> Client:
        """A client that has the addresses of all brokers."""
        addresses = {number: (one.host, PORT) for number, one in self.machines.items()}
        return Client(self.clients, name, addresses, self.rng)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a client's task, and do not wait for it."""
        self.clients.create_task(work)

    def do(self, work: Coroutine[Any, Any, Any], patience_s: float = START_S) -> Any:
        """Run a client's task, and return its result."""
        task = self.clients.create_task(work)
        assert self.timeline.run_until(task.done, patience_s), "it takes too long"
        return task.result()

    def start(
        self, topic: str, partitions: int, settings: Mapping[str, str] | None = None
    ) -> tuple[TopicPartition, ...]:
        """Start all brokers and create a topic; return its partitions once all are in sync."""
        names = tuple(TopicPartition(topic, index) for index in range(partitions))
        self.recording.begin(list(self.machines), names[0])
        for machine in self.machines.values():
            machine.start()
        ready = self.timeline.run_until(
            lambda: all(one.is_ready for one in self.machines.values()), START_S
        )
        assert ready, "the brokers do not start"
        self.do(self._create(topic, partitions, settings or {}))
        assert self.timeline.run_until(lambda: self.is_whole(names), START_S), "no leaders"
        return names

    async def _create(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        client = self.client("admin")
        wanted = CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=-1,
            assignments=[],
            configs=[CreatableTopicConfig(name=key, value=text) for key, text in settings.items()],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=4_000)
        while True:
            try:
                answer = await client.ask(
                    client.any_broker(), request, CREATE_VERSION, CreateTopicsResponse
                )
                if answer.topics[0].error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    check(answer.topics[0].error_code)
            except FAILURES:
                continue
            return

    # The actual state.

    def state(self, partition: TopicPartition) -> PartitionState | None:
        """A partition's state in the coordination store."""
        path = paths.partition_state(*partition)
        node = self.server.tree.nodes.get(path)
        if node is None:
            return None
        known = self._states.get(path)
        if known is None or known[0] is not node:
            known = self._states[path] = (node, decode_state(path, node.data))
        return known[1]

    def is_whole(self, partitions: tuple[TopicPartition, ...]) -> bool:
        """Whether every partition has a leader and all its replicas in sync."""
        for partition in partitions:
            state = self.state(partition)
            if state is None or len(state.isr) < len(self.machines):
                return False
            leader = self.machines[state.leader].broker if state.leader in self.machines else None
            known = leader.replicas.partitions.get(partition) if leader is not None else None
            if known is None or not known.presumes_leadership:
                return False
        return True

    def close(self) -> None:
        """Kill every process and release its resources."""
        for machine in self.machines.values():
            if machine.is_up:
                machine.kill()
            machine.bury()
        self.clients.kill()
        self.clients.bury()
