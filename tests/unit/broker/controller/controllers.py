"""A controller on a real store, with scripted brokers."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from holdfast.broker.clock import Clock
from holdfast.broker.controller.controller_election import Elector
from holdfast.broker.controller.host import Host
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.controller.topics import PlannedTopic
from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.metadata.store_nodes import BrokerNode, decode_state, encode_broker
from holdfast.broker.network.peer_connection import Answered
from holdfast.broker.settings import Layers
from holdfast.broker.settings.listeners import Endpoint
from holdfast.coordination import Create, Delete, EmbeddedStore, Outcome, Transaction, paths
from holdfast.model import BrokerEpoch, BrokerId, ErrorCode, PartitionState, TopicPartition
from holdfast.protocol import Request, Response
from holdfast.protocol.messages.control import (
    GetReplicaLogInfoRequest,
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from holdfast.protocol.messages.topics import CreatableReplicaAssignment, CreatableTopic
from tests.support.waiting import eventually

A, B, C = BrokerId(1), BrokerId(2), BrokerId(3)
P = TopicPartition("events", 0)

Script = Callable[[Request], Response | None]


class ScriptedBroker:
    """Accepts every command, unless the test has another script."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.received: list[Request] = []
        self.is_silent = False
        self.waiting: list[tuple[Request, Answered]] = []
        self.script: Script = obey

    def send(self, request: Request, version: int, answered: Answered) -> None:
        # Encoded and decoded, so it must be valid on the wire.
        self.received.append(type(request).decode(request.encode(version), version))
        if self.is_silent:
            self.waiting.append((request, answered))
        else:
            self._loop.call_soon(answered, self.script(request))

    def roles(self) -> list[tuple[int, int, int]]:
        """The received roles: (partition, leader, leader epoch)."""
        return [
            (response.partition_index, response.leader, response.leader_epoch)
            for request in self.received
            if isinstance(request, LeaderAndIsrRequest)
            for topic in request.topic_states
            for response in topic.partition_states
        ]

    def of(self, kind: type[Request]) -> list[Any]:
        return [one for one in self.received if isinstance(one, kind)]


def obey(request: Request, error: int = 0) -> Response | None:
    match request:
        case LeaderAndIsrRequest():
            topics = [
                LeaderAndIsrTopicError(
                    topic_id=topic.topic_id,
                    partition_errors=[
                        LeaderAndIsrPartitionError(
                            partition_index=one.partition_index, error_code=error
                        )
                        for one in topic.partition_states
                    ],
                )
                for topic in request.topic_states
            ]
            return LeaderAndIsrResponse(error_code=0, topics=topics)
        case UpdateMetadataRequest():
            return UpdateMetadataResponse(error_code=0)
        case StopReplicaRequest():
            return StopReplicaResponse(error_code=0, partition_errors=[])
        case GetReplicaLogInfoRequest():
            return None
        case _:
            raise AssertionError(request)


class ScriptedPeers:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._brokers: dict[BrokerId, ScriptedBroker] = {}
        self.endpoints: dict[BrokerId, Endpoint] = {}

    def to(self, broker: BrokerId, purpose: str = "") -> ScriptedBroker:
        return self._brokers.setdefault(broker, ScriptedBroker(self._loop))

    def update(self, broker: BrokerId, endpoint: Endpoint) -> None:
        self.endpoints[broker] = endpoint


class WatchedStore(EmbeddedStore):
    """The real store, which can fail on request, and remembers what was written."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.written: list[Transaction] = []
        self.outcomes: list[Callable[[], Awaitable[list[Outcome] | None]]] = []
        """Outcomes that replace the next commits; None commits normally."""

    async def commit_all(self, transactions: Sequence[Transaction]) -> list[Outcome]:
        if self.outcomes:
            outcome = await self.outcomes.pop(0)()
            if outcome is not None:
                return outcome * len(transactions)
        self.written += transactions
        return await super().commit_all(transactions)


class ControllerHarness:
    """A host for the controller."""

    def __init__(self, store: WatchedStore, broker: BrokerId = A) -> None:
        self.loop = asyncio.get_running_loop()
        self.lines = io.StringIO()
        self.log = LogLines(broker, self.lines)
        self.store = store
        self.peers = ScriptedPeers(self.loop)
        static = {"node.id": str(broker), "min.insync.replicas": "2"}
        layers = Layers(static=static | {"default.replication.factor": "3"})
        self.configs = Configs(broker, layers, self.log)
        self.elector = Elector(
            Host(
                id=broker,
                loop=self.loop,
                clock=Clock(self.loop),
                log=self.log,
                rng=random.Random(7),
                trace=None,
                store=store,
                peers=self.peers,
                configs=self.configs,
            )
        )

    @property
    def controller(self) -> ControllerService | None:
        return self.elector.controller

    async def begin(self) -> ControllerService:
        self.elector.start()
        await eventually(lambda: self.controller is not None, "a controller is elected")
        return self.service

    @property
    def service(self) -> ControllerService:
        assert self.controller is not None
        return self.controller

    def broker(self, broker: BrokerId) -> ScriptedBroker:
        return self.peers.to(broker)

    async def register(
        self, *brokers: BrokerId, intact_since: int = -1, rack: str | None = None
    ) -> None:
        """Brokers' nodes are persistent here, so that one session can play all of them."""
        for one in brokers:
            node = BrokerNode(one, "host", 9000 + one, rack, BrokerEpoch(intact_since))
            await self.store.commit(Create(paths.broker_id(one), encode_broker(node, 0)))

    async def die(self, *brokers: BrokerId) -> None:
        await self.store.commit(*[Delete(paths.broker_id(one)) for one in brokers])
        await eventually(lambda: not set(brokers) & set(self.service.core.brokers), "seen dead")

    async def create(self, name: str = "events", *replicas: Sequence[BrokerId]) -> PlannedTopic:
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                for index, brokers in enumerate(replicas or ((A, B, C),))
            ],
            configs=[],
        )
        admin = self.service.admin
        planned = admin.plan(topic, await admin.cluster())
        await admin.create(planned)
        return planned

    async def stored(self, partition: TopicPartition = P) -> PartitionState:
        path = paths.partition_state(*partition)
        node = await self.store.get(path)
        assert node is not None
        return decode_state(path, node.data)

    async def until(self, condition: Callable[[PartitionState], bool], what: str) -> None:
        await eventually(lambda: condition(self.service.core.partitions[P]), what)


def play(file: Path, scenario: Callable[[ControllerHarness], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with its own store, brokers 1 to 3 registered, and broker 1 as controller."""

    async def run() -> None:
        store = WatchedStore(file)
        await store.open()
        for path in paths.LASTING_PATHS:
            await store.ensure_path(path)
        harness = ControllerHarness(store)
        await harness.register(A, B, C)
        await harness.begin()
        try:
            await scenario(harness)
            assert "Traceback" not in harness.lines.getvalue(), harness.lines.getvalue()
        finally:
            await harness.elector.stop()
            await store.close()

    asyncio.run(run())


def storage_error(request: Request) -> Response | None:
    return obey(request, ErrorCode.KAFKA_STORAGE_ERROR)
