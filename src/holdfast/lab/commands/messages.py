"""Commands that move messages and time."""

from __future__ import annotations

from holdfast.lab.commands.registry import CommandError, Stage, command, need, number
from holdfast.lab.messages import Envelope, StateMessage
from holdfast.lab.scenario import Command
from holdfast.lab.world import DoesNotSettleError
from holdfast.model import NO_BROKER


def _matching(stage: Stage, word: str) -> list[Envelope]:
    """`A->B`: what is on that link; `A`: what is addressed to A."""
    source, arrow, target = word.partition("->")
    pending = stage.world.network.pending
    if not arrow:
        _known(stage, word)
        return [one for one in pending if one.target == _node(stage, word)]
    for end in (source, target):
        _known(stage, end)
    ends = (_node(stage, source), _node(stage, target))
    return [one for one in pending if (one.source, one.target) == ends]


def _node(stage: Stage, name: str) -> str:
    return stage.world.controller_name if name == "controller" else name


def _known(stage: Stage, name: str) -> None:
    world = stage.world
    nodes = (*world.brokers, *world.clients, "controller", "store")
    if name not in nodes and not name.startswith("controller-"):
        raise CommandError(f"no node is called {name!r}", f"known: {', '.join(nodes)}")


@command("deliver A->B | A … [first=N]")
def deliver(stage: Stage, given: Command) -> None:
    """Deliver what is on a link, or addressed to a node, now; not what that causes."""
    _each(stage, given, deliver=True)


@command("drop A->B | A … [first=N]")
def drop(stage: Stage, given: Command) -> None:
    """Lose what is on a link, or addressed to a node, now."""
    _each(stage, given, deliver=False)


def _each(stage: Stage, given: Command, *, deliver: bool) -> None:
    if not given.words:
        raise CommandError("which messages?", f"usage: {given.name} A->B | A …")
    found = [one for word in given.words for one in _matching(stage, word)]
    if not found:
        raise CommandError(f"nothing is on its way for {' '.join(given.words)}")
    if "first" in given.options:
        found = found[: number(given.options["first"], "first")]
    world = stage.world
    for envelope in found:
        if deliver:
            world.deliver(envelope)
        elif world.network.take(envelope):
            world.lose(envelope)


@command("pending [A->B | A …]")
def pending(stage: Stage, given: Command) -> None:
    """Print what is on its way, or only what is on a link or addressed to a node."""
    found = stage.world.network.pending
    if given.words:
        found = [one for word in given.words for one in _matching(stage, word)]
    for envelope in found:
        stage.said.append(
            f"on its way: {envelope.source}->{envelope.target} {_told(stage, envelope)}"
        )


def _told(stage: Stage, envelope: Envelope) -> str:
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


@command("settle [NODE …]")
def settle(stage: Stage, given: Command) -> None:
    """Deliver everything, and what that causes, until nothing is left."""
    for name in given.words:
        _known(stage, name)
    try:
        stage.world.settle(given.words)
    except DoesNotSettleError as error:
        raise CommandError(str(error)) from None


@command("wait MS")
def wait(stage: Stage, given: Command) -> None:
    """Time passes; messages stand still."""
    (text,) = need(given.words, 1, "wait MS")
    stage.world.advance(number(text, "the time"))


@command("run MS")
def run(stage: Stage, given: Command) -> None:
    """Time passes, and messages flow."""
    (text,) = need(given.words, 1, "run MS")
    stage.world.settle()
    stage.world.advance(number(text, "the time"), flowing=True)


@command("cut A [B …] | A->B")
def cut(stage: Stage, given: Command) -> None:
    """Cut a node off from everyone (or from those named), or one direction of one link."""
    if not given.words:
        raise CommandError("cut what?", "usage: cut A [B …] | A->B")
    world = stage.world
    first = given.words[0]
    if "->" in first:
        source, _, target = first.partition("->")
        _known(stage, source)
        _known(stage, target)
        world.network.cut([_node(stage, source)], [_node(stage, target)])
        pairs = ((source, [target]),)
    else:
        _known(stage, first)
        others = list(given.words[1:]) or [
            name for name in (*world.brokers, world.controller_name) if name != first
        ]
        others = [_node(stage, one) for one in others]
        world.network.cut([_node(stage, first)], others)
        world.network.cut(others, [_node(stage, first)])
        pairs = ((first, others),)
    for source, targets in pairs:
        world.recorder.emit("cut", source=source, targets=targets)


@command("heal")
def heal(stage: Stage, given: Command) -> None:
    """Mend every link."""
    need(given.words, 0, "heal")
    stage.world.network.heal()
    stage.world.recorder.emit("healed")
