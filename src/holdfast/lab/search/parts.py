"""Components and their steps, each worked out once.

A component (a broker, or the controller with its store) is known by a small number. A step is
`(component, input) -> (component, messages, facts)`. There are few different components compared
with the states of the whole cluster, so nearly every step of a search is a lookup; only a new pair
of component and input runs the real code.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.core import Leader
from holdfast.lab.broker import SimBroker
from holdfast.lab.broker_parts import RETRY_MS
from holdfast.lab.control import SimController
from holdfast.lab.disk import SimDisk
from holdfast.lab.messages import (
    Envelope,
    FetchResponse,
    Payload,
    ProduceRequest,
    ProduceResponse,
    Record,
)
from holdfast.lab.search.frozen import frozen_broker, frozen_control
from holdfast.lab.search.stand import Stand
from holdfast.lab.store import SimStore
from holdfast.model import NO_BROKER_EPOCH, BatchHeader, BrokerId, ErrorCode

PRODUCER = "producer"
LATE_MS = RETRY_MS * 5
"""Long enough for a parked fetch to be answered, and too short for anybody to lag."""

Input = tuple[Any, ...]
Fact = tuple[Any, ...]


class Message(NamedTuple):
    """Something on its way."""

    source: str
    target: str
    payload: Payload


class Step(NamedTuple):
    """What came of one input."""

    part: int
    sent: tuple[int, ...]
    facts: tuple[Fact, ...]


class BrokerView(NamedTuple):
    """What the search asks of a broker in some state."""

    alive: bool
    leads: bool
    leader_epoch: int
    high_watermark: int
    keys: tuple[int, ...]
    can_fetch: bool
    parked: tuple[int, ...]
    """Ids of followers whose fetches wait here."""
    known_numbers: tuple[tuple[int, int], ...]
    """Followers, and numbers of their fetches that this broker still knows."""
    rested: bool
    lagging: bool
    """Whether a late look at the clock would shrink the ISR."""
    proposal: bool
    candidates: bool
    waits_for: int
    """The number of the fetch under way; 0: none."""
    leader: int
    """Whom that fetch was sent to."""
    broker_epoch: int
    unflushed: bool
    disk_works: bool
    has_epochs: bool


class ControlView(NamedTuple):
    """What the search asks of the controller and the store."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    sessions: dict[int, int]
    untold: tuple[int, ...]
    asked: bool
    controller_epoch: int


