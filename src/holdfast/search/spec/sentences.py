"""Renders a trace of the specification as text: the steps, the states and the violation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, Final

from holdfast.search.spec.invariants import WEAK_ISR
from holdfast.search.spec.state import Record, ReplicaState, State
from holdfast.search.spec.trace import Step

LEGEND: Final = (
    "m0/1 is record m0, written in leader epoch 1. Records left of | are below the replica's "
    "high watermark. * marks the replica that acted."
)


def name(replica: int) -> str:
    return f"b{replica + 1}"


def names(replicas: Iterable[int]) -> str:
    return f"({','.join(name(one) for one in replicas)})"


def record(one: Record) -> str:
    return f"m{one.id}/{one.epoch}"


def sentence(before: State, step: Step) -> str:
    """A sentence about one step."""
    if step.action.startswith("controller"):
        return _controller(step)
    old = before.replicas[step.who[0]]
    return _follower(step, old) if "follower" in step.action else _leader(step, old)


def _leader(step: Step, old: ReplicaState) -> str:
    me, other = name(step.who[0]), name(step.who[-1])
    new, isr = step.state.replicas[step.who[0]], names(step.state.agreed_isr)
    match step.action:
        case "becomes-leader":
            return f"{me} becomes leader in epoch {new.epoch}, with ISR {names(new.isr)}."
        case "leader-writes":
            return f"{me} appends {record(new.log[-1])} at offset {len(old.log)}."
        case "leader-shrinks":
            return f"{me} takes {other} out of the ISR; the controller's ISR is {isr}."
        case "leader-expands":
            return f"{me} takes {other} into the ISR; the controller's ISR is {isr}."
        case _:
            assert step.action == "leader-raises"
            return f"{me} raises its high watermark to {new.high_watermark}."


def _follower(step: Step, old: ReplicaState) -> str:
    me, leader = name(step.who[0]), name(step.who[1])
    new = step.state.replicas[step.who[0]]
    match step.action:
        case "becomes-follower":
            what = f"follows {leader} in epoch {new.epoch}, and {_truncated(old, new)}"
        case "follower-truncates":
            what = f"finds that its log diverges from {leader}'s, and {_truncated(old, new)}"
        case _:
            assert step.action == "follower-fetches"
            what = f"copies {record(new.log[-1])} from {leader} to offset {len(old.log)}"
    return f"{me} {what}{_watermark(old, new)}."


def _controller(step: Step) -> str:
    requests = step.state.requests
    who, request, epoch = name(step.who[0]), requests[-1], f"epoch {len(requests) - 1}"
    if step.action == "controller-elects":
        return f"The controller elects {who}: {epoch}, ISR {names(request.isr)}."
    lead = "nobody leads" if request.leader is None else f"{name(request.leader)} leads"
    if step.who[0] in request.isr:
        return f"The controller takes the lead from {who}, the last of the ISR: {epoch}, {lead}."
    return f"The controller takes {who} out of the ISR: {epoch}, {lead}, ISR {names(request.isr)}."


def _truncated(old: ReplicaState, new: ReplicaState) -> str:
    dropped = old.log[len(new.log) :]
    if not dropped:
        return "keeps its log"
    gone = ", ".join(record(one) for one in dropped)
    return f"truncates its log to {len(new.log)}, dropping {gone}"


def _watermark(old: ReplicaState, new: ReplicaState) -> str:
    if old.high_watermark == new.high_watermark:
        return ""
    return f"; its high watermark goes from {old.high_watermark} to {new.high_watermark}"


Row = tuple[str, ...]


def _rows(step: Step) -> list[Row]:
    """One row for the controller's state, and one for each replica: its own state and its log."""
    state = step.state
    leader = state.requests[-1].leader if state.requests else None
    lead = "nobody leads" if leader is None else f"{name(leader)} leads"
    epoch = f"epoch {len(state.requests) - 1}" if state.requests else "no epoch"
    rows: list[Row] = [(" ", "controller", epoch, lead, f"ISR {names(state.agreed_isr)}", "")]
    for number, replica in enumerate(state.replicas):
        acted = not step.action.startswith("controller") and step.who[:1] == (number,)
        rows.append(("*" if acted else " ", name(number), *_beliefs(number, replica)))
    return rows


def _beliefs(number: int, replica: ReplicaState) -> Row:
    committed = "".join(f"{record(one)} " for one in replica.log[: replica.high_watermark])
    rest = "".join(f" {record(one)}" for one in replica.log[replica.high_watermark :])
    log = f"{committed}|{rest}"
    if replica.epoch is None or replica.leader is None:
        return "no epoch", "no leader", "", log
    leads = "leads" if replica.leader == number else f"follows {name(replica.leader)}"
    return f"epoch {replica.epoch}", leads, f"ISR {names(replica.isr)}", log


def reason(state: State, invariant: str) -> str:
    """The committed record that is missing, and where."""
    for number, leader in enumerate(state.replicas):
        if leader.leader != number:
            continue
        isr = leader.isr if invariant == WEAK_ISR else state.agreed_isr
        for offset, one in enumerate(leader.log[: leader.high_watermark]):
            for member in isr:
                theirs = state.replicas[member].log[offset : offset + 1]
                if theirs != (one,):
                    own = "its" if invariant == WEAK_ISR else "the controller's"
                    held = f"holds {record(theirs[0])}" if theirs else "holds nothing"
                    return (
                        f"{name(number)} presumes leadership and has committed {record(one)} at "
                        f"offset {offset}. {name(member)} is in {own} ISR and {held} there."
                    )
    raise AssertionError(f"{invariant} is not broken")


def step_dict(before: State, step: Step) -> dict[str, Any]:
    """A step for JSON, with the names that the sentences use."""
    state = step.state
    leader = state.requests[-1].leader if state.requests else None
    return {
        "action": step.action,
        "text": sentence(before, step),
        "agreed": {"leader": _name(leader), "isr": [name(one) for one in state.agreed_isr]},
        "replicas": {
            name(number): {
                "log": [record(one) for one in replica.log],
                "high_watermark": replica.high_watermark,
                "epoch": replica.epoch,
                "leader": _name(replica.leader),
                "isr": [name(one) for one in replica.isr],
            }
            for number, replica in enumerate(state.replicas)
        },
    }


def _name(replica: int | None) -> str | None:
    return None if replica is None else name(replica)


def render_trace(trace: Sequence[Step], invariant: str) -> list[str]:
    """The lines of the whole trace."""
    tables = [_rows(step) for step in trace[1:]]
    widths = [max(map(len, column)) for column in zip(*chain(*tables), strict=True)]
    lines = [LEGEND, ""]
    for number, (before, step) in enumerate(pairwise(trace), start=1):
        lines.append(f"{number:>3}  {sentence(before.state, step)}")
        padded = ("  ".join(map(str.ljust, row, widths)) for row in tables[number - 1])
        lines += [f"     {row}".rstrip() for row in padded]
    return [*lines, "", reason(trace[-1].state, invariant)]
