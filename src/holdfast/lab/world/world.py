"""The simulated world: brokers, a controller, a store, clients, a network, and time.

Nothing moves by itself. A scenario says which message to deliver and how much time passes; in a
seeded run a random generator decides. Both run the same brokers on the same core and write one
trace.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import asdict

from holdfast.core import SAFE_RULES, Leader, Replica, Rules, Settings
from holdfast.lab.judge.invariants import Invariants
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.client_history import ClientHistory
from holdfast.lab.world.clients import SimConsumer, SimProducer
from holdfast.lab.world.controller import SimController
from holdfast.lab.world.messages import (
    Envelope,
    FetchRequest,
    FetchResponse,
    Payload,
    ProduceRequest,
    ProduceResponse,
    RegisterRequest,
    RegisterResponse,
    SettingsMessage,
)
from holdfast.lab.world.network import Network
from holdfast.lab.world.recorder import Recorder
from holdfast.lab.world.store import SimStore
from holdfast.model import (
    NO_BROKER,
    BrokerId,
    LeaderEpoch,
    Offset,
    PartitionEpoch,
    PartitionState,
    ReplicaBroker,
    TopicPartition,
)

TICK_MS = 100
STORE = "store"


class DoesNotSettleError(Exception):
    """Messages keep causing messages."""


class World:
    """A cluster with one partition, and everything around it."""

    settings: Settings
    """As the world began; `store.settings` are the present ones."""
    holds_settings = False
    """Whether the store's answers to changes of settings wait for a command."""

    def __init__(
        self,
        names: Sequence[str],
        settings: Settings,
        rules: Rules = SAFE_RULES,
        *,
        isr: Sequence[str] = (),
        leader: str = "",
    ) -> None:
        self.settings = settings
        self.rules = rules
        self.partition = TopicPartition("events", 0)
        self.recorder = Recorder(str(self.partition))
        self.network = Network()
        self.store = SimStore(settings)
        self.history = ClientHistory()
        self.now_ms = 0
        self.flows_immediately = True
        """True: messages of clients and of the store are delivered without a command."""
        self.checkpoints_immediately = True
        """True: a crash keeps the newest high watermark. False: only a timer writes it."""
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._timer_count = 0
        self._next_tick_ms = TICK_MS
        self.brokers: dict[str, SimBroker] = {}
        self.clients: dict[str, SimProducer | SimConsumer] = {}
        self.held: dict[str, None] = {}
        self.slow_sessions: dict[str, None] = {}
        """Brokers whose messages from and to the store wait for a command."""
        self.controllers: list[SimController] = []
        for place, name in enumerate(names, 1):
            self.brokers[name] = SimBroker(self, BrokerId(place), name)
        self.invariants = Invariants(self)
        self._begin(isr or names, leader or names[0])

    def _begin(self, isr: Sequence[str], leader: str) -> None:
        """Create the partition: every broker knows the leader, no follower has fetched yet."""
        ids = {name: broker.id for name, broker in self.brokers.items()}
        members = tuple(ids[name] for name in isr)
        for broker in self.brokers.values():
            broker.start()
        self.pump()
        epochs = tuple(ReplicaBroker(one, self.store.sessions[one].broker_epoch) for one in members)
        state = PartitionState(
            tuple(ids.values()),
            members,
            ids[leader],
            LeaderEpoch(0),
            PartitionEpoch(0),
            member_epochs=epochs,
        )
        self.store.partitions[self.partition] = state
        self.recorder.events.clear()
        self.recorder.cause = None
        self.recorder.emit(
            "begins",
            schema="holdfast-trace/1",
            names={str(broker.id): name for name, broker in self.brokers.items()},
            replicas=list(state.replicas),
            isr=list(members),
            leader=ids[leader],
            leader_epoch=0,
            settings=_settings_of(self.settings),
            rules=_rules_of(self.rules),
        )
        self.new_controller(silent=True)
        for envelope in list(self.network.pending):
            if envelope.source == self.controller_name:
                self.deliver(envelope)

    # Names.

    def name_of(self, broker: BrokerId) -> str:
        """A broker's name."""
        return next(name for name, one in self.brokers.items() if one.id == broker)

    @property
    def controller(self) -> SimController:
        """The newest controller."""
        return self.controllers[-1]

    @property
    def controller_name(self) -> str:
        """Where messages for the controller go."""
        return self.controller.name if self.controllers else "controller"

    @property
    def fire_and_forget(self) -> tuple[str, ...]:
        """Producers that ignore errors."""
        return tuple(
            name
            for name, one in self.clients.items()
            if isinstance(one, SimProducer) and one.ignores_answers
        )

    def partition_state(self) -> PartitionState:
        """The state in the store."""
        return self.store.partitions[self.partition]

    def leader_name(self) -> str:
        """The leader in the store; empty: none."""
        leader = self.partition_state().leader
        return "" if leader == NO_BROKER else self.name_of(leader)

    def true_leader(self) -> SimBroker | None:
        """The leader in the store, if it runs and has taken the leadership."""
        state = self.partition_state()
        if state.leader == NO_BROKER:
            return None
        broker = self.brokers[self.name_of(state.leader)]
        knows = broker.replica.presumes_leadership
        current = broker.replica.leader_epoch == state.leader_epoch
        return broker if broker.alive and knows and current else None

    def is_at_rest(self) -> bool:
        """Whether all replicas are in sync and equal, and everything is committed."""
        leader = self.true_leader()
        if leader is None or not isinstance(leader.replica.role, Leader):
            return False
        in_sync = len(self.partition_state().isr) == len(self.brokers)
        equal = all(one.disk.keys == leader.disk.keys for one in self.brokers.values())
        return in_sync and equal and leader.replica.log.high_watermark == leader.disk.end_offset

    # Messages.

    def send(self, source: str, target: str, payload: Payload) -> None:
        """Put a message on the wire."""
        self.network.send(source, target, payload, self.recorder.cause)

    def deliver(self, envelope: Envelope) -> bool:
        """Deliver a message, or lose it if its target is down; False if it must wait."""
        target = envelope.target
        node = self._node(target)
        if node is not None and getattr(node, "paused", False):
            return False
        if not self.network.take(envelope):
            return False
        if self.network.is_disconnected(envelope.source, target) or not self._reachable(target):
            self.lose(envelope)
            return True
        self.recorder.cause = envelope.cause
        if target == STORE:
            self._on_register(envelope)
        elif node is not None:
            node.receive(envelope)
        self.invariants.check()
        return True

    def _node(self, name: str) -> SimBroker | SimController | SimProducer | SimConsumer | None:
        if name in self.brokers:
            return self.brokers[name]
        if name in self.clients:
            return self.clients[name]
        for controller in self.controllers:
            if controller.name == name:
                return controller
        return None

    def _reachable(self, name: str) -> bool:
        node = self._node(name)
        return name == STORE or (node is not None and getattr(node, "alive", True))

    def lose(self, envelope: Envelope) -> None:
        """Lose a message; the node that waits for it learns that its connection broke."""
        self.recorder.cause = envelope.cause
        self.recorder.emit(
            "message-lost", what=envelope.name, source=envelope.source, target=envelope.target
        )
        payload = envelope.payload
        match payload:
            case FetchRequest():
                self.brokers[envelope.source].connection_lost(payload.number)
            case FetchResponse():
                self.brokers[envelope.target].connection_lost(payload.number)
            case ProduceRequest() | ProduceResponse():
                client = self.clients.get(payload.producer)
                if isinstance(client, SimProducer):
                    client.connection_lost(payload.number)
            case RegisterRequest():
                broker = self.brokers[envelope.source]
                self.later(TICK_MS, broker.register_if_needed)
            case _:
                pass

    def break_connections(self, node: str, *, keep_sent: bool = False) -> None:
        """Lose all messages from and to a dead node; nodes that wait for them learn it.

        `keep_sent`: the messages that it had sent still arrive.
        """
        for envelope in self.network.drop_node(node, keep_sent=keep_sent):
            other = envelope.target if envelope.source == node else envelope.source
            if self._node(other) is not None:
                self.lose(envelope)
        dead = self.brokers.get(node)
        for broker in self.brokers.values():
            if dead:
                broker.forget_fetch(dead.id)
            outstanding = broker.outstanding
            if outstanding and self.name_of(outstanding.asked.leader) == node:
                broker.connection_lost(outstanding.number)
        for client in self.clients.values():
            if isinstance(client, SimProducer):
                client.broker_lost(node)

    def pump(self) -> None:
        """Deliver the messages of clients and of the store; scenarios are not about them."""
        while self.flows_immediately:
            ready = [one for one in self.network.pending if self._flows_freely(one)]
            if not ready or not any(self.deliver(one) for one in ready):
                return

    def _flows_freely(self, envelope: Envelope) -> bool:
        ends = (envelope.source, envelope.target)
        if any(end in self.held for end in ends):
            return False
        if STORE in ends:
            return not any(end in self.slow_sessions for end in ends)
        return any(end in self.clients for end in ends)

    def settle(self, among: Sequence[str] = ()) -> None:
        """Deliver until no message is left; `among`: only between these nodes."""
        for broker in self.brokers.values():
            if not among or broker.name in among:
                broker.maybe_fetch()
        for _ in range(10_000):
            self.pump()
            ready = [one for one in self.network.pending if self._within(one, among)]
            if not any(self.deliver(one) for one in ready):
                return
        raise DoesNotSettleError("messages keep coming: 10,000 rounds without rest")

    def _within(self, envelope: Envelope, among: Sequence[str]) -> bool:
        ends = (envelope.source, envelope.target)
        if any(end in self.held for end in ends):
            return False
        return not among or all(end in among or end not in self.brokers for end in ends)

    # Time.

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Run an action after a delay."""
        self._timer_count += 1
        heapq.heappush(self._timers, (self.now_ms + delay_ms, self._timer_count, action))

    def advance(self, duration_ms: int, *, flowing: bool = False) -> None:
        """Let time pass; messages move only if `flowing`."""
        end = self.now_ms + duration_ms
        while True:
            next_timer = self._timers[0][0] if self._timers else end + 1
            moment = min(self._next_tick_ms, next_timer)
            if moment > end:
                break
            self._set_time(moment)
            self.recorder.cause = None
            if next_timer <= moment:
                heapq.heappop(self._timers)[2]()
            else:
                self._next_tick_ms += TICK_MS
                for broker in self.brokers.values():
                    broker.tick()
            self.invariants.check()
            self.pump()
            if flowing:
                self.settle()
        self._set_time(end)

    def _set_time(self, now_ms: int) -> None:
        self.now_ms = self.recorder.now_ms = max(self.now_ms, now_ms)

    # The store and the controller.

    def _on_register(self, envelope: Envelope) -> None:
        request = envelope.payload
        assert isinstance(request, RegisterRequest)
        registration = self.store.register(request.broker, request.intact_since)
        response = RegisterResponse(request.incarnation, registration.broker_epoch)
        self.send(STORE, envelope.source, response)
        if self.store.settings != self.settings:
            self.send(STORE, envelope.source, SettingsMessage(self.store.settings))
        if self.controllers and self.controller.alive and not self.controller.paused:
            self.pump()
            controller = self.controller
            controller.run(controller.core.broker_registered(registration))

    def expire_session(self, name: str) -> None:
        """The store ends a broker's session and notifies the controller."""
        broker = self.brokers[name]
        registration = self.store.expire(broker.id)
        if registration is None:
            return
        self.recorder.emit("session-expired", broker.id, registration.broker_epoch)
        controller = self.controller
        if controller.alive and not controller.paused:
            controller.run(controller.core.broker_lost(broker.id))

    def release_settings(self) -> None:
        """Deliver the store's answer to a change of settings, and later ones immediately."""
        self.holds_settings = False
        self.controller.settings_answered()

    def new_controller(self, *, silent: bool = False) -> None:
        """Elect a controller; it starts from the state in the store."""
        controller = SimController(self, self.store.next_controller())
        self.controllers.append(controller)
        if not silent:
            self.recorder.emit("controller", controller_epoch=self.store.controller_epoch)
        controller.run(controller.core.start())

    # Reports from brokers.

    def on_high_watermark(self, broker: BrokerId, was: Offset, high_watermark: Offset) -> None:
        """A replica's high watermark moved; below a leader's, consumers may read."""
        one = self.brokers[self.name_of(broker)]
        if one.replica.presumes_leadership:
            self.invariants.committed(one, was, high_watermark)

    def check_replica(self, broker: SimBroker) -> None:
        """The core's own invariants, after every message."""
        replica: Replica = broker.replica
        if not broker.disk.forgets_writes:
            assert replica.log.log_end_offset == broker.disk.end_offset, broker.name
        replica.check_invariants()


def _settings_of(settings: Settings) -> dict[str, object]:
    return {key: getattr(value, "value", value) for key, value in asdict(settings).items()}


def _rules_of(rules: Rules) -> dict[str, object]:
    return {
        "truncation": rules.truncation.value,
        "isr_update": rules.isr_update.value,
        "isr_expand": rules.isr_expand.value,
        "isr_lag_rule": rules.isr_lag_rule.value,
        "commit_rule": rules.commit_rule.value,
        "without": list(rules.guards.removed()),
    }
