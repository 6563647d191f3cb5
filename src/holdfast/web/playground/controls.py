"""What one can do at a moment of a case: a button for each command that makes sense there.

The page only shows the buttons. Which ones there are, and the command of each, is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.core import Leader
from holdfast.lab import HANDLERS, Stage
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.world import World
from holdfast.web.playground.in_flight import content_of

Button = dict[str, Any]


def controls_of(stage: Stage) -> dict[str, Any]:
    """The messages in flight, the brokers, and everything that can be done to them."""
    world = stage.world
    return {
        "now": world.now_ms,
        "messages": [_message(world, place) for place in range(len(world.network.pending))],
        "brokers": [_broker(world, one) for one in world.brokers.values()],
        "controller": _controller(world),
        "cluster": list(_cluster(world)),
    }


def _button(label: str, command: str, hint: str = "", *, rare: bool = False) -> Button:
    """A button; a `rare` one is folded away."""
    meaning = HANDLERS[command.split(maxsplit=1)[0]].meaning
    return {"label": label, "command": command, "hint": hint or meaning, "rare": rare}


def _message(world: World, place: int) -> dict[str, Any]:
    envelope = world.network.pending[place]
    link = f"{envelope.source}->{envelope.target}"
    ends = (envelope.source, envelope.target)
    earlier = [one for one in world.network.pending[:place] if (one.source, one.target) == ends]
    words = f"{_written(world, envelope.source)}->{_written(world, envelope.target)}"
    if len(world.network.between(*ends)) > 1:
        words += f" place={len(earlier) + 1}"
    return {
        "link": link.replace("->", " → "),
        "what": content_of(envelope, world),
        "deliver": f"deliver {words}",
        "drop": f"drop {words}",
        "duplicate": f"duplicate {words}",
    }


def _written(world: World, name: str) -> str:
    """A node's name in a command: the newest controller is just `controller`."""
    return "controller" if name == world.controller_name else name


def _broker(world: World, broker: SimBroker) -> dict[str, Any]:
    return {
        "name": broker.name,
        "state": _state(world, broker),
        "alive": broker.alive,
        "buttons": list(_of_living(world, broker) if broker.alive else _of_dead(world, broker)),
    }


def _state(world: World, broker: SimBroker) -> str:
    if not broker.alive:
        return "down"
    if broker.paused:
        return "paused"
    role = type(broker.replica.role).__name__.lower()
    stored = world.partition_state()
    if role == "leader" and stored.leader != broker.id:
        return "believes that it leads"
    return f"{role}, in sync" if broker.id in stored.isr else f"{role}, not in sync"


def _of_living(world: World, broker: SimBroker) -> Iterator[Button]:
    name = broker.name
    if isinstance(broker.replica.role, Leader) and not broker.paused:
        yield from _of_clients(world, name)
    yield _button("Kill", f"crash {name}", "The process dies. What it wrote stays.")
    hint = "The machine loses power, and everything that is not on its disk."
    yield _button("Lose power", f"crash {name} keep=flushed", hint)
    hint = f"Disconnect {name} from every other broker and the controller."
    yield _button("Disconnect", f"cut {name}", hint)
    if broker.paused:
        yield _button("Resume", f"resume {name}")
    else:
        yield _button("Pause", f"pause {name}", rare=True)
    if broker.id in world.store.sessions:
        yield _button("Expire session", f"expire {name}", rare=True)
    else:
        yield _button("Register again", f"rejoin {name}")
    yield _button("Flush", f"flush {name}", rare=True)
    if broker.disk.fails or broker.disk.unreadable:
        yield _button("Mend the disk", f"disk {name} works", "The disk works again.")
    else:
        yield _button("Stop cleanly", f"stop {name}", rare=True)
        hint = "Every write fails from now on."
        yield _button("Break the disk", f"disk {name} fails", hint, rare=True)


def _of_clients(world: World, name: str) -> Iterator[Button]:
    label = _next_label(world)
    for acks in ("all", "1", "0"):
        hint = f"A producer sends the record {label} to {name} with acks={acks}."
        command = f"produce {name} acks={acks}\n  {label}"
        yield _button(f"Send {label}, acks={acks}", command, hint, rare=acks != "all")
    hint = f"A consumer polls {name} once."
    yield _button("Read", f"consume reader from={name}", hint, rare=True)


def _of_dead(world: World, broker: SimBroker) -> Iterator[Button]:
    name = broker.name
    yield _button("Restart", f"restart {name}")
    if broker.id in world.store.sessions:
        yield _button("Expire session", f"expire {name}")
    yield _button("Lose power too", f"power-loss {name}", rare=True)
    yield _button("Lose the disk", f"lose-disk {name}", rare=True)


def _next_label(world: World) -> str:
    taken = {one.label: None for one in world.history.acknowledgements.values()}
    free = (f"m{number}" for number in range(len(taken) + 1))
    return next(label for label in free if label not in taken)


def _controller(world: World) -> dict[str, Any]:
    controller = world.controller
    state = "running" if controller.alive else "down"
    return {
        "name": "controller",
        "state": "paused" if controller.alive and controller.paused else state,
        "alive": controller.alive,
        "buttons": list(_of_controller(world)),
    }


def _of_controller(world: World) -> Iterator[Button]:
    controller = world.controller
    if not controller.alive:
        yield _button("Elect another controller", "elect-controller")
        return
    yield _button("Elect preferred", "elect preferred", "Elect the preferred leader, if it can be.")
    yield _button("Elect unclean", "elect unclean", "Elect a leader that may lack records.")
    if controller.paused:
        yield _button("Resume", "resume controller")
    else:
        yield _button("Pause", "pause controller", rare=True)
    yield _button("Kill", "crash controller", "The controller dies.", rare=True)
    yield _button("Elect another", "elect-controller", rare=True)


def _cluster(world: World) -> Sequence[Button]:
    """What concerns no single node."""
    buttons = [
        _button("Deliver everything", "settle"),
        _button("500 ms pass", "wait 500"),
        _button("30 s pass, messages arrive", "run 30000"),
    ]
    if world.network.disconnected:
        buttons.append(_button("Reconnect all", "heal"))
    return buttons
