"""Applies an action to a state; one method per kind of action."""

from __future__ import annotations

from holdfast.search.bounds import ANY, BUDGETED
from holdfast.search.next_events import DEATHS, LOG_ENDS, Choices
from holdfast.search.states.client_facts import Violation
from holdfast.search.states.space import Action, Draft, Space, State
from holdfast.search.states.step_cache import LATE_MS

_BOUND = {name: place for place, name in enumerate(BUDGETED)}


class Moves:
    """Applies the actions of a space to its states."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.choices = Choices(space)
        self._brokers = range(1, space.count + 1)
        self._in_order = space.bounds.delays < ANY

    # Applying an action.

    def apply(self, state: State, action: Action) -> tuple[State, Violation | None]:
        """The next state, and the violation that the step itself caused, if any."""
        draft = Draft(state, self.space.count)
        _DO[action.kind](self, draft, action)
        if self._in_order:
            self._release_empty(draft)
        return draft.done(), draft.violation

    def _release_empty(self, draft: Draft) -> None:
        """Release held links that have no messages."""
        held = self.space.held(draft.budget)
        if held:
            busy = 0
            for place in self.space.wires.heads(draft.wires):
                busy |= 1 << place.link
            self.space.hold(draft, held & busy)

    def _deliver(self, draft: Draft, action: Action) -> None:
        """Deliver a message. If its link was held, the rest of that link flows again."""
        assert action.place is not None
        space = self.space
        space.hold(draft, space.held(draft.budget) & ~(1 << action.place.link))
        space.deliver(draft, action.place)

    def _hold(self, draft: Draft, action: Action) -> None:
        assert action.place is not None
        space = self.space
        space.spend(draft, _BOUND["delays"])
        space.hold(draft, space.held(draft.budget) | 1 << action.place.link)

    def _overtake(self, draft: Draft, action: Action) -> None:
        assert action.place is not None
        self.space.spend(draft, _BOUND["overtakings"])
        self.space.deliver(draft, action.place)

    def _lose(self, draft: Draft, action: Action) -> None:
        assert action.place is not None
        self.space.spend(draft, _BOUND["unheard" if action.kind == "unheard" else "losses"])
        draft.wires = self.space.wires.take(draft.wires, action.place)
        self.space.lose(draft, action.place.message)

    def _duplicate(self, draft: Draft, action: Action) -> None:
        assert action.place is not None
        self.space.spend(draft, _BOUND["duplicates"])
        draft.wires = self.space.wires.put(draft.wires, action.place.message)

    def _produce(self, draft: Draft, action: Action) -> None:
        self.space.spend(draft, _BOUND["records"])
        key = self.space.sent_record(draft)
        self.space.run_broker(draft, action.broker, ("produce", key), fetches=False)

    def _again(self, draft: Draft, action: Action) -> None:
        space = self.space
        if action.broker:
            space.run_broker(draft, action.broker, (f"again-{action.variant}",), fetches=True)
            return
        words = action.variant.split()
        unconfirmed = tuple(space.places[one] + 1 for one in words if one != LOG_ENDS)
        space.run_control(draft, ("again", unconfirmed, LOG_ENDS in words))

    def _tick(self, draft: Draft, action: Action) -> None:
        ahead_ms = LATE_MS
        if action.kind == "lag":
            self.space.spend(draft, _BOUND["lags"])
            ahead_ms = self.space.parts.lag_ms + 1
        self.space.run_broker(draft, action.broker, ("tick", ahead_ms), fetches=False)

    def _plain(self, draft: Draft, action: Action) -> None:
        bound = _PLAIN[action.kind]
        if bound:
            self.space.spend(draft, _BOUND[bound])
        self.space.run_broker(draft, action.broker, (action.kind,), fetches=False)

    def _end_process(self, draft: Draft, action: Action) -> None:
        space = self.space
        space.spend(draft, _BOUND[DEATHS[action.kind]])
        kept = action.variant == "kept"
        if kept:
            space.spend(draft, _BOUND["survivals"])
        was_alive = space.view(draft, action.broker).alive
        space.run_broker(draft, action.broker, (action.kind,), fetches=False)
        if not was_alive:
            return
        name = space.names[action.broker - 1]
        draft.wires = space.wires.without(draft.wires, name, keep_sent=kept)
        for other in self._brokers:
            if other != action.broker and space.view(draft, other).alive:
                space.run_broker(draft, other, ("peer-died", action.broker), fetches=False)

    def _restart(self, draft: Draft, action: Action) -> None:
        self.space.spend(draft, _BOUND["restarts"])
        self._register(draft, action, "start")

    def _rejoin(self, draft: Draft, action: Action) -> None:
        self._register(draft, action, "rejoin")

    def _register(self, draft: Draft, action: Action, given: str) -> None:
        if action.variant == "slow":
            self.space.spend(draft, _BOUND["slow_sessions"])
            draft.slow = True
        self.space.run_broker(draft, action.broker, (given,), fetches=False)

    def _expire(self, draft: Draft, action: Action) -> None:
        space = self.space
        disconnected = space.disconnected(draft.budget) == action.broker
        if space.view(draft, action.broker).alive and not disconnected:
            space.spend(draft, _BOUND["expiries"])
        space.run_control(draft, ("expire", space.names[action.broker - 1]))

    def _elect(self, draft: Draft, action: Action) -> None:
        self.space.spend(draft, _BOUND["elections"])
        self.space.run_control(draft, ("elect", action.broker))

    def _lower(self, draft: Draft, _action: Action) -> None:
        self.space.spend(draft, _BOUND["lowerings"])
        self.space.run_control(draft, ("lower",))

    def _answer(self, draft: Draft, _action: Action) -> None:
        self.space.run_control(draft, ("answer",))

    def _failover(self, draft: Draft, _action: Action) -> None:
        space = self.space
        space.spend(draft, _BOUND["failovers"])
        before = space.controller_name(draft.control)
        draft.wires = space.wires.without(draft.wires, before, keep_sent=True)
        space.run_control(draft, ("failover",))

    def _disconnect(self, draft: Draft, action: Action) -> None:
        space = self.space
        space.spend(draft, _BOUND["partitions"])
        space.disconnect(draft, action.broker)
        name = space.names[action.broker - 1]
        gone = [
            place.message
            for place in space.wires.all(draft.wires)
            if name in space.parts.messages[place.message][:2]
        ]
        draft.wires = space.wires.without(draft.wires, name, keep_sent=False)
        for message in gone:
            space.lose(draft, message)

    def _read(self, draft: Draft, action: Action) -> None:
        self.space.read(draft, action.broker)

    def _reconnect(self, draft: Draft, _action: Action) -> None:
        self.space.disconnect(draft, 0)


_PLAIN = {
    "shutdown": "shutdowns",
    "flush": "flushes",
    "fail-disk": "disk_errors",
    "lose-disk": "disk_losses",
    "lose-epochs": "epoch_losses",
    "expand": "",
}

_DO = {
    "deliver": Moves._deliver,
    "hold": Moves._hold,
    "overtake": Moves._overtake,
    "lose": Moves._lose,
    "unheard": Moves._lose,
    "duplicate": Moves._duplicate,
    "produce": Moves._produce,
    "again": Moves._again,
    "tick": Moves._tick,
    "lag": Moves._tick,
    "crash": Moves._end_process,
    "power": Moves._end_process,
    "stop": Moves._end_process,
    "restart": Moves._restart,
    "rejoin": Moves._rejoin,
    "expire": Moves._expire,
    "elect": Moves._elect,
    "lower": Moves._lower,
    "answer": Moves._answer,
    "failover": Moves._failover,
    "cut": Moves._disconnect,
    "heal": Moves._reconnect,
    "read": Moves._read,
    **dict.fromkeys(_PLAIN, Moves._plain),
}

KINDS = tuple(_DO)
"""Every kind of action."""
