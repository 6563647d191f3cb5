"""Three real replicas and a real controller over logs in memory: the smallest driver there is.

It only carries messages and effects. The caller decides when a message arrives, twice or never,
which broker crashes and which session ends; `cluster_checks` has the rules that must always hold.

The world guarantees: a message to a process is lost with that process; a message *from* a process
may outlive it; a controller repeats a command until it is answered; a broker obeys a command only
in the broker epoch it was sent to; the store is always right and obeys the newest controller only.
"""

from __future__ import annotations

from holdfast.core import (
    ACKS_ALL,
    ACKS_LEADER,
    Acknowledge,
    AnswerAlter,
    AskLogEnd,
    Commands,
    ConsiderExpand,
    Controller,
    ControllerFact,
    Effects,
    Fetch,
    Judgement,
    Leader,
    LogEnd,
    ProposeIsr,
    Registration,
    Rules,
    SendStateTo,
    Settings,
    TruncateTo,
    WriteState,
)
from holdfast.model import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    ErrorCode,
    LeaderEpoch,
    Offset,
    PartitionState,
)
from tests.properties.node import Node, header_of
from tests.properties.wire import (
    BROKERS,
    CONTROLLER,
    PARTITION,
    EndAnswered,
    EndAsked,
    FetchAnswered,
    FetchSent,
    Message,
    Payload,
    ProposalAnswered,
    Proposed,
    Record,
    StateSent,
)


