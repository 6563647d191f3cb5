"""Commands that create the cluster, elect leaders, and hold messages back."""

from __future__ import annotations

from holdfast.lab.scenarios.commands.registry import (
    CommandError,
    Stage,
    command,
    names_in,
    need,
    number,
)
from holdfast.lab.scenarios.options import build
from holdfast.lab.scenarios.scenario import Command
from holdfast.lab.world.controller import SimController
from holdfast.lab.world.world import World
from holdfast.model import BrokerId


@command("cluster brokers=(A,B,…) [leader=A] [isr=(A,B)] [setting=value …]")
def cluster(stage: Stage, given: Command) -> None:
    """Start a cluster: every broker knows the leader, no follower has fetched yet."""
    need(given.words, 0, "cluster brokers=(A,B,…) [setting=value …]")
    if stage.world_or_none:
        raise CommandError("there is a cluster already", "a scenario has one cluster")
    options = dict(given.options)
    names = [stage.new_name(one) for one in names_in(options.pop("brokers", ""))]
    if not names or len(dict.fromkeys(names)) != len(names):
        raise CommandError("brokers=(A,B,…) must name each broker once")
    isr = names_in(options.pop("isr", "")) or names
    leader = options.pop("leader", names[0])
    for one in (*isr, leader):
        if one not in names:
            raise CommandError(f"{one!r} is not one of the brokers")
    if leader not in isr:
        raise CommandError(f"the leader {leader!r} must be in the ISR")
    settings, rules = build({**options, **stage.variant, **stage.overrides}, len(names))
    stage.world_or_none = World(names, settings, rules, isr=isr, leader=leader)


@command("elect BROKER | preferred | unclean")
def elect(stage: Stage, given: Command) -> None:
    """An operator triggers a leader election."""
    (who,) = need(given.words, 1)
    world = stage.world
    core = _controller(stage).core
    if who == "unclean":
        world.controller.run(core.elect(world.partition, unclean=True))
    elif who == "preferred":
        world.controller.run(core.elect(world.partition))
    else:
        world.controller.run(core.elect(world.partition, stage.broker(who).id))


@command("alter min_insync_replicas=N")
def alter(stage: Stage, given: Command) -> None:
    """An operator lowers min.insync.replicas of the topic (AlterConfigs)."""
    need(given.words, 0, "alter min_insync_replicas=N")
    least = number(given.options.get("min_insync_replicas", ""), "min_insync_replicas")
    controller = _controller(stage)
    if controller.core.settings_change is not None:
        raise CommandError("a change of settings is in progress", "'release settings' first")
    known = stage.world.store.settings.min_insync_replicas
    if not 1 <= least < known:
        # A higher one begins with a leader epoch before which its leader reads the settings from
        # the store; brokers of the lab do not read the store.
        raise CommandError(f"it must be from 1 to {known - 1}", "the lab only lowers it")
    controller.alter_minimum(least)


@command("reassign BROKER BROKER …")
def reassign(stage: Stage, given: Command) -> None:
    """An operator moves the partition to these brokers."""
    target: tuple[BrokerId, ...] = tuple(stage.broker(name).id for name in given.words)
    if not target:
        raise CommandError("no brokers named")
    controller = _controller(stage)
    controller.run(controller.core.reassign(stage.world.partition, target))


def _controller(stage: Stage) -> SimController:
    controller = stage.world.controller
    if not controller.alive:
        raise CommandError("no controller is running", "write 'elect-controller' first")
    return controller


@command("expire BROKER …")
def expire(stage: Stage, given: Command) -> None:
    """The store ends a broker's session; the controller acts on it."""
    for name in given.words:
        stage.broker(name)
        stage.world.expire_session(name)


@command("rejoin BROKER …")
def rejoin(stage: Stage, given: Command) -> None:
    """A running broker notices that its session is gone, and registers again."""
    for name in given.words:
        stage.living(name).session_lost()


@command("elect-controller")
def elect_controller(stage: Stage, given: Command) -> None:
    """Another controller is elected and takes over."""
    need(given.words, 0)
    stage.world.new_controller()


@command("hold store | settings | expansions BROKER | flushes BROKER | registrations BROKER | NODE")
def hold(stage: Stage, given: Command) -> None:
    """Hold back the controller's writes, the store's answers to changes of settings, a leader's
    expansions, flushes that a rule asks for (they take until `flush` or `release`), registrations,
    or a client.
    """
    match given.words:
        case ("store",):
            controller = stage.world.controller
            controller.held_writes = controller.held_writes or []
        case ("expansions", name):
            stage.broker(name).holds_expansions = True
        case ("flushes", name):
            stage.broker(name).holds_flushes = True
        case ("registrations", name):
            stage.world.slow_sessions[stage.broker(name).name] = None
        case ("settings",):
            stage.world.holds_settings = True
        case (name,):
            stage.world.held[stage.node(name)] = None
        case _:
            raise CommandError("hold what?")


@command(
    "release store | settings | expansions BROKER | flushes BROKER | registrations BROKER | NODE"
)
def release(stage: Stage, given: Command) -> None:
    """Release what `hold` holds back."""
    match given.words:
        case ("store",):
            for controller in stage.world.controllers:
                held = controller.held_writes is not None
                if held and not controller.release_writes():
                    stage.said.append(f"store: refuses the write of {controller.name}")
        case ("expansions", name):
            stage.broker(name).release_expansions()
        case ("flushes", name):
            stage.broker(name).release_flushes()
        case ("registrations", name):
            stage.world.slow_sessions.pop(stage.broker(name).name, None)
        case ("settings",):
            stage.world.release_settings()
        case (name,):
            stage.world.held.pop(stage.node(name), None)
        case _:
            raise CommandError("release what?")
