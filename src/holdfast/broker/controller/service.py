"""One broker's term as controller: connects `core.Controller` with the store and the brokers.

The service writes each decision of the core to the store, and sends it to the brokers after the
store has confirmed it. It makes no decisions. The term ends when the store refuses a write because
of the controller epoch, when a broker follows a newer controller, or when our session is lost;
after that the service writes and sends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Protocol

from holdfast.broker.controller.auto_leader_rebalance import Rebalancer
from holdfast.broker.controller.broker_channel import Channel, Stop
from holdfast.broker.controller.conditions import Conditions, RepeatedTask, Tasks
from holdfast.broker.controller.host import Host
from holdfast.broker.controller.log_failures import FailureReader
from holdfast.broker.controller.partition_state_writes import StateWrites
from holdfast.broker.controller.state_loading import LiveBrokers, Loaded, load, load_brokers
from holdfast.broker.controller.store_writer import StoreWriter
from holdfast.broker.controller.topics import Topics
from holdfast.broker.metadata.store_nodes import TopicNode, encode_topic
from holdfast.broker.settings import BrokerSettings, Layers, TopicConfigs
from holdfast.broker.settings.listeners import Endpoint
from holdfast.coordination import Check, Set, StoreError, Watch, paths
from holdfast.core import (
    AnswerAlter,
    AskLogEnd,
    Command,
    Commands,
    Controller,
    SendStateTo,
    Settings,
    StateConfirmed,
    StopReplica,
    StoreSettings,
    WriteState,
)
from holdfast.model import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    TopicPartition,
)

ASK_AGAIN_S: Final = 0.2


class OpenCall(Protocol):
    """A request that waits for the store."""

    def abandon(self) -> None:
        """We are no longer the controller, and the outcome of the request is unknown."""


class ControllerService:
    """The controller, from its election to its end."""

    core: Controller
    """Set by `start`."""

    def __init__(
        self,
        host: Host,
        controller_epoch: ControllerEpoch,
        epoch_version: int,
        ended: Callable[[str], None],
    ) -> None:
        self.host = host
        self.controller_epoch = controller_epoch
        self.conditions = Conditions(host.loop)
        self.tasks = Tasks(host.loop, host.log)
        check = Check(paths.CONTROLLER_EPOCH, epoch_version)
        self.writer = StoreWriter(host.store, host.loop, check, self.fenced, host.log)
        self.topics: dict[str, TopicNode] = {}
        self.topic_names: dict[bytes, str] = {}
        self.topic_configs: dict[str, dict[str, str]] = {}
        """Also of topics that are being created."""
        self.cluster_configs: dict[str, str] = {}
        """The settings for all brokers, as the store has them: our broker's own view is later."""
        self.next_layers: Layers | None = None
        """While a change of the settings for all brokers is in progress."""
        self.broker_nodes = LiveBrokers().nodes
        self.channels: dict[BrokerId, Channel] = {}
        self.is_over = False
        self._has_begun = False
        """Before that there is no core to receive changes; `start` reads them."""
        self.open_calls: dict[OpenCall, None] = {}
        """Answered when the store has the state, or when we are no longer the controller."""
        self._on_ended = ended
        self.states = StateWrites(self)
        self.admin = Topics(self)
        self._refresh = RepeatedTask(host.loop, self._refresh_brokers, host.log)
        self._watches: list[Watch] = []
        self._failures = FailureReader(self)
        self._rebalancer = Rebalancer(self)
        self._is_flushing = False
        self.config_changes = asyncio.Lock()
        """Held while a change of settings is in progress."""

    # Start and end.

    async def start(self) -> None:
        """Load the state and continue where the last controller stopped; raises StoreError."""
        host = self.host
        self._watches.append(host.store.watch(paths.BROKER_IDS, lambda _: self._refresh.soon()))
        live = await load_brokers(host.store, host.log)
        loaded = await load(host.store, host.log)
        if self.is_over:
            return
        self._take_over(live, loaded)
        self._has_begun = True
        self._refresh.soon()
        self._failures.start()
        self._rebalancer.start()
        self._ask_again()

    def _take_over(self, live: LiveBrokers, loaded: Loaded) -> None:
        self.topics = loaded.topics
        self.topic_names = {topic.topic_id: name for name, topic in loaded.topics.items()}
        self.topic_configs = loaded.configs
        self.cluster_configs = loaded.cluster
        self.states.versions = loaded.versions
        self.states.unclean = loaded.unclean
        self.broker_nodes = live.nodes
        settings = {name: self.core_settings(name) for name in self.topics}
        self.core = Controller(
            self.controller_epoch,
            [node.registration(live.epochs[one]) for one, node in live.nodes.items()],
            loaded.states,
            {one: settings[one.topic] for one in loaded.states},
        )
        for broker, epoch in live.epochs.items():
            self._open_channel(broker, epoch)
        self.run(self.core.start())
        self.flush_soon()

    def fenced(self, reason: str) -> None:
        """Another broker is the controller, or none."""
        if not self.is_over:
            self.end()
            self._on_ended(reason)

    def end(self) -> None:
        """Write and send nothing more."""
        self.is_over = True
        self.writer.close()
        self._refresh.close()
        self._failures.close()
        self._rebalancer.close()
        for watch in self._watches:
            watch.cancel()
        for channel in self.channels.values():
            channel.close()
        self.conditions.close()
        for call in tuple(self.open_calls):
            call.abandon()

    # Brokers.

    def _open_channel(self, broker: BrokerId, epoch: BrokerEpoch) -> None:
        old = self.channels.pop(broker, None)
        if old is not None:
            old.close()
        node = self.broker_nodes[broker]
        self.host.peers.update(broker, Endpoint(node.host, node.port))
        channel = self.channels[broker] = Channel(self, broker, epoch)
        for partition in self.core.partitions:
            channel.publish(partition)

    async def _refresh_brokers(self) -> None:
        if not self._has_begun:
            return
        try:
            live = await load_brokers(self.host.store, self.host.log)
        except StoreError as error:
            # The watch is called again when the store is back.
            self.host.log.warning("brokers not read", error=str(error))
            return
        if self.is_over:
            return
        before = {one: known.broker_epoch for one, known in self.core.brokers.items()}
        self.broker_nodes = live.nodes
        for broker, epoch in before.items():
            if broker not in live.epochs:
                self._broker_lost(broker, epoch)
        for broker, epoch in live.epochs.items():
            if before.get(broker) != epoch:
                self._broker_registered(broker, epoch)

    def _broker_lost(self, broker: BrokerId, epoch: BrokerEpoch) -> None:
        self.host.log.info("broker lost", lost=broker, broker_epoch=epoch)
        channel = self.channels.pop(broker, None)
        if channel is not None:
            channel.close()
        self._publish_broker(broker)
        self.run(self.core.broker_lost(broker, epoch))

    def _broker_registered(self, broker: BrokerId, epoch: BrokerEpoch) -> None:
        self.host.log.info("broker registered", registered=broker, broker_epoch=epoch)
        self._open_channel(broker, epoch)
        self._publish_broker(broker)
        self.run(self.core.broker_registered(self.broker_nodes[broker].registration(epoch)))

    def _publish_broker(self, broker: BrokerId) -> None:
        """Send the live brokers and the offline replicas to all brokers."""
        for channel in self.channels.values():
            channel.publish_brokers()
        self.flush_soon()
        for partition, state in self.core.partitions.items():
            if broker in state.replicas:
                self._publish(partition)

    def offline_replicas(self, partition: TopicPartition) -> tuple[BrokerId, ...]:
        """Replicas on dead brokers, and those whose log failed."""
        replicas, fit = self.core.partitions[partition].replicas, self.core.fit(partition)
        return tuple(one for one in replicas if one not in fit)

    def replica_failed(
        self, partition: TopicPartition, broker: BrokerId, broker_epoch: BrokerEpoch
    ) -> None:
        """A broker's log has failed."""
        if self.knows(partition):
            self.run(self.core.replica_failed(partition, broker, broker_epoch))
            self._publish(partition)

    def _ask_again(self) -> None:
        if not self.is_over:
            self.run(self.core.ask_again())
            self.host.loop.call_later(ASK_AGAIN_S, self._ask_again)

    # Effects.

    def run(self, commands: Commands) -> None:
        """Carry out what the core decided, in order."""
        if self.is_over:
            return
        for command in commands:
            self._run(command)
        if commands:
            self.flush_soon()

    def flush_soon(self) -> None:
        """Send the pending requests at the end of this tick."""
        if not self._is_flushing:
            self._is_flushing = True
            self.host.loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        for channel in tuple(self.channels.values()):
            channel.flush()

    def _run(self, command: Command) -> None:  # noqa: C901  # one flat case per command
        match command:
            case WriteState():
                self.states.write(command)
            case StateConfirmed():
                self._confirmed(command)
            case SendStateTo(broker, partition, state):
                if broker in self.channels:
                    self.channels[broker].send_state(partition, state)
            case StopReplica(broker, partition):
                epoch = self.core.partitions[partition].leader_epoch
                if broker in self.channels:
                    self.channels[broker].stop(partition, Stop(epoch, delete=True))
            case AnswerAlter(waiter, error, state):
                assert callable(waiter)
                waiter(error, state)
            case AskLogEnd(broker, partition, leader_epoch):
                if broker in self.channels:
                    self.channels[broker].ask(partition, leader_epoch)
            case StoreSettings(waiter):
                assert callable(waiter)
                waiter()
                self.conditions.changed()

    def _confirmed(self, confirmed: StateConfirmed) -> None:
        before, after = confirmed.before, confirmed.after
        if self.host.trace is not None:
            self.host.trace.state_confirmed(confirmed)
        if after.leader_epoch != before.leader_epoch:
            self.host.elections[confirmed.rule] += 1
            self.host.log.info(
                "leader elected",
                partition=str(confirmed.partition),
                leader=after.leader,
                leader_epoch=after.leader_epoch,
                isr=list(after.isr),
                rule=confirmed.rule,
            )
        self._publish(confirmed.partition)
        if confirmed.rule != "created" and before.replicas != after.replicas:
            self._write_topic_view(confirmed.partition.topic)

    def _publish(self, partition: TopicPartition) -> None:
        for channel in self.channels.values():
            channel.publish(partition)
        self.flush_soon()

    def _write_topic_view(self, name: str) -> None:
        """Update the topic's node from the states, for Kafka's tools."""
        node = self.topic_view(name)
        self.topics[name] = node
        self.writer.add([Set(paths.topic(name), encode_topic(node))], lambda _: None)

    def topic_view(self, name: str) -> TopicNode:
        """A topic's node, built from the states."""
        topic = self.topics[name]
        states = {
            number: self.core.partitions[TopicPartition(name, number)]
            for number in topic.replicas
            if TopicPartition(name, number) in self.core.partitions
        }
        return TopicNode(
            topic.topic_id,
            topic.replicas | {number: state.replicas for number, state in states.items()},
            {number: state.adding for number, state in states.items() if state.adding},
            {number: state.removing for number, state in states.items() if state.removing},
        )

    # Calls of the admin side.

    def knows(self, partition: TopicPartition) -> bool:
        """Whether the core has this partition, and the store has it too."""
        return partition in self.core.partitions and partition in self.states.versions

    def forget(self, partition: TopicPartition) -> None:
        """Remove the partition from the core."""
        self.states.forget(partition)
        self.run(self.core.forget(partition))
        self.conditions.changed()

    async def settled(self, partitions: Iterable[TopicPartition], timeout_s: float) -> bool:
        """Whether no decision on these is in progress, now or within the time."""
        names = tuple(partitions)
        pending = self.core.is_pending
        return await self.conditions.until(lambda: not any(map(pending, names)), timeout_s)

    @property
    def layers(self) -> Layers:
        """The settings of our broker, with those for all brokers as the store has them."""
        return replace(self.host.configs.layers, cluster=self.cluster_configs)

    def core_settings(
        self, topic: str, own: dict[str, str] | None = None, layers: Layers | None = None
    ) -> Settings:
        """The core's settings for a topic."""
        configs = self.host.configs
        layers = self.layers if layers is None else layers
        own = self.topic_configs.get(topic, {}) if own is None else own
        broker = configs.settings if layers == configs.layers else BrokerSettings.of(layers)
        return TopicConfigs(own, layers).replica_settings(broker)
