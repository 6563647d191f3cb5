"""Commands that deliver, drop and duplicate messages, let time pass, and break links."""

from __future__ import annotations

from holdfast.core import Leader
from holdfast.lab.scenarios.commands.registry import CommandError, Stage, command, need, number
from holdfast.lab.scenarios.scenario import Command
from holdfast.lab.world.messages import Envelope, StateMessage
from holdfast.model import NO_BROKER

LONGEST_MS = 600_000
"""The longest time of one command, so that a typing error does not run for a day."""


def _matching(stage: Stage, word: str) -> list[Envelope]:
    """`A->B`: what is on that link; `A`: what is addressed to A."""
    source, arrow, target = word.partition("->")
    pending = stage.world.network.pending
    if not arrow:
        return [one for one in pending if one.target == stage.node(word)]
    ends = (stage.node(source), stage.node(target))
    return [one for one in pending if (one.source, one.target) == ends]


@command("deliver A->B | A … [only=LeaderAndIsr] [first=N] [last=N] [place=N]")
def deliver(stage: Stage, given: Command) -> None:
    """Deliver the messages on a link, or those addressed to a node; not those that they cause."""
    _each(stage, given, deliver=True)


@command("drop A->B | A … [only=LeaderAndIsr] [first=N] [last=N] [place=N]")
def drop(stage: Stage, given: Command) -> None:
    """Lose the messages on a link, or those addressed to a node."""
    _each(stage, given, deliver=False)


def _chosen(stage: Stage, given: Command) -> list[Envelope]:
    """The messages that a command names: all, the first or last ones, or the one at a place."""
    if not given.words:
        raise CommandError("which messages?", f"usage: {given.name} A->B | A …")
    found = [one for word in given.words for one in _matching(stage, word)]
    if "only" in given.options:
        found = [one for one in found if one.wire_name == given.options["only"]]
    if "first" in given.options:
        found = found[: number(given.options["first"], "first")]
    if "last" in given.options:
        found = found[-number(given.options["last"], "last") :]
    if "place" in given.options:
        place = number(given.options["place"], "the place")
        found = found[max(0, place - 1) : place]
    if not found:
        raise CommandError(f"nothing is on its way for {' '.join(given.words)}")
    return found


def _each(stage: Stage, given: Command, *, deliver: bool) -> None:
    world = stage.world
    for envelope in _chosen(stage, given):
        if deliver:
            world.deliver(envelope)
        elif world.network.take(envelope):
            world.lose(envelope)


@command("pending [A->B | A …]")
def pending(stage: Stage, given: Command) -> None:
    """Print the messages in flight: all, those on a link, or those addressed to a node."""
    found = stage.world.network.pending
    if given.words:
        found = [one for word in given.words for one in _matching(stage, word)]
    for envelope in found:
        stage.said.append(
            f"on its way: {envelope.source}->{envelope.target} {_described(stage, envelope)}"
        )


def _described(stage: Stage, envelope: Envelope) -> str:
    payload = envelope.payload
    if not isinstance(payload, StateMessage):
        return envelope.wire_name
    state = payload.state
    leader = "none" if state.leader == NO_BROKER else stage.world.name_of(state.leader)
    isr = ",".join(map(stage.world.name_of, state.isr))
    return (
        f"{envelope.wire_name} controller_epoch={payload.controller_epoch} leader={leader} "
        f"leader_epoch={state.leader_epoch} isr=({isr})"
    )


@command("duplicate A->B | A … [only=LeaderAndIsr] [first=N] [last=N] [place=N]")
def duplicate(stage: Stage, given: Command) -> None:
    """Duplicate the messages on a link, or those addressed to a node."""
    for one in _chosen(stage, given):
        stage.world.network.send(one.source, one.target, one.payload, one.cause)


@command("settle [NODE …]")
def settle(stage: Stage, given: Command) -> None:
    """Deliver all messages, and those that they cause, until none is left."""
    stage.world.settle([stage.node(name) for name in given.words])


@command("tick BROKER MS")
def tick(stage: Stage, given: Command) -> None:
    """A broker's clock is MS ahead: parked requests end, and lagging followers leave the ISR."""
    name, text = need(given.words, 2)
    broker = stage.living(name)
    ahead_ms = number(text, "the time", LONGEST_MS)
    broker.run(broker.replica.tick(stage.world.now_ms + ahead_ms))
    stage.world.invariants.check()


@command("again BROKER fetch|proposal|registration | controller BROKER … [log-ends]")
def again(stage: Stage, given: Command) -> None:
    """A node with an unanswered request sends it again now, not after a delay."""
    world = stage.world
    match given.words:
        case ("controller", *what):
            controller = world.controller
            for name in what:
                broker = None if name == "log-ends" else stage.broker(name)
                if broker is None:
                    controller.run(controller.core.ask_again())
                elif broker.id in controller.unconfirmed:
                    controller._send_until_confirmed(broker.id, controller.unconfirmed[broker.id])
        case (name, "fetch"):
            stage.living(name).maybe_fetch()
        case (name, "proposal"):
            broker = stage.living(name)
            role = broker.replica.role
            if isinstance(role, Leader) and role.insync.proposal:
                broker.send_proposal(role.insync.proposal)
        case (name, "registration"):
            stage.living(name).register_if_needed()
        case _:
            raise CommandError("what again?")


@command("wait MS")
def wait(stage: Stage, given: Command) -> None:
    """Let time pass; messages do not move."""
    (text,) = need(given.words, 1)
    stage.world.advance(number(text, "the time", LONGEST_MS))


@command("run MS")
def run(stage: Stage, given: Command) -> None:
    """Let time pass, and deliver messages."""
    (text,) = need(given.words, 1)
    duration_ms = number(text, "the time", LONGEST_MS)
    stage.world.settle()
    stage.world.advance(duration_ms, flowing=True)


@command("cut A [B …] | A->B")
def disconnect(stage: Stage, given: Command) -> None:
    """Disconnect a node from all others or from the named ones, or one direction of a link."""
    if not given.words:
        raise CommandError("cut what?")
    world = stage.world
    first = given.words[0]
    if "->" in first:
        need(given.words, 1, "cut A->B")
        first, _, target = first.partition("->")
        others = [stage.node(target)]
        world.network.disconnect([stage.node(first)], others)
    else:
        others = [stage.node(one) for one in given.words[1:]] or [
            name for name in (*world.brokers, world.controller_name) if name != first
        ]
        world.network.disconnect([stage.node(first)], others)
        world.network.disconnect(others, [stage.node(first)])
    world.recorder.emit("cut", source=first, targets=others)


@command("heal")
def reconnect(stage: Stage, given: Command) -> None:
    """Reconnect every link."""
    need(given.words, 0)
    stage.world.network.reconnect()
    stage.world.recorder.emit("healed")
