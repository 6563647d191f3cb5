"""Checks that the cluster comes to rest in bounded time after all faults end.

For a state that a search has visited: the path to it is played in the ordinary world, and then all
faults end, as in seeded runs.
"""

from __future__ import annotations

from holdfast.lab.world.world import World
from holdfast.model import NO_BROKER_EPOCH
from holdfast.search.question import Question
from holdfast.search.scenario.script import Script
from holdfast.search.walk import Event

REST_MS = 60_000
_LOOK_EVERY_MS = 500


def comes_to_rest(question: Question, path: tuple[Event, ...]) -> bool:
    """Whether the cluster recovers after these events."""
    script = Script(question)
    script.play(path)
    world = script.stage.world
    for event in path:
        if event.kind == "shutdown":
            _leave(world, f"b{event.broker}")
    end_faults(world)
    for _ in range(REST_MS // _LOOK_EVERY_MS):
        _heartbeats(world)
        world.advance(_LOOK_EVERY_MS, flowing=True)
        if world.is_at_rest():
            return True
    return False


def _leave(world: World, name: str) -> None:
    """A broker that asked for a controlled shutdown stops; only then may it join an ISR again."""
    broker = world.brokers[name]
    if not broker.alive:
        return
    if broker.disk.fails:
        broker.die()
    else:
        broker.stop()
    world.break_connections(name)


def end_faults(world: World) -> None:
    """End all faults: reconnect links, repair disks, restart brokers, release what is held."""
    world.network.reconnect()
    world.held.clear()
    world.slow_sessions.clear()
    world.release_settings()
    if not world.controller.alive:
        world.new_controller()
    for broker in world.brokers.values():
        disk = broker.disk
        if broker.alive and (broker.replica.has_failed or disk.forgets_writes):
            broker.die()
            world.break_connections(broker.name)
        disk.fails = disk.unreadable = ""
        disk.forgets_writes = False
        if not broker.alive:
            broker.start()
        broker.release_expansions()
        broker.release_flushes()
    world.pump()


def _heartbeats(world: World) -> None:
    """A broker whose session ended registers again."""
    for broker in world.brokers.values():
        session = world.store.sessions.get(broker.id)
        known = session.broker_epoch if session else NO_BROKER_EPOCH
        if broker.incarnation.broker_epoch not in (known, NO_BROKER_EPOCH):
            broker.session_lost()
        else:
            broker.register_if_needed()
    world.pump()