class _Pickler(pickle.Pickler):
    """Keeps references to what all components share."""

    def __init__(self, file: io.BytesIO, shared: dict[int, str]) -> None:
        super().__init__(file, protocol=5)
        self._shared = shared

    def persistent_id(self, obj: Any) -> str | None:
        return self._shared.get(id(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: dict[str, Any]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, pid: str) -> Any:
        return self._shared[pid]


class Parts:
    """All components and messages that a search has met, by number."""

    def __init__(self, stand: Stand, acks: int, lag_ms: int, *, sees_copies: bool) -> None:
        self.stand = stand
        self.sees_copies = sees_copies
        """Whether a request can arrive twice, so that brokers must remember the newest one."""
        self.acks = acks
        self.lag_ms = lag_ms
        rules = stand.rules
        self._shared: dict[str, Any] = {
            "stand": stand,
            "rules": rules,
            "guards": rules.guards,
            "settings": stand.settings,
        }
        self._ids = {id(value): name for name, value in self._shared.items()}
        self.names = tuple(stand.brokers)
        self.brokers: list[bytes] = []
        self.broker_views: list[BrokerView] = []
        self._broker_numbers: dict[Any, int] = {}
        self.controls: list[bytes] = []
        self.control_views: list[ControlView] = []
        self._control_numbers: dict[Any, int] = {}
        self.messages: list[Message] = []
        self._message_numbers: dict[Message, int] = {}
        self.runs = 0
        """How often the real code was run."""

    # Numbers.

    def message(self, source: str, target: str, payload: Payload) -> int:
        """The number of a message."""
        if isinstance(payload, FetchResponse):
            # What the request caused at the leader is done; it does not travel.
            payload = payload._replace(answer=payload.answer._replace(effects=()))
        message = Message(source, target, payload)
        number = self._message_numbers.setdefault(message, len(self.messages))
        if number == len(self.messages):
            self.messages.append(message)
        return number

    def _dump(self, value: Any) -> bytes:
        file = io.BytesIO()
        _Pickler(file, self._ids).dump(value)
        return file.getvalue()

    def _load(self, data: bytes) -> Any:
        return _Unpickler(io.BytesIO(data), self._shared).load()

    def broker(self, number: int) -> SimBroker:
        """A broker in this state, to be used up."""
        broker: SimBroker = self._load(self.brokers[number])
        return broker

    def add_broker(self, broker: SimBroker) -> int:
        """The number of a broker's state."""
        key = frozen_broker(broker)
        number = self._broker_numbers.setdefault(key, len(self.brokers))
        if number == len(self.brokers):
            self.brokers.append(self._dump(broker))
            self.broker_views.append(self._view(broker))
        return number

    def control(self, number: int) -> tuple[SimController, SimStore]:
        """The controller and the store in this state, to be used up."""
        pair: tuple[SimController, SimStore] = self._load(self.controls[number])
        return pair

    def add_control(self, controller: SimController, store: SimStore) -> int:
        """The number of a controller's and store's state."""
        key = frozen_control(controller, store)
        number = self._control_numbers.setdefault(key, len(self.controls))
        if number == len(self.controls):
            self.controls.append(self._dump((controller, store)))
            self.control_views.append(_control_view(controller, store))
        return number

    def _view(self, broker: SimBroker) -> BrokerView:
        replica, disk = broker.replica, broker.disk
        role = replica.role
        alive = broker.alive
        leads = alive and isinstance(role, Leader)
        insync = role.insync if leads and isinstance(role, Leader) else None
        late = self.lag_ms + 1
        lagging = (
            insync is not None
            and not insync.proposal
            and any(
                one in insync.followers
                and insync.followers[one].lags(
                    replica.log.log_end_offset, insync.settings, insync.rules.isr_lag_rule, late
                )
                for one in insync.isr
            )
        )
        waits = broker.outstanding if alive else None
        fetches = alive and not waits and not replica.has_failed
        parked = broker.parked if leads else {}
        return BrokerView(
            alive=alive,
            leads=leads,
            leader_epoch=replica.leader_epoch,
            high_watermark=replica.log.high_watermark,
            keys=tuple(disk.keys),
            can_fetch=fetches and replica.next_fetch() is not None,
            parked=tuple(parked),
            known_numbers=(
                *((one, asked.number) for one, asked in parked.items()),
                *((one, life[1]) for one, life in broker.newest_fetch.items() if alive),
            ),
            rested=insync is None or insync.expand_rested,
            lagging=lagging,
            proposal=insync is not None and insync.proposal is not None,
            candidates=alive and bool(broker.candidates),
            waits_for=waits.number if waits else 0,
            leader=waits.asked.leader if waits else 0,
            broker_epoch=broker.life.broker_epoch if alive else NO_BROKER_EPOCH,
            unflushed=disk.flushed_offset < disk.end_offset,
            disk_works=not disk.fails and not disk.forgets_writes,
            has_epochs=bool(broker._epochs) and not disk.epoch_checkpoint_lost,
        )

    # Steps.

    def step_broker(self, number: int, given: Input, fetch_number: int, controller: str) -> Step:
        """Run the real broker."""
        self.runs += 1
        stand = self.stand
        stand.clear()
        stand.newest_controller = controller
        broker = self.broker(number)
        broker.fetches = fetch_number - 1
        before = self.broker_views[number]
        try:
            _BROKER_INPUTS[given[0]](self, broker, *given[1:])
        except AssertionError as error:
            return Step(number, (), (("violation", "assertion", str(error)),))
        if not self.sees_copies:
            broker.newest_fetch.clear()
        after = self.add_broker(broker)
        facts = [*_broken(before, self.broker_views[after], broker.name)]
        facts.extend(self._reported(broker))
        return Step(after, self._sent(facts), tuple(facts))

    def _reported(self, broker: SimBroker) -> list[Fact]:
        stand = self.stand
        facts: list[Fact] = [("lossy", name) for name in stand.invariants.lossy]
        if broker.replica.presumes_leadership:
            facts.extend(
                ("committed", was, tuple(broker.disk.keys_between(was, now)))
                for was, now in stand.committed
            )
        return facts

    def _sent(self, facts: list[Fact]) -> tuple[int, ...]:
        """Numbers of what was sent; answers to producers are facts, and need no time."""
        sent: list[int] = []
        for source, target, payload in self.stand.sent:
            if isinstance(payload, ProduceResponse):
                kept = payload.error is ErrorCode.NONE
                facts.append(("acknowledged" if kept else "refused", payload.number))
            else:
                sent.append(self.message(source, target, payload))
        return tuple(sent)

    def step_control(self, number: int, given: Input) -> Step:
        """Run the real controller and the store."""
        self.runs += 1
        stand = self.stand
        stand.clear()
        controller, store = self.control(number)
        stand.store = store
        stand.controllers = [controller]
        _CONTROL_INPUTS[given[0]](self, *given[1:])
        controller = stand.controllers[-1]
        after = self.add_control(controller, store)
        facts: list[Fact] = [("unclean",)] if stand.invariants.unclean else []
        view = self.control_views[after]
        if view.leader >= 0 and view.leader not in view.isr:
            facts.append(("violation", "leader-in-isr", f"b{view.leader} is not in the ISR"))
        return Step(after, self._sent(facts), tuple(facts))

    def envelope(self, number: int) -> Envelope:
        """A message as a component takes it."""
        message = self.messages[number]
        return Envelope(message.source, message.target, message.payload, None, 0)


def _broken(before: BrokerView, after: BrokerView, name: str) -> list[Fact]:
    """Invariants of one broker's life: its epoch and, while it leads, its high watermark."""
    found: list[Fact] = []
    if before.alive and after.alive and after.leader_epoch < before.leader_epoch:
        text = f"{name} goes from epoch {before.leader_epoch} to {after.leader_epoch}"
        found.append(("violation", "epoch-never-falls", text))
    same_reign = before.leads and after.leads and before.leader_epoch == after.leader_epoch
    if same_reign and after.high_watermark < before.high_watermark:
        text = f"{name}'s fell from {before.high_watermark} to {after.high_watermark}"
        found.append(("violation", "high-watermark-never-falls", text))
    return found


def _control_view(controller: SimController, store: SimStore) -> ControlView:
    (state,) = store.partitions.values()
    return ControlView(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
        sessions={one: known.broker_epoch for one, known in store.sessions.items()},
        untold=tuple(controller.untold),
        asked=any(end is None for ends in controller.core._asked.values() for end in ends.values()),
        controller_epoch=store.controller_epoch,
    )


# What can be done to a broker.


def _deliver(parts: Parts, broker: SimBroker, message: int) -> None:
    broker.receive(parts.envelope(message))


def _produce(parts: Parts, broker: SimBroker, key: int) -> None:
    records = (Record(f"r{key}", key),)
    request = ProduceRequest(PRODUCER, key, parts.acks, BatchHeader(1), records)
    broker.receive(Envelope(PRODUCER, broker.name, request, None, 0))


def _tick(_parts: Parts, broker: SimBroker, ahead_ms: int) -> None:
    broker.run(broker.replica.tick(ahead_ms))


def _peer_died(_parts: Parts, broker: SimBroker, peer: int) -> None:
    """A peer's connections broke: its parked fetch is gone, and ours will not be answered."""
    broker.forget_fetch(BrokerId(peer))
    waits = broker.outstanding
    if waits and waits.asked.leader == peer:
        broker.connection_lost(waits.number)


def _propose(_parts: Parts, broker: SimBroker) -> None:
    role = broker.replica.role
    if isinstance(role, Leader) and role.insync.proposal:
        broker.send_proposal(role.insync.proposal)


def _expand(_parts: Parts, broker: SimBroker) -> None:
    broker.release_expansions()
    broker.holds_expansions = True


def _start(_parts: Parts, broker: SimBroker) -> None:
    broker.disk.fails = broker.disk.unreadable = ""
    broker.disk.forgets_writes = False
    broker.start()


def _lose_disk(parts: Parts, broker: SimBroker) -> None:
    if broker.disk.end_offset:
        parts.stand.invariants.lost_records(broker.name, "lost its disk")
    broker.disk = SimDisk()


def _lose_epochs(_parts: Parts, broker: SimBroker) -> None:
    broker.disk.epoch_checkpoint_lost = True


def _fail_disk(_parts: Parts, broker: SimBroker) -> None:
    broker.disk.fails = "input/output error"


_BROKER_INPUTS: dict[str, Callable[..., None]] = {
    "deliver": _deliver,
    "produce": _produce,
    "again-fetch": lambda _parts, broker: broker.maybe_fetch(),
    "tick": _tick,
    "crash": lambda _parts, broker: broker.crash(),
    "power": lambda _parts, broker: broker.lose_power(),
    "stop": lambda _parts, broker: broker.stop(),
    "start": _start,
    "peer-died": _peer_died,
    "lost": lambda _parts, broker, number: broker.connection_lost(number),
    "shutdown": lambda _parts, broker: broker.ask_to_stop(),
    "rejoin": lambda _parts, broker: broker.session_lost(),
    "again-registration": lambda _parts, broker: broker.register_if_needed(),
    "again-proposal": _propose,
    "expand": _expand,
    "flush": lambda _parts, broker: broker.flush(broker.disk.end_offset),
    "lose-disk": _lose_disk,
    "lose-epochs": _lose_epochs,
    "fail-disk": _fail_disk,
}


# What can be done to the controller and the store.


def _to_controller(parts: Parts, message: int) -> None:
    parts.stand.controller.receive(parts.envelope(message))


def _register(parts: Parts, message: int) -> None:
    parts.stand._on_register(parts.envelope(message))


def _elect(parts: Parts, broker: int) -> None:
    stand = parts.stand
    stand.controller.run(stand.controller.core.elect(stand.partition, BrokerId(broker)))


def _tell_again(parts: Parts, untold: tuple[int, ...], asks: bool) -> None:
    controller = parts.stand.controller
    for broker in map(BrokerId, untold):
        controller._tell(broker, controller.untold[broker])
    if asks:
        controller.run(controller.core.ask_again())


_CONTROL_INPUTS: dict[str, Callable[..., None]] = {
    "deliver": _to_controller,
    "register": _register,
    "expire": lambda parts, name: parts.stand.expire_session(name),
    "elect": _elect,
    "failover": lambda parts: parts.stand.new_controller(),
    "again": _tell_again,
}