class Cluster:
    """The world: nodes, one store, one controller, one idempotent producer, messages in flight."""

    def __init__(self, rules: Rules = Rules(), minimum: int = 2) -> None:  # noqa: B008
        self.rules = rules
        self.settings = Settings(min_insync_replicas=minimum, replica_lag_time_max_ms=10)
        self.now_ms = 0
        self.wire: list[Message] = []
        self.session_changes: list[Registration | BrokerId] = []
        """Sessions that began or ended and of which the controller has not heard, in order."""
        self.writes: list[WriteState] = []
        self.sessions: dict[BrokerId, Registration] = {}
        self.broker_epochs = 0
        self.acknowledged: dict[int, Offset] = {}
        """Acknowledged records: value and offset."""
        self.value = 0
        self.fillers = 0
        self.records_a_fetch = 2
        """An answer has room for no more, so followers come to rest anywhere."""
        self.nodes = {one: Node(one, self.settings, rules) for one in BROKERS}
        self.state = PartitionState(BROKERS, (), leader_epoch=LeaderEpoch(-1))
        self.controller = Controller(ControllerEpoch(1), (), {}, {}, rules)
        for node in self.nodes.values():
            self.register(node)
        self.deliver_session_changes()
        self.command(self.controller.create(PARTITION, BROKERS, self.settings))
        self.flush_writes()

    # Messages.

    def send(self, target: BrokerId, payload: Payload) -> None:
        """Send a message to the process that runs there now."""
        incarnation = int(self.controller.controller_epoch)
        if target != CONTROLLER:
            incarnation = self.nodes[target].incarnation
        self.wire.append(Message(target, incarnation, payload))

    def deliver(self, message: Message) -> None:
        """Deliver a message, if the process it was sent to still runs."""
        if message.target == CONTROLLER:
            if message.incarnation == self.controller.controller_epoch:
                self._to_controller(message.payload)
            return
        node = self.nodes[message.target]
        if node.alive and message.incarnation == node.incarnation:
            self._to_broker(node, message.payload)

    def _to_controller(self, payload: Payload) -> None:
        match payload:
            case Proposed(leader, broker_epoch, _, proposal):
                known = self.controller.brokers.get(leader)
                if known and known.broker_epoch == broker_epoch:
                    self.command(
                        self.controller.alter_partition(PARTITION, leader, proposal, payload)
                    )
            case EndAnswered(broker, broker_epoch, leader_epoch, end):
                known = self.controller.brokers.get(broker)
                if known and known.broker_epoch == broker_epoch:
                    self.command(
                        self.controller.log_end_answered(PARTITION, broker, leader_epoch, end)
                    )
            case other:
                raise AssertionError(f"not for the controller: {other}")

    def _to_broker(self, node: Node, payload: Payload) -> None:
        match payload:
            case FetchSent():
                self._fetched(node, payload)
            case FetchAnswered():
                self._fetch_answered(node, payload)
            case StateSent(controller_epoch, broker_epoch, state):
                # Nobody forges messages here: the store has given this epoch to a controller.
                sender = BrokerId(CONTROLLER)
                node.broker_incarnation.confirm_controller(ControllerFact(controller_epoch, sender))
                judged = node.broker_incarnation.judge_controller(
                    sender, controller_epoch, is_newest=True
                )
                if (
                    judged is Judgement.OBEY
                    and broker_epoch == node.broker_incarnation.broker_epoch
                ):
                    self._state_received(node, state)
            case ProposalAnswered(error, state):
                self.effects(node, node.replica.isr_answer(error, state))
            case EndAsked(broker_epoch, leader_epoch):
                self._asked_for_end(node, broker_epoch, leader_epoch)
            case other:
                raise AssertionError(f"not for a broker: {other}")

    def _state_received(self, node: Node, state: PartitionState) -> None:
        replica = node.replica
        if state.leader == node.id:
            self.effects(node, replica.become_leader(state, self.now_ms))
        else:
            self.effects(node, replica.become_follower(state))

    def _asked_for_end(self, node: Node, broker_epoch: BrokerEpoch, epoch: LeaderEpoch) -> None:
        if node.replica.leader_epoch < epoch:
            self.send(node.id, EndAsked(broker_epoch, epoch))  # That epoch has not arrived yet.
        elif (
            broker_epoch == node.broker_incarnation.broker_epoch
            and node.replica.leader_epoch == epoch
        ):
            last = node.log[-1].leader_epoch if node.log else LeaderEpoch(-1)
            end = LogEnd(last, Offset(len(node.log)))
            self.send(CONTROLLER, EndAnswered(node.id, broker_epoch, epoch, end))

    # Replication.

    def fetch(self, node: Node) -> None:
        """Let a follower fetch from its leader."""
        asked = node.replica.next_fetch() if node.alive else None
        if asked:
            fetch = Fetch(
                node.id,
                asked.fetch_offset,
                asked.last_fetched_epoch,
                asked.current_leader_epoch,
                node.broker_incarnation.broker_epoch,
            )
            self.send(asked.leader, FetchSent(fetch, asked, node.incarnation))

    def _fetched(self, node: Node, sent: FetchSent) -> None:
        answer = node.replica.fetched(sent.fetch, self.now_ms)
        self.effects(node, answer.effects)
        records: tuple[Record, ...] = ()
        if not answer.error and answer.diverging is None:
            upto = min(answer.end_offset, answer.fetch_offset + self.records_a_fetch)
            records = tuple(node.log[answer.fetch_offset : upto])
        reply = FetchAnswered(sent.asked, answer._replace(effects=()), records)
        self.wire.append(Message(sent.fetch.follower, sent.incarnation, reply))

    def _fetch_answered(self, node: Node, got: FetchAnswered) -> None:
        replica, answer = node.replica, got.answer
        if not replica.accepts_answer(got.asked) or answer.error:
            return
        if answer.diverging is not None:
            self.effects(node, replica.diverged(answer.diverging))
            return
        end = len(node.log)
        node.log.extend(got.records)
        high_watermark = answer.high_watermark
        self.effects(
            node, replica.append_as_follower(node.headers(end), high_watermark, self.now_ms)
        )

    def effects(self, node: Node, effects: Effects) -> None:
        """Carry out what a replica asks for, in order."""
        for effect in effects:
            match effect:
                case Acknowledge(int(value), base_offset):
                    self._acknowledged(value, base_offset)
                case ConsiderExpand(follower):
                    self.effects(node, node.replica.expand_isr(follower))
                case ProposeIsr():
                    self.propose(node, effect)
                case TruncateTo(end_offset, _):
                    del node.log[end_offset:]
                    node.replica.log.producers.rebuild(node.headers())
                case _:
                    pass

    def propose(self, node: Node, proposal: ProposeIsr) -> None:
        """Send a leader's proposal, for the first time or again."""
        epoch = node.broker_incarnation.broker_epoch
        self.send(CONTROLLER, Proposed(node.id, epoch, node.incarnation, proposal))

    # Clients.

    def produce(self, node: Node) -> None:
        """The idempotent producer sends its value until it is acknowledged."""
        error = self._append(node, self.value, ACKS_ALL)
        # Who has been deposed without knowing may have missed what came between.
        missed = error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and node is true_leader(self)
        assert not missed, "an acknowledged record is lost"

    def fill(self, node: Node) -> None:
        """Another producer writes a record with acks=1."""
        self.fillers += 1
        self._append(node, -self.fillers, ACKS_LEADER)

    def _append(self, node: Node, value: int, acks: int) -> ErrorCode:
        draft = header_of(Record(LeaderEpoch(-1), value), Offset(-1))
        answer = node.replica.append_as_leader(draft, acks, value)
        if not answer.error and not answer.duplicate:
            assert answer.base_offset == len(node.log)
            node.log.append(Record(answer.leader_epoch, value))
            self.effects(node, node.replica.appended(self.now_ms))
        else:
            self.effects(node, answer.effects)
        return answer.error

    def _acknowledged(self, value: int, offset: Offset) -> None:
        if value >= 0:
            known = self.acknowledged.setdefault(value, offset)
            assert known == offset, f"{value} was acknowledged at {known} and at {offset}"
            self.value = max(self.value, value + 1)

    # Sessions, and the controller.

    def register(self, node: Node) -> None:
        """Open a session; the store assigns a new broker epoch."""
        self.broker_epochs += 1
        epoch = BrokerEpoch(self.broker_epochs)
        node.broker_epoch = epoch
        assert node.broker_incarnation.registration_answered(node.incarnation, epoch)
        session = Registration(node.id, epoch, node.broker_incarnation.intact_since)
        self.sessions[node.id] = session
        self.session_changes.append(session)

    def end_session(self, node: Node) -> None:
        """The store ends a broker's session, whether the broker runs or not."""
        if self.sessions.pop(node.id, None):
            node.broker_incarnation.session_lost()
            self.session_changes.append(node.id)

    def deliver_session_changes(self) -> None:
        """The controller receives all session changes, oldest first."""
        while self.session_changes:
            self.deliver_oldest_session_change()

    def deliver_oldest_session_change(self) -> None:
        match self.session_changes.pop(0):
            case Registration() as session:
                self.command(self.controller.broker_registered(session))
            case broker:
                self.command(self.controller.broker_lost(broker))

    def replace_controller(self) -> None:
        """A new controller takes over from what the store holds; the old one's writes fail."""
        epoch = ControllerEpoch(self.controller.controller_epoch + 1)
        self.writes.clear()
        self.session_changes.clear()
        self.controller = Controller(
            epoch,
            self.sessions.values(),
            {PARTITION: self.state},
            {PARTITION: self.settings},
            self.rules,
        )
        self.command(self.controller.start())

    def command(self, commands: Commands) -> None:
        """Carry out what the controller asks for, in order."""
        for command in commands:
            match command:
                case WriteState():
                    self.writes.append(command)
                case SendStateTo(broker, _, state):
                    epoch = self.controller.brokers[broker].broker_epoch
                    self.send(broker, StateSent(self.controller.controller_epoch, epoch, state))
                case AnswerAlter(Proposed(leader, _, incarnation), error, state):
                    reply = ProposalAnswered(error, state)
                    self.wire.append(Message(leader, incarnation, reply))
                case AskLogEnd(broker, _, leader_epoch):
                    epoch = self.controller.brokers[broker].broker_epoch
                    self.send(broker, EndAsked(epoch, leader_epoch))
                case _:
                    pass

    def flush_writes(self) -> None:
        """Let the store handle all waiting writes."""
        while self.writes:
            self.take_write()

    def take_write(self) -> None:
        """The store handles the oldest write: a compare-and-set."""
        write = self.writes.pop(0)
        assert write.expected == self.state.partition_epoch
        self.state = write.state
        self.command(self.controller.store_confirmed(PARTITION))

    # Faults.

    def crash(self, node: Node) -> None:
        """The process dies; the disk stays as it is."""
        node.alive = False

    def stop(self, node: Node) -> None:
        """A clean shutdown: the next process still has everything."""
        node.alive = False
        node.shutdown = node.broker_incarnation.shut_down_cleanly()

    def lose_records(self, node: Node, kept: int) -> None:
        """The machine dies, and the disk keeps only the beginning of the log."""
        node.alive = False
        node.lost_in = node.broker_epoch
        node.shutdown = None
        del node.log[kept:]

    def restart(self, node: Node, high_watermark: Offset) -> None:
        """A new process; its session replaces the old one if that has not ended yet."""
        node.start(high_watermark)
        self.register(node)


def true_leader(cluster: Cluster) -> Node | None:
    """The elected leader, once it leads in that epoch."""
    state = cluster.state
    node = cluster.nodes.get(state.leader)
    if node is None or not node.alive or not isinstance(node.replica.role, Leader):
        return None
    return node if node.replica.leader_epoch == state.leader_epoch else None
