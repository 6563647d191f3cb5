"""The states of a whole cluster and the steps between them.

A state is a few small numbers: one per broker, and one each for the controller with its store, the
messages in flight, the history of clients, and the faults used up. A step changes one component
(or, when a process dies, all that notice), by lookup if the same step was taken before.

Some things happen immediately instead of as their own step. Why that misses nothing:

- Messages between clients and brokers, and between brokers and the store, as in every scenario: a
  delayed produce request equals a later one, a delayed registration a later start (`slow_sessions`
  allows some slow ones). A broker that hears of a lower min.insync.replicas late equals a later
  change; the store's answer to the controller is an action.
- The response to a LeaderAndIsr request. It only ends the controller's retries, and a retry equals
  a duplicated message (`duplicates`).
- A message to a dead or disconnected node is lost when it is sent: it could only be lost later.
- A parked fetch times out only if its response would change the follower.
- A retry is possible only when the message and its response are both gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.core import ACKS_NONE, Rules, Settings
from holdfast.lab.world.messages import (
    BoundsResponse,
    FetchRequest,
    FetchResponse,
    Payload,
    RegisterRequest,
    RegisterResponse,
    SettingsMessage,
    StateAnswer,
    StateMessage,
)
from holdfast.lab.world.world import STORE, World
from holdfast.search.bounds import BUDGETED, Bounds
from holdfast.search.states.client_facts import ACKNOWLEDGED, SENT, Fact, Facts, Violation, judged
from holdfast.search.states.component_harness import Stand
from holdfast.search.states.component_views import BrokerView
from holdfast.search.states.messages_in_flight import Place, Wires
from holdfast.search.states.step_cache import Input, Parts, Step

State = tuple[int, ...]
"""The numbers of the brokers, then of control, wires, facts and budget."""


class Action(NamedTuple):
    """One action of the search."""

    kind: str
    broker: int = 0
    """The broker's place, from 1; 0: none."""
    place: Place | None = None
    variant: str = ""


class Draft:
    """A state that is being changed."""

    __slots__ = ("brokers", "budget", "control", "facts", "slow", "violation", "wires")

    def __init__(self, state: State, count: int) -> None:
        self.brokers = list(state[:count])
        self.control, self.wires, self.facts, self.budget = state[count:]
        self.violation: Violation | None = None
        self.slow = False
        """Whether a registration in this step is slow."""

    def done(self) -> State:
        """The new state."""
        return (*self.brokers, self.control, self.wires, self.facts, self.budget)


def _takes_no_time(payload: Payload, *, is_slow: bool) -> bool:
    """Whether a message to a broker arrives in the step that sends it."""
    is_registration = isinstance(payload, RegisterResponse) and not is_slow
    return is_registration or isinstance(payload, SettingsMessage)


_MAY_FETCH = (FetchResponse, StateMessage, BoundsResponse)


