"""Small worlds for the tests of the lab's simulated parts."""

from __future__ import annotations

from typing import Any

from holdfast.core import SAFE_RULES, Rules, Settings
from holdfast.lab.judge.verdict import Verdict, judge
from holdfast.lab.world.client_history import Acknowledgement
from holdfast.lab.world.clients import SimConsumer, SimProducer
from holdfast.lab.world.messages import Batch, Record
from holdfast.lab.world.world import World
from holdfast.model import BatchHeader, LeaderEpoch, Offset, TraceEvent


def batch(base: int, *labels: str, epoch: int = 0) -> Batch:
    """A batch as a disk holds it; a record's key is its offset."""
    header = BatchHeader(len(labels), LeaderEpoch(epoch), Offset(base))
    return Batch(header, tuple(Record(label, base + at) for at, label in enumerate(labels)))


def world_of(names: str = "AB", *, rules: Rules = SAFE_RULES, **settings: Any) -> World:
    """A cluster whose brokers have one-letter names; the first one leads."""
    return World(tuple(names), Settings(**settings), rules)


def producer_of(world: World, name: str = "p", **habits: Any) -> SimProducer:
    producer = SimProducer(world, name, **habits)
    world.clients[name] = producer
    return producer


def consumer_of(world: World, name: str = "c", **habits: Any) -> SimConsumer:
    consumer = SimConsumer(world, name, **habits)
    world.clients[name] = consumer
    return consumer


def kinds(world: World, *wanted: str) -> list[TraceEvent]:
    """The events of these kinds, in order."""
    return [event for event in world.recorder.events if event.kind in wanted]


def acknowledgement(world: World, label: str) -> Acknowledgement:
    return next(one for one in world.history.acknowledgements.values() if one.label == label)


def labels(world: World, name: str) -> list[str]:
    """What a broker's disk holds."""
    return [record.label for _, _, record in world.brokers[name].disk.records()]


def crash(world: World, name: str) -> None:
    """Crash a broker, and expire its session."""
    world.brokers[name].die()
    world.break_connections(name)
    world.expire_session(name)


def lose_power(world: World, name: str, torn: int = 0) -> list[str]:
    """A broker loses power; returns the records that its page cache lost."""
    crash(world, name)
    gone = world.brokers[name].disk.lose_power(torn)
    if gone:
        world.invariants.lost_records(name, "lost power")
    return [record.label for record in gone]


def verdict_of(world: World) -> Verdict:
    return judge(world)
