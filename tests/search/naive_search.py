"""A slow and simple search that copies whole worlds for every step; it checks the fast search.

It shares with `search` only the question and the representation of a component (`frozen`). A step
is a call of the ordinary world, and every state is its own world.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.core import Leader
from holdfast.lab.scenarios.commands import Stage
from holdfast.lab.world.messages import (
    AlterRequest,
    AlterResponse,
    FetchRequest,
    FetchResponse,
    StateAnswer,
    StateMessage,
)
from holdfast.model import NO_BROKER_EPOCH
from holdfast.search import Question
from holdfast.search.bounds import BUDGETED
from holdfast.search.explore import Explorer
from holdfast.search.question import carry_out, opening
from holdfast.search.states.client_facts import Facts
from holdfast.search.states.frozen import frozen_broker, frozen_control
from holdfast.search.states.space import State

Value = Any
Used = Counter[str]
Move = tuple[str, Callable[[Stage], None]]


def naive_values(question: Question) -> set[Value]:
    """All states within the bounds, as values."""
    first = opening(question)
    tidied(first)
    seen = {value_of_world(first, Counter())}
    level: list[tuple[Stage, Used]] = [(first, Counter())]
    while level:
        following: list[tuple[Stage, Used]] = []
        for stage, used in level:
            for bound, act in moves(stage, used, question):
                after = copy.deepcopy(stage)
                act(after)
                tidied(after)
                now = used + Counter([bound]) if bound else used
                value = value_of_world(after, now)
                if value not in seen:
                    seen.add(value)
                    following.append((after, now))
        level = following
    return seen


def quick_values(explorer: Explorer) -> set[Value]:
    """The same values from a finished fast search."""
    return {value_of_state(explorer, state) for state in explorer.states}


def moves(stage: Stage, used: Used, question: Question) -> Iterator[Move]:
    """The possible moves: the bound that each uses (or none), and a function that makes it."""
    world = stage.world
    left = {name: count - used[name] for name, count in question.bounds.to_dict().items()}
    links = dict.fromkeys((one.source, one.target) for one in world.network.pending)
    for source, target in links:
        yield "", _command(f"deliver {source}->{target} first=1")
    state = world.partition_state()
    for name, broker in world.brokers.items():
        if not broker.alive:
            if left["restarts"]:
                yield "restarts", _command(f"restart {name}")
            if broker.id in world.store.sessions:
                yield "", _command(f"expire {name}")
            continue
        yield from _living(stage, name, left)
        elected = broker.id == state.leader or broker.id not in world.store.sessions
        if left["elections"] and broker.id in state.isr and not elected:
            yield "elections", _command(f"elect {name}")
    unconfirmed = _unconfirmed(stage)
    if unconfirmed:
        yield "", _command(f"again controller {' '.join(unconfirmed)}")


def _living(stage: Stage, name: str, left: dict[str, int]) -> Iterator[Move]:
    world, broker = stage.world, stage.world.brokers[name]
    role = broker.replica.role
    session = world.store.sessions.get(broker.id)
    if left["crashes"]:
        yield "crashes", _command(f"crash {name}")
    known = session.broker_epoch if session else NO_BROKER_EPOCH
    if broker.incarnation.broker_epoch not in (known, NO_BROKER_EPOCH):
        yield "", _command(f"rejoin {name}")
    asks = broker.replica.next_fetch()
    if asks and not broker.outstanding and world.brokers[world.name_of(asks.leader)].alive:
        yield "", _command(f"again {name} fetch")
    if isinstance(role, Leader):
        if left["records"]:
            label = f"r{len(world.history.acknowledgements)}"
            yield "records", _command(f"produce {name} acks=all\n  {label}")
        if not role.insync.expand_rested or _has_updates(stage, name):
            yield "", _command(f"tick {name} 500")
        ends = [(type(one.payload), one.source, one.target) for one in world.network.pending]
        controller = world.controller_name
        asked = (AlterRequest, name, controller) in ends
        if role.insync.proposal and not asked and (AlterResponse, controller, name) not in ends:
            yield "", _command(f"again {name} proposal")


def _has_updates(stage: Stage, name: str) -> bool:
    world, leader = stage.world, stage.world.brokers[name]
    for one in leader.parked:
        follower = world.brokers[world.name_of(one)]
        expected = min(leader.replica.log.high_watermark, follower.disk.end_offset)
        if follower.alive and follower.replica.log.high_watermark < expected:
            return True
    return False


def _unconfirmed(stage: Stage) -> list[str]:
    world = stage.world
    found: list[str] = []
    for one in world.controller.unconfirmed:
        broker = world.brokers[world.name_of(one)]
        session = world.store.sessions.get(one)
        known = session is not None and broker.incarnation.broker_epoch == session.broker_epoch
        on_its_way = any(
            isinstance(message.payload, StateMessage)
            for message in world.network.between(world.controller_name, broker.name)
        )
        if broker.alive and known and not on_its_way:
            found.append(broker.name)
    return found


def _command(text: str) -> Callable[[Stage], None]:
    return lambda stage: carry_out(stage, text)


def tidied(stage: Stage) -> None:
    """Do what a search does immediately, and discard what a state does not keep."""
    world = stage.world
    for one in list(world.network.pending):
        target = world.brokers.get(one.target)
        if isinstance(one.payload, StateAnswer):
            world.deliver(one)
        elif target is not None and not target.alive and world.network.take(one):
            world.lose(one)
    world._timers.clear()
    world.recorder.events.clear()
    for broker in world.brokers.values():
        broker.newest_fetch.clear()


# Values.


def value_of_world(stage: Stage, used: Used) -> Value:
    world = stage.world
    links: dict[tuple[str, str], list[Any]] = {}
    for one in world.network.pending:
        payload = one.payload
        if isinstance(payload, FetchResponse):
            payload = payload._replace(answer=payload.answer._replace(effects=()))
        links.setdefault((one.source, one.target), []).append(payload)
    return _value(
        [frozen_broker(broker) for broker in world.brokers.values()],
        frozen_control(world.controller, world.store),
        links,
        Facts.of(world),
        {name: count for name, count in used.items() if count},
    )


def used_by(explorer: Explorer, state: State) -> dict[str, int]:
    """The part of each bound that the path to a state has used."""
    counts = zip(BUDGETED, explorer.space.budgets[state[-1]], strict=False)
    return {name: count for name, count in counts if count}


def value_of_state(explorer: Explorer, state: State) -> Value:
    space = explorer.space
    control, wires, facts, _ = state[space.count :]
    links: dict[tuple[str, str], list[Any]] = {}
    for source, target, payload in space.wires.messages(wires):
        links.setdefault((source, target), []).append(payload)
    brokers = [space.parts.broker(one) for one in state[: space.count]]
    for broker in brokers:
        broker.newest_fetch.clear()
    return _value(
        [frozen_broker(broker) for broker in brokers],
        frozen_control(*space.parts.control(control)),
        links,
        space.ledgers[facts],
        used_by(explorer, state),
    )


def _value(
    brokers: list[Any], control: Any, links: dict[Any, Any], facts: Facts, used: dict[str, int]
) -> Value:
    """Fetches are renumbered in the order of appearance: only which ones are equal matters."""
    numbers: dict[tuple[int, int], int] = {}

    def renumbered(value: Any, follower: int = 0) -> Any:
        if isinstance(value, FetchRequest | FetchResponse):
            asker = value.follower if isinstance(value, FetchRequest) else follower
            number = numbers.setdefault((asker, value.number), len(numbers))
            return value._replace(number=number)
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return tuple(renumbered(one, follower) for one in value)
        return value

    return (
        tuple(renumbered(one) for one in brokers),
        control,
        tuple(
            (ends, tuple(renumbered(one, int(ends[1][1:])) for one in messages))
            for ends, messages in sorted(links.items())
            if ends[1].startswith("b")
        ),
        tuple(sorted((ends, tuple(one)) for ends, one in links.items() if ends[1][0] != "b")),
        facts,
        tuple(sorted(used.items())),
    )