class Space:
    """All states within some bounds, under some rules and settings."""

    def __init__(
        self, bounds: Bounds, settings: Settings, rules: Rules, acks: int, *, strict: bool = False
    ) -> None:
        self.bounds = bounds
        self.strict = strict
        self.settings = settings
        self.rules = rules
        self.acks = acks
        self.names = tuple(f"b{place}" for place in range(1, bounds.replicas + 1))
        self.count = len(self.names)
        self.places = {name: place for place, name in enumerate(self.names)}
        least = settings.min_insync_replicas - bounds.lowerings
        self.minimum = max(1, min(least, bounds.replicas))
        stand = Stand(self.names, settings, rules)
        stand.holds_settings = bounds.lowerings > 0
        self.parts = Parts(
            stand,
            acks,
            settings.replica_lag_time_max_ms,
            sees_copies=bounds.duplicates > 0,
        )
        self.wires = Wires(self.parts, 1 + bounds.failovers)
        self.ledgers: list[Facts] = []
        self._ledger_numbers: dict[Facts, int] = {}
        self.budgets: list[tuple[int, ...]] = []
        self._budget_numbers: dict[tuple[int, ...], int] = {}
        self._spent: dict[tuple[int, int], int] = {}
        self._left: list[frozenset[str]] = []
        self._most = bounds.to_dict()
        self._broker_steps: dict[tuple[int, Input, int, int], Step] = {}
        self._control_steps: dict[tuple[int, Input], Step] = {}
        self._noted: dict[tuple[int, Fact], tuple[int, Violation | None]] = {}
        self._judged: dict[tuple[int, ...], Violation | None] = {}

    # Where a search begins.

    def initial(self, world: World) -> State:
        """The state of the world in which a search begins; it must not be used afterwards."""
        parts, stand = self.parts, self.parts.stand
        controller = world.controller
        wires = 0
        for one in world.network.pending:
            if isinstance(one.payload, StateAnswer):
                controller.receive(one)
            else:
                wires = self.wires.put(wires, parts.message(one.source, one.target, one.payload))
        facts = self.ledger(Facts.of(world))
        brokers: list[int] = []
        for broker in world.brokers.values():
            broker.world = stand
            if not parts.sees_copies:
                broker.newest_fetch.clear()
            brokers.append(parts.add_broker(broker))
        controller.world = stand
        control = parts.add_control(controller, world.store)
        budget = self.budget((0,) * (len(BUDGETED) + 2))
        return (*brokers, control, wires, facts, budget)

    def ledger(self, facts: Facts) -> int:
        """The number of these facts."""
        number = self._ledger_numbers.setdefault(facts, len(self.ledgers))
        if number == len(self.ledgers):
            self.ledgers.append(facts)
        return number

    def budget(self, used: tuple[int, ...]) -> int:
        """The number of a budget: used bounds, the disconnected broker, the held links."""
        number = self._budget_numbers.setdefault(used, len(self.budgets))
        if number == len(self.budgets):
            self.budgets.append(used)
            self._left.append(
                frozenset(
                    name
                    for name, count in zip(BUDGETED, used, strict=False)
                    if count < self._most[name]
                )
            )
        return number

    # Budgets.

    def left(self, budget: int) -> frozenset[str]:
        """The bounds that are not used up."""
        return self._left[budget]

    def spend(self, draft: Draft, bound: int) -> None:
        """Use one of a bound."""
        key = (draft.budget, bound)
        found = self._spent.get(key)
        if found is None:
            used = list(self.budgets[draft.budget])
            used[bound] += 1
            found = self._spent[key] = self.budget(tuple(used))
        draft.budget = found

    def disconnected(self, budget: int) -> int:
        """The disconnected broker, by place from 1; 0: none."""
        return self.budgets[budget][-2]

    def disconnect(self, draft: Draft, place: int) -> None:
        """Disconnect this broker; 0: reconnect."""
        used = self.budgets[draft.budget]
        draft.budget = self.budget((*used[:-2], place, used[-1]))

    def held(self, budget: int) -> int:
        """The held links, one bit each."""
        return self.budgets[budget][-1]

    def hold(self, draft: Draft, held: int) -> None:
        """Hold these links back."""
        used = self.budgets[draft.budget]
        if used[-1] != held:
            draft.budget = self.budget((*used[:-1], held))

    # Steps.

    def view(self, draft: Draft, place: int) -> BrokerView:
        """A broker, by place from 1."""
        return self.parts.broker_views[draft.brokers[place - 1]]

    def controller_name(self, control: int) -> str:
        """The name of the current controller."""
        return f"controller-{self.parts.control_views[control].controller_epoch}"

    def run_broker(self, draft: Draft, place: int, given: Input, *, fetches: bool) -> None:
        """One broker handles one input."""
        parts = self.parts
        number = draft.brokers[place - 1]
        fetch_number = self._fetch_number(draft, place) if fetches else 1
        epoch = parts.control_views[draft.control].controller_epoch
        key = (number, given, fetch_number, epoch)
        step = self._broker_steps.get(key)
        if step is None:
            name = self.controller_name(draft.control)
            step = self._broker_steps[key] = parts.step_broker(number, given, fetch_number, name)
        draft.brokers[place - 1] = step.part
        self._take(draft, step)

    def run_control(self, draft: Draft, given: Input) -> None:
        """The controller or the store handles one input."""
        key = (draft.control, given)
        step = self._control_steps.get(key)
        if step is None:
            step = self._control_steps[key] = self.parts.step_control(draft.control, given)
        draft.control = step.part
        self._take(draft, step)

    def read(self, draft: Draft, place: int) -> None:
        """The consumer reads from one broker."""
        broker = draft.brokers[place - 1]
        facts = self.ledgers[draft.facts]
        for fact in self.parts.step_reader(draft.control, broker, facts):
            self.note(draft, fact)

    def _take(self, draft: Draft, step: Step) -> None:
        for fact in step.facts:
            self.note(draft, fact)
        for message in step.sent:
            self.send(draft, message)

    def note(self, draft: Draft, fact: Fact) -> None:
        """Add a fact to the state."""
        key = (draft.facts, fact)
        found = self._noted.get(key)
        if found is None:
            facts, violation = self.ledgers[draft.facts].after(fact)
            found = self._noted[key] = (self.ledger(facts), violation)
        draft.facts = found[0]
        draft.violation = draft.violation or found[1]

    def sent_record(self, draft: Draft) -> int:
        """Add a sent record; return its key."""
        facts = self.ledgers[draft.facts]
        draft.facts = self.ledger(facts.sent(ACKNOWLEDGED if self.acks == ACKS_NONE else SENT))
        return len(facts.answers)

    def _fetch_number(self, draft: Draft, place: int) -> int:
        """The smallest number that no other fetch of this follower has."""
        used = list(self.wires.fetch_numbers(draft.wires, self.names[place - 1]))
        for other in draft.brokers:
            for follower, number in self.parts.broker_views[other].known_numbers:
                if follower == place:
                    used.append(number)
        number = 1
        while number in used:
            number += 1
        return number

    # Messages.

    def send(self, draft: Draft, message: int) -> None:
        """Send a message, or deliver it immediately if it takes no time."""
        source, target, payload = self.parts.messages[message]
        place = self.places.get(target)
        if place is not None:
            if _takes_no_time(payload, is_slow=draft.slow):
                if self.view(draft, place + 1).alive:
                    self.run_broker(draft, place + 1, ("deliver", message), fetches=False)
            elif self._reaches(draft, source, place + 1):
                draft.wires = self.wires.put(draft.wires, message)
            else:
                self.lose(draft, message)
        elif target == STORE:
            assert isinstance(payload, RegisterRequest)
            if draft.slow:
                draft.wires = self.wires.put(draft.wires, message)
            else:
                self.run_control(draft, ("register", message))
        elif target == self.controller_name(draft.control) and not self._is_disconnected(
            draft, source
        ):
            if isinstance(payload, StateAnswer):
                self.run_control(draft, ("deliver", message))
            else:
                draft.wires = self.wires.put(draft.wires, message)

    def _is_disconnected(self, draft: Draft, name: str) -> bool:
        disconnected = self.disconnected(draft.budget)
        return disconnected > 0 and self.names[disconnected - 1] == name

    def _reaches(self, draft: Draft, source: str, place: int) -> bool:
        disconnected = self.disconnected(draft.budget)
        if (
            disconnected
            and source != STORE
            and (disconnected == place or self.names[disconnected - 1] == source)
        ):
            return False
        return self.view(draft, place).alive

    def lose(self, draft: Draft, message: int) -> None:
        """A message is lost; the follower that waits for it sees a broken connection."""
        source, target, payload = self.parts.messages[message]
        if isinstance(payload, FetchRequest):
            waiting = source
        elif isinstance(payload, FetchResponse):
            waiting = target
        else:
            return
        place = self.places[waiting] + 1
        if self.view(draft, place).alive:
            self.run_broker(draft, place, ("lost", payload.number), fetches=False)

    def deliver(self, draft: Draft, place: Place) -> None:
        """A message reaches its target."""
        draft.wires = self.wires.take(draft.wires, place)
        message = place.message
        _, target, payload = self.parts.messages[message]
        broker = self.places.get(target)
        if broker is not None:
            fetches = isinstance(payload, _MAY_FETCH)
            self.run_broker(draft, broker + 1, ("deliver", message), fetches=fetches)
        elif target == STORE:
            draft.slow = True
            self.run_control(draft, ("register", message))
        elif target == self.controller_name(draft.control):
            self.run_control(draft, ("deliver", message))

    # Judging.

    def is_within(self, state: State) -> bool:
        """Whether the partition state has changed no more often than allowed."""
        view = self.parts.control_views[state[self.count]]
        return view.partition_epoch <= self.bounds.versions

    def judge(self, state: State) -> Violation | None:
        """The violation in a state, if any."""
        control, _, facts, _ = state[self.count :]
        key = (*state[: self.count], control, facts)
        if key in self._judged:
            return self._judged[key]
        views: Sequence[BrokerView] = [self.parts.broker_views[one] for one in state[: self.count]]
        found = judged(
            self.ledgers[facts],
            views,
            self.parts.control_views[control],
            self.acks,
            self.minimum,
            strict=self.strict,
        )
        self._judged[key] = found
        return found
