"""Components and their steps, each computed once.

A component (a broker, or the controller with its store) has a small number. A step is `(component,
input) -> (component, messages, facts)`. There are few different components compared with the states
of the whole cluster, so nearly every step of a search is a lookup; only a new pair of component and
input runs the real code.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, NamedTuple

from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.broker_parts import RETRY_MS
from holdfast.lab.world.client_history import ClientHistory, Work
from holdfast.lab.world.clients import SimConsumer
from holdfast.lab.world.controller import SimController
from holdfast.lab.world.messages import (
    Envelope,
    FetchResponse,
    Payload,
    ProduceResponse,
)
from holdfast.lab.world.store import SimStore
from holdfast.model import ErrorCode, LeaderEpoch, Offset
from holdfast.search.states.client_facts import Fact, Facts, Reader
from holdfast.search.states.component_harness import Stand
from holdfast.search.states.component_inputs import BROKER_INPUTS, CONTROL_INPUTS
from holdfast.search.states.component_views import (
    BrokerView,
    ControlView,
    broker_view,
    control_view,
)
from holdfast.search.states.frozen import frozen_broker, frozen_control

LATE_MS = RETRY_MS * 5
"""Long enough for a parked fetch to time out, and too short for a follower to lag."""

Input = tuple[Any, ...]
READER = "c1"


class Message(NamedTuple):
    """A message in flight."""

    source: str
    target: str
    payload: Payload


class Step(NamedTuple):
    """The result of one input."""

    part: int
    sent: tuple[int, ...]
    facts: tuple[Fact, ...]


class _Pickler(pickle.Pickler):
    """Pickles a component, but keeps references to what all components share."""

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
    """All components and messages that a search has seen, by number."""

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
        self._taken: dict[bytes, int] = {}
        self.messages: list[Message] = []
        self._message_numbers: dict[Message, int] = {}
        self.runs = 0
        """How often the real code ran."""

    # Numbers.

    def message(self, source: str, target: str, payload: Payload) -> int:
        """The number of a message."""
        if isinstance(payload, FetchResponse):
            # The request's effect on the leader is complete; it is not part of the message.
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
        """A new copy of a broker in this state."""
        broker: SimBroker = self._load(self.brokers[number])
        return broker

    def add_broker(self, broker: SimBroker, data: bytes = b"") -> int:
        """The number of a broker's state; `data`: its pickle, if known."""
        key = frozen_broker(broker)
        number = self._broker_numbers.setdefault(key, len(self.brokers))
        if number == len(self.brokers):
            self.brokers.append(data or self._dump(broker))
            self.broker_views.append(broker_view(broker, self.lag_ms + 1))
        return number

    def control(self, number: int) -> tuple[SimController, SimStore]:
        """A new copy of the controller and the store in this state."""
        pair: tuple[SimController, SimStore] = self._load(self.controls[number])
        return pair

    def add_control(self, controller: SimController, store: SimStore) -> int:
        """The number of a controller's and store's state."""
        key = frozen_control(controller, store)
        number = self._control_numbers.setdefault(key, len(self.controls))
        if number == len(self.controls):
            self.controls.append(self._dump((controller, store)))
            self.control_views.append(control_view(controller, store))
        return number

    def take_broker(self, data: bytes) -> int:
        """The number of a broker's state from another process."""
        number = self._taken.get(data)
        if number is None:
            number = self._taken[data] = self.add_broker(self._load(data), data)
        return number

    def take_control(self, data: bytes) -> int:
        """The number of a controller's and store's state from another process."""
        number = self._taken.get(data)
        if number is None:
            number = self._taken[data] = self.add_control(*self._load(data))
        return number

    # Steps.

    def step_broker(self, number: int, given: Input, fetch_number: int, controller: str) -> Step:
        """Run the real broker on one input."""
        self.runs += 1
        stand = self.stand
        stand.clear()
        stand.newest_controller = controller
        broker = self.broker(number)
        broker.fetches = fetch_number - 1
        before = self.broker_views[number]
        try:
            BROKER_INPUTS[given[0]](self, broker, *given[1:])
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
        """The numbers of the sent messages; responses to producers are facts and take no time."""
        sent: list[int] = []
        for source, target, payload in self.stand.sent:
            if isinstance(payload, ProduceResponse):
                kept = payload.error is ErrorCode.NONE
                facts.append(("acknowledged" if kept else "refused", payload.number))
            else:
                sent.append(self.message(source, target, payload))
        return tuple(sent)

    def step_control(self, number: int, given: Input) -> Step:
        """Run the real controller and the store on one input."""
        self.runs += 1
        stand = self.stand
        stand.clear()
        controller, store = self.control(number)
        stand.store = store
        stand.controllers = [controller]
        CONTROL_INPUTS[given[0]](self, *given[1:])
        controller = stand.controllers[-1]
        after = self.add_control(controller, store)
        facts: list[Fact] = [("unclean",)] if stand.invariants.unclean else []
        view = self.control_views[after]
        if view.leader >= 0 and view.leader not in view.isr:
            facts.append(("violation", "leader-in-isr", f"b{view.leader} is not in the ISR"))
        return Step(after, self._sent(facts), tuple(facts))

    def step_reader(self, control: int, broker: int, facts: Facts) -> tuple[Fact, ...]:
        """A real consumer fetches from one broker and takes the response."""
        self.runs += 1
        stand = self.stand
        stand.clear()
        stand.invariants.violations.clear()
        stand.invariants.lossy.update(dict.fromkeys(facts.lossy, "lost records"))
        stand.invariants.unclean = facts.unclean
        stand.store = self.control(control)[1]
        asked = self.broker(broker)
        nobody = stand.brokers[asked.name]
        stand.brokers[asked.name] = asked
        stand.history = ClientHistory()
        before = facts.reader
        for offset, key in before.consumed:
            stand.history.consumed.append(Work(READER, offset, f"r{key}", key))
        consumer = SimConsumer(stand, READER)
        consumer.position = Offset(before.position)
        consumer.position_epoch = LeaderEpoch(before.epoch)
        consumer.first = Offset(before.first)
        consumer.poll(asked.name)
        for receiver in (asked, consumer):
            source, target, payload = stand.sent[-1]
            receiver.receive(Envelope(source, target, payload, None, 0))
        stand.brokers[asked.name] = nobody
        consumed = tuple((one.offset, one.key) for one in stand.history.consumed)
        after = Reader(consumer.position, consumer.position_epoch, consumer.first, consumed)
        found: list[Fact] = [("read", after)]
        found += [("violation", one.invariant, one.text) for one in stand.invariants.violations]
        found += [
            ("violation", "skipped", f"{READER} skipped r{key}") for key in stand.history.skipped
        ]
        return tuple(found)

    def envelope(self, number: int) -> Envelope:
        """A message in the form that a component receives."""
        message = self.messages[number]
        return Envelope(message.source, message.target, message.payload, None, 0)


def _broken(before: BrokerView, after: BrokerView, name: str) -> list[Fact]:
    """Invariants of one step of a broker: its epoch and, while it leads, its high watermark."""
    found: list[Fact] = []
    if before.alive and after.alive and after.leader_epoch < before.leader_epoch:
        text = f"{name} goes from epoch {before.leader_epoch} to {after.leader_epoch}"
        found.append(("violation", "epoch-never-falls", text))
    same_leadership = before.leads and after.leads and before.leader_epoch == after.leader_epoch
    if same_leadership and after.high_watermark < before.high_watermark:
        text = (
            f"{name}'s high watermark fell from {before.high_watermark} to {after.high_watermark}"
        )
        found.append(("violation", "high-watermark-never-falls", text))
    return found
