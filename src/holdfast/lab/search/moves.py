"""What can happen next in a state, and what it leads to. One method a kind of action."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.lab.search.bounds import ANY, BUDGETED
from holdfast.lab.search.facts import Violation
from holdfast.lab.search.parts import LATE_MS, BrokerView, ControlView
from holdfast.lab.search.space import Action, Draft, Space, State
from holdfast.lab.search.wires import Place
from holdfast.model import NO_BROKER_EPOCH

_BOUND = {name: place for place, name in enumerate(BUDGETED)}
_DEATHS = {"crash": "crashes", "power": "power_losses", "stop": "stops"}


class Moves:
    """The actions of a space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        bounds = space.bounds
        self._brokers = range(1, space.count + 1)
        self._in_order = bounds.delays < ANY
        self._any_message = not self._in_order and bounds.losses + bounds.duplicates > 0
        self._overtakes = bounds.overtakings > 0

    # What can happen.

    def actions(self, state: State) -> Iterator[Action]:
        """Everything that can happen in a state."""
        space = self.space
        views = [space.parts.broker_views[one] for one in state[: space.count]]
        control = space.parts.control_views[state[space.count]]
        wires, budget = state[space.count + 1], state[space.count + 3]
        heads = space.wires.heads(wires)
        if self._in_order:
            held = space.held(budget)
            flowing = next((one for one in heads if not held >> one.link & 1), None)
            if flowing is not None:
                yield from self._flow(flowing, budget)
                return
        for place in heads:
            yield Action("deliver", place=place)
        for broker, view in enumerate(views, 1):
            if view.alive:
                yield from self._living(broker, view, views, control, wires, budget)
            else:
                yield from self._dead(broker, view, budget)
            yield from self._sessions(broker, view, control, budget)
        yield from self._cluster(views, control, wires, budget)
        if self._any_message or self._overtakes:
            yield from self._messages(wires, budget)

    def _may(self, budget: int, bound: str) -> bool:
        return self.space.may(budget, _BOUND[bound])

    def _living(
        self,
        broker: int,
        view: BrokerView,
        views: list[BrokerView],
        control: ControlView,
        wires: int,
        budget: int,
    ) -> Iterator[Action]:
        if view.leads:
            yield from self._leading(broker, view, views, control, wires, budget)
        if view.can_fetch:
            yield Action("again", broker, variant="fetch")
        for death, bound in _DEATHS.items():
            if self._may(budget, bound) and (death != "stop" or view.disk_works):
                yield Action(death, broker)
                if death != "stop" and self._may(budget, "survivals"):
                    yield Action(death, broker, variant="kept")
        if self._may(budget, "shutdowns") and view.broker_epoch != NO_BROKER_EPOCH:
            yield Action("shutdown", broker)
        if view.unflushed and self._may(budget, "flushes"):
            yield Action("flush", broker)
        if view.disk_works and self._may(budget, "disk_errors"):
            yield Action("fail-disk", broker)

    def _leading(
        self,
        broker: int,
        view: BrokerView,
        views: list[BrokerView],
        control: ControlView,
        wires: int,
        budget: int,
    ) -> Iterator[Action]:
        if self._may(budget, "records"):
            yield Action("produce", broker)
        news = any(_is_news(view, views[one - 1]) for one in view.parked)
        if news or not view.rested:
            yield Action("tick", broker)
        if view.lagging and self._may(budget, "lags"):
            yield Action("lag", broker)
        if view.candidates:
            yield Action("expand", broker)
        if view.proposal and self.space.cut_off(budget) != broker:
            name, controller = f"b{broker}", f"controller-{control.controller_epoch}"
            kinds = self.space.wires.kinds(wires)
            asked = ("AlterRequest", name, controller) in kinds
            if not asked and ("AlterResponse", controller, name) not in kinds:
                yield Action("again", broker, variant="proposal")

    def _dead(self, broker: int, view: BrokerView, budget: int) -> Iterator[Action]:
        if self._may(budget, "restarts"):
            yield Action("restart", broker)
            if self._may(budget, "slow_sessions"):
                yield Action("restart", broker, variant="slow")
        if view.unflushed and self._may(budget, "power_losses"):
            yield Action("power", broker)
        if view.keys and self._may(budget, "disk_losses"):
            yield Action("lose-disk", broker)
        if view.has_epochs and self._may(budget, "epoch_losses"):
            yield Action("lose-epochs", broker)

    def _sessions(
        self, broker: int, view: BrokerView, control: ControlView, budget: int
    ) -> Iterator[Action]:
        cut = self.space.cut_off(budget) == broker
        session = control.sessions.get(broker)
        if session is not None and (not view.alive or cut or self._may(budget, "expiries")):
            yield Action("expire", broker)
        known = view.broker_epoch
        if view.alive and not cut and known not in (NO_BROKER_EPOCH, session):
            yield Action("rejoin", broker)
            if self._may(budget, "slow_sessions"):
                yield Action("rejoin", broker, variant="slow")
        elif view.alive and known == session and self._may(budget, "slow_sessions"):
            # Its connection to the store broke, which it notices before the store does.
            yield Action("rejoin", broker, variant="slow")

    def _cluster(
        self, views: list[BrokerView], control: ControlView, wires: int, budget: int
    ) -> Iterator[Action]:
        space = self.space
        cut = space.cut_off(budget)
        if self._may(budget, "elections"):
            for broker in control.isr:
                if broker != control.leader and broker in control.sessions:
                    yield Action("elect", broker)
        if self._may(budget, "failovers"):
            yield Action("failover")
        if cut:
            yield Action("heal")
        elif self._may(budget, "partitions"):
            for broker, view in enumerate(views, 1):
                if view.alive:
                    yield Action("cut", broker)
        if self.untold(views, control, wires, cut) or self.unasked(control, wires):
            yield Action("again")

    def untold(
        self, views: list[BrokerView], control: ControlView, wires: int, cut: int
    ) -> tuple[int, ...]:
        """Brokers that have not confirmed a LeaderAndIsr, which is not on its way any more."""
        if not control.untold:
            return ()
        kinds = self.space.wires.kinds(wires)
        controller = f"controller-{control.controller_epoch}"
        return tuple(
            one
            for one in control.untold
            if one != cut
            and views[one - 1].alive
            and views[one - 1].broker_epoch == control.sessions.get(one)
            and ("StateMessage", controller, f"b{one}") not in kinds
        )

    def unasked(self, control: ControlView, wires: int) -> bool:
        """Whether the controller waits for the end of a log, and no message is on its way."""
        if not control.asked:
            return False
        kinds = {kind for kind, _, _ in self.space.wires.kinds(wires)}
        return not kinds & {"LogEndRequest", "LogEndResponse"}

    def _flow(self, place: Place, budget: int) -> Iterator[Action]:
        """The message whose turn it is: it arrives, or something keeps it from doing so."""
        yield Action("deliver", place=place)
        if self._may(budget, "delays"):
            yield Action("hold", place=place)
        if self._may(budget, "losses"):
            yield Action("lose", place=place)
        if self._may(budget, "duplicates"):
            yield Action("duplicate", place=place)

    def _messages(self, wires: int, budget: int) -> Iterator[Action]:
        for place in self.space.wires.all(wires):
            if self._any_message and self._may(budget, "losses"):
                yield Action("lose", place=place)
            if self._any_message and self._may(budget, "duplicates"):
                yield Action("duplicate", place=place)
            if place.position and self._may(budget, "overtakings"):
                yield Action("overtake", place=place)

    # What comes of it.

    def apply(self, state: State, action: Action) -> tuple[State, Violation | None]:
        """The next state; with a violation if the step itself was one."""
        draft = Draft(state, self.space.count)
        _DO[action.kind](self, draft, action)
        if self._in_order:
            self._release_empty(draft)
        return draft.done(), draft.violation

    def _release_empty(self, draft: Draft) -> None:
        """A link with nothing on it is not held back any more."""
        held = self.space.held(draft.budget)
        if held:
            busy = 0
            for place in self.space.wires.heads(draft.wires):
                busy |= 1 << place.link
            self.space.hold(draft, held & busy)

    def _deliver(self, draft: Draft, action: Action) -> None:
        """A message arrives; if its link was held back, the rest of it flows again."""
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
        self.space.spend(draft, _BOUND["losses"])
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
        views = [space.view(draft, one) for one in self._brokers]
        control = space.parts.control_views[draft.control]
        untold = self.untold(views, control, draft.wires, space.cut_off(draft.budget))
        space.run_control(draft, ("again", untold, self.unasked(control, draft.wires)))

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

    def _die(self, draft: Draft, action: Action) -> None:
        space = self.space
        space.spend(draft, _BOUND[_DEATHS[action.kind]])
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
        cut = space.cut_off(draft.budget) == action.broker
        if space.view(draft, action.broker).alive and not cut:
            space.spend(draft, _BOUND["expiries"])
        space.run_control(draft, ("expire", space.names[action.broker - 1]))

    def _elect(self, draft: Draft, action: Action) -> None:
        self.space.spend(draft, _BOUND["elections"])
        self.space.run_control(draft, ("elect", action.broker))

    def _failover(self, draft: Draft, _action: Action) -> None:
        space = self.space
        space.spend(draft, _BOUND["failovers"])
        before = space.controller_name(draft.control)
        draft.wires = space.wires.without(draft.wires, before, keep_sent=True)
        space.run_control(draft, ("failover",))

    def _cut(self, draft: Draft, action: Action) -> None:
        space = self.space
        space.spend(draft, _BOUND["partitions"])
        space.cut(draft, action.broker)
        name = space.names[action.broker - 1]
        gone = [
            place.message
            for place in space.wires.all(draft.wires)
            if name in space.parts.messages[place.message][:2]
        ]
        draft.wires = space.wires.without(draft.wires, name, keep_sent=False)
        for message in gone:
            space.lose(draft, message)

    def _heal(self, draft: Draft, _action: Action) -> None:
        self.space.cut(draft, 0)


def _is_news(leader: BrokerView, follower: BrokerView) -> bool:
    """Whether an answer without records would raise the follower's high watermark."""
    known = follower.high_watermark
    return follower.alive and known < min(leader.high_watermark, len(follower.keys))


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
    "duplicate": Moves._duplicate,
    "produce": Moves._produce,
    "again": Moves._again,
    "tick": Moves._tick,
    "lag": Moves._tick,
    "crash": Moves._die,
    "power": Moves._die,
    "stop": Moves._die,
    "restart": Moves._restart,
    "rejoin": Moves._rejoin,
    "expire": Moves._expire,
    "elect": Moves._elect,
    "failover": Moves._failover,
    "cut": Moves._cut,
    "heal": Moves._heal,
    **dict.fromkeys(_PLAIN, Moves._plain),
}
