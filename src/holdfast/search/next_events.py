"""The actions that are possible in a state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.core import ReadRule
from holdfast.lab.world.messages import StateMessage
from holdfast.model import NO_BROKER_EPOCH
from holdfast.search.bounds import ANY
from holdfast.search.states.component_views import BrokerView, ControlView
from holdfast.search.states.messages_in_flight import Place
from holdfast.search.states.space import Action, Space, State

DEATHS = {"crash": "crashes", "power": "power_losses", "stop": "stops"}
"""The ways in which a broker process ends, each with its bound."""


_KEEP_ANY = frozenset(("delays", "losses", "duplicates"))
_KEEP_FROM_FLOWING = _KEEP_ANY | {"unheard"}
"""Bounds whose faults can stop the next message from arriving."""


LOG_ENDS = "log-ends"
"""The repeated request for log end offsets, among what a controller can send again."""


class Situation(NamedTuple):
    """A state, in the form that `Choices` reads."""

    views: list[BrokerView]
    control: ControlView
    wires: int
    may: frozenset[str]
    """Bounds that are not used up."""
    disconnected: int
    """The disconnected broker; 0: none."""
    held: int
    """Held links, one bit each."""


class Choices:
    """Lists the possible actions in the states of a space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        bounds = space.bounds
        self._in_order = bounds.delays < ANY
        self._any_message = not self._in_order and (
            bounds.losses + bounds.unheard + bounds.duplicates > 0
        )
        self._overtakes = bounds.overtakings > 0
        self._reads = bounds.readers > 0
        self._reads_any = space.settings.read_rule is ReadRule.ANY_REPLICA

    def situation(self, state: State) -> Situation:
        """The components behind a state's numbers."""
        space = self.space
        control, wires, _, budget = state[space.count :]
        views = space.parts.broker_views
        return Situation(
            [views[one] for one in state[: space.count]],
            space.parts.control_views[control],
            wires,
            space.left(budget),
            space.disconnected(budget),
            space.held(budget),
        )

    def only_flow(self, state: State) -> Action | None:
        """The delivery of a message, if nothing else can happen before it."""
        if not self._in_order:
            return None
        space = self.space
        _, wires, _, budget = state[space.count :]
        held = space.held(budget)
        for place in space.wires.heads(wires):
            if not held >> place.link & 1:
                may = space.left(budget)
                free = may.isdisjoint(_KEEP_FROM_FLOWING)
                sure = free or not (may & _KEEP_ANY or self._is_command(place))
                return Action("deliver", place=place) if sure else None
        return None

    def actions(self, state: State) -> Iterator[Action]:
        """All possible actions."""
        now = self.situation(state)
        heads = self.space.wires.heads(now.wires)
        if self._in_order:
            flowing = next((one for one in heads if not now.held >> one.link & 1), None)
            if flowing is not None:
                yield from self._flow(flowing, now)
                return
        for place in heads:
            yield Action("deliver", place=place)
        for broker, view in enumerate(now.views, 1):
            if view.alive:
                yield from self._living(broker, view, now)
            else:
                yield from self._dead(broker, view, now)
            yield from self._sessions(broker, view, now)
        yield from self._cluster(now)
        if self._any_message or self._overtakes:
            yield from self._messages(now)

    def _living(self, broker: int, view: BrokerView, now: Situation) -> Iterator[Action]:
        may = now.may
        if view.leads:
            yield from self._leading(broker, view, now)
        if view.can_fetch and self._reaches(broker, view, now):
            yield Action("again", broker, variant="fetch")
        for death, bound in DEATHS.items():
            if bound in may and (death != "stop" or view.disk_works):
                yield Action(death, broker)
                if death != "stop" and "survivals" in may:
                    yield Action(death, broker, variant="kept")
        if "shutdowns" in may and view.broker_epoch != NO_BROKER_EPOCH:
            yield Action("shutdown", broker)
        if self._reads and (view.leads or self._reads_any):
            yield Action("read", broker)
        if view.unflushed and "flushes" in may:
            yield Action("flush", broker)
        if view.disk_works and "disk_errors" in may:
            yield Action("fail-disk", broker)

    def _reaches(self, broker: int, view: BrokerView, now: Situation) -> bool:
        """Whether a fetch arrives; a fetch that is lost immediately changes nothing."""
        return now.disconnected not in (broker, view.follows) and now.views[view.follows - 1].alive

    def _leading(self, broker: int, view: BrokerView, now: Situation) -> Iterator[Action]:
        if "records" in now.may:
            yield Action("produce", broker)
        has_updates = any(_has_updates(view, now.views[one - 1]) for one in view.parked)
        if has_updates or not view.rested:
            yield Action("tick", broker)
        if view.lagging and "lags" in now.may:
            yield Action("lag", broker)
        if view.candidates:
            yield Action("expand", broker)
        if view.proposal and now.disconnected != broker:
            name, controller = f"b{broker}", f"controller-{now.control.controller_epoch}"
            kinds = self.space.wires.kinds(now.wires)
            asked = ("AlterRequest", name, controller) in kinds
            if not asked and ("AlterResponse", controller, name) not in kinds:
                yield Action("again", broker, variant="proposal")

    def _dead(self, broker: int, view: BrokerView, now: Situation) -> Iterator[Action]:
        may = now.may
        if "restarts" in may:
            yield Action("restart", broker)
            if "slow_sessions" in may:
                yield Action("restart", broker, variant="slow")
        if view.unflushed and "power_losses" in may:
            yield Action("power", broker)
        if view.keys and "disk_losses" in may:
            yield Action("lose-disk", broker)
        if view.has_epochs and "epoch_losses" in may:
            yield Action("lose-epochs", broker)

    def _sessions(self, broker: int, view: BrokerView, now: Situation) -> Iterator[Action]:
        disconnected = now.disconnected == broker
        session = now.control.sessions.get(broker)
        if session is not None and (not view.alive or disconnected or "expiries" in now.may):
            yield Action("expire", broker)
        known = view.broker_epoch
        slow = "slow_sessions" in now.may
        if view.alive and not disconnected and known not in (NO_BROKER_EPOCH, session):
            yield Action("rejoin", broker)
            if slow:
                yield Action("rejoin", broker, variant="slow")
        elif view.alive and slow and known == session:
            # Its connection to the store broke, and it notices that before the store does.
            yield Action("rejoin", broker, variant="slow")

    def _cluster(self, now: Situation) -> Iterator[Action]:
        control = now.control
        if "elections" in now.may:
            for broker in control.isr:
                if broker != control.leader and broker in control.sessions:
                    yield Action("elect", broker)
        if control.awaits_settings:
            yield Action("answer")
        elif "lowerings" in now.may and control.minimum > 1:
            yield Action("lower")
        if "failovers" in now.may:
            yield Action("failover")
        yield from self._partitions(now)
        again = [self.space.names[one - 1] for one in self._unconfirmed(now)]
        if self._is_unasked(now):
            again.append(LOG_ENDS)
        if again:
            yield Action("again", variant=" ".join(again))

    def _partitions(self, now: Situation) -> Iterator[Action]:
        if now.disconnected:
            yield Action("heal")
        elif "partitions" in now.may:
            for broker, view in enumerate(now.views, 1):
                if view.alive:
                    yield Action("cut", broker)

    def _unconfirmed(self, now: Situation) -> tuple[int, ...]:
        """Brokers that have not confirmed a LeaderAndIsr request that is no longer in flight."""
        control = now.control
        if not control.unconfirmed:
            return ()
        kinds = self.space.wires.kinds(now.wires)
        controller = f"controller-{control.controller_epoch}"
        return tuple(
            one
            for one in control.unconfirmed
            if one != now.disconnected
            and now.views[one - 1].alive
            and now.views[one - 1].broker_epoch == control.sessions.get(one)
            and ("StateMessage", controller, f"b{one}") not in kinds
        )

    def _is_unasked(self, now: Situation) -> bool:
        """Whether the controller waits for a log end offset that no message in flight can bring."""
        if not now.control.asked:
            return False
        kinds = {kind for kind, _, _ in self.space.wires.kinds(now.wires)}
        return not kinds & {"LogEndRequest", "LogEndResponse"}

    def _flow(self, place: Place, now: Situation) -> Iterator[Action]:
        """The next message arrives, or a fault prevents that."""
        yield Action("deliver", place=place)
        if "delays" in now.may:
            yield Action("hold", place=place)
        if "losses" in now.may:
            yield Action("lose", place=place)
        if "unheard" in now.may and self._is_command(place):
            yield Action("unheard", place=place)
        if "duplicates" in now.may:
            yield Action("duplicate", place=place)

    def _is_command(self, place: Place) -> bool:
        return isinstance(self.space.parts.messages[place.message].payload, StateMessage)

    def _messages(self, now: Situation) -> Iterator[Action]:
        for place in self.space.wires.all(now.wires):
            if self._any_message and "losses" in now.may:
                yield Action("lose", place=place)
            if self._any_message and "unheard" in now.may and self._is_command(place):
                yield Action("unheard", place=place)
            if self._any_message and "duplicates" in now.may:
                yield Action("duplicate", place=place)
            if place.position and "overtakings" in now.may:
                yield Action("overtake", place=place)


def _has_updates(leader: BrokerView, follower: BrokerView) -> bool:
    """Whether a response without records would raise the follower's high watermark."""
    known = follower.high_watermark
    return follower.alive and known < min(leader.high_watermark, len(follower.keys))
