"""Commands that print the state, and choose which events are shown."""

from __future__ import annotations

import re

from holdfast.core import Leader
from holdfast.lab.judge.verdict import Verdict, judge
from holdfast.lab.scenarios.commands.registry import CommandError, Stage, command, need
from holdfast.lab.scenarios.scenario import Command, suggestion
from holdfast.lab.world.broker import SimBroker
from holdfast.model import KINDS

LONGEST_RUN = 4
"""How many numbered records are drawn one by one."""
_CELL = re.compile(r"^(?P<name>.*?)(?P<place>\d+)(?P<rest>@-?\d+)$")


@command("variant NAME [setting=value …]")
def variant(stage: Stage, given: Command) -> None:
    """Declare a variant; it is read before the scenario runs."""


@command("trace on | off | +KIND | -KIND …")
def trace(stage: Stage, given: Command) -> None:
    """Show what happens, hide it, or show or hide one kind of event."""
    for word in given.words:
        if word in ("on", "off"):
            stage.shows_trace = word == "on"
        elif word[0] in "+-" and word[1:] in KINDS:
            if word[0] == "+":
                stage.quiet.pop(word[1:], None)
            else:
                stage.quiet[word[1:]] = None
        else:
            hint = suggestion(word.lstrip("+-"), KINDS) or "on, off, +KIND or -KIND"
            raise CommandError(f"cannot trace {word!r}", hint)


@command("state [BROKER …]")
def state(stage: Stage, given: Command) -> None:
    """Print the offsets and epochs of each replica, one line per replica."""
    names = given.words or tuple(stage.world.brokers)
    for name in names:
        stage.said.append(_state_line(stage, stage.broker(name)))


def _state_line(stage: Stage, broker: SimBroker) -> str:
    log = broker.replica.log
    role = broker.replica.role
    kind = type(role).__name__.lower() if broker.alive else "down"
    if broker.paused:
        kind = "paused"
    isr = "isr" if broker.id in stage.world.partition_state().isr else "out"
    line = (
        f"{broker.name} {kind} {isr} epoch={broker.replica.leader_epoch} "
        f"leo={broker.disk.end_offset} hw={log.high_watermark} flushed={broker.disk.flushed_offset}"
    )
    if isinstance(role, Leader) and broker.alive:
        remote = [
            f"{stage.world.name_of(one)}={max(0, progress.log_end_offset)}"
            for one, progress in role.insync.followers.items()
        ]
        line += f" remote({','.join(remote)})"
    return line


@command("logs [BROKER …]")
def logs(stage: Stage, given: Command) -> None:
    """Draw the logs: record@epoch, with a bar at the high watermark."""
    names = given.words or tuple(stage.world.brokers)
    width = max(len(name) for name in names)
    for name in names:
        broker = stage.broker(name)
        high_watermark = broker.replica.log.high_watermark
        below: list[str] = []
        above: list[str] = []
        for offset, epoch, record in broker.disk.records():
            side = below if offset < high_watermark else above
            side.append(f"{record.label}@{epoch}")
        cells = " ".join((*_drawn(below), "|", *_drawn(above)))
        stage.said.append(f"{name.ljust(width)}  {cells}")


def _drawn(cells: list[str]) -> list[str]:
    """The cells, long runs such as r0@0 … r9@0 shortened to r0..r9@0."""
    runs: list[list[str]] = []
    for cell in cells:
        if runs and _follows(runs[-1][-1], cell):
            runs[-1].append(cell)
        else:
            runs.append([cell])
    drawn: list[str] = []
    for run in runs:
        if len(run) > LONGEST_RUN:
            drawn.append(f"{run[0].partition('@')[0]}..{run[-1]}")
        else:
            drawn.extend(run)
    return drawn


def _follows(before: str, after: str) -> bool:
    """Whether two cells are neighbours in one numbered run of one epoch."""
    first, second = _CELL.match(before), _CELL.match(after)
    if not (first and second) or first["rest"] != second["rest"]:
        return False
    return first["name"] == second["name"] and int(first["place"]) + 1 == int(second["place"])


@command("isr")
def isr(stage: Stage, given: Command) -> None:
    """Print the leader, the epoch and the ISR in the coordination store."""
    need(given.words, 0)
    world = stage.world
    stored = world.partition_state()
    names = ",".join(world.name_of(one) for one in stored.isr)
    line = (
        f"store: leader={world.leader_name() or 'none'} epoch={stored.leader_epoch} isr=({names})"
    )
    if stored.eligible_leaders:
        eligible = ",".join(world.name_of(one) for one in stored.eligible_leaders)
        line += f" eligible=({eligible})"
    stage.said.append(line)


@command("followers BROKER")
def followers(stage: Stage, given: Command) -> None:
    """Print each follower's log end offset at the leader, and when it was last caught up."""
    (name,) = need(given.words, 1)
    world = stage.world
    role = stage.broker(name).replica.role
    if not isinstance(role, Leader):
        raise CommandError(f"{name} does not lead")
    for one, progress in role.insync.followers.items():
        level = progress.last_caught_up_ms
        stage.said.append(
            f"{name} sees {world.name_of(one)} leo={max(0, progress.log_end_offset)} "
            f"last_caught_up_ms={level if level >= 0 else 'never'} (now {world.now_ms})"
        )


@command("metadata")
def metadata(stage: Stage, given: Command) -> None:
    """Print the leader that each running broker reports to clients."""
    need(given.words, 0)
    world = stage.world
    for name, broker in world.brokers.items():
        known = broker.metadata
        if broker.alive and known:
            leader = world.name_of(known.leader) if known.leader >= 0 else "none"
            stage.said.append(
                f"{name} reports to clients: leader={leader} epoch={known.leader_epoch}"
            )


@command("latest BROKER")
def latest(stage: Stage, given: Command) -> None:
    """Ask a broker for its latest readable offset (ListOffsets)."""
    (name,) = need(given.words, 1)
    error, offset = stage.broker(name).replica.latest_offset()
    stage.said.append(f"{name} latest: {error.name if error else offset}")


@command("processed")
def processed(stage: Stage, given: Command) -> None:
    """Print the records that consumers have processed, in order."""
    need(given.words, 0)
    done = [f"{one.label}({one.consumer})" for one in stage.world.history.processed]
    stage.said.append(f"processed: {' '.join(done) or 'nothing'}")


@command("invariants")
def invariants(stage: Stage, given: Command) -> None:
    """Print every broken invariant, and those that are no longer checked."""
    need(given.words, 0)
    noted = stage.world.invariants
    noted.check()
    if not noted.violations:
        stage.said.append("no invariant is broken")
    stage.said.extend(f"broken: {one.invariant}: {one.text}" for one in noted.violations)
    stage.said.extend(f"not judged: {name}: {why}" for name, why in noted.skipped.items())


@command("verdict")
def verdict(stage: Stage, given: Command) -> None:
    """Judge the run: what became of every record."""
    need(given.words, 0)
    world = stage.world
    stage.verdict = judged = judge(world)
    world.recorder.emit(
        "verdict",
        verdict=judged.verdict,
        outcome=judged.outcome,
        lost=list(judged.lost),
        exposed_lost=list(judged.exposed_lost),
        refused_kept=list(judged.refused_kept),
        diverged=list(judged.diverged),
        reason=judged.reason,
    )
    stage.said.extend(_verdict_lines(judged))


def _verdict_lines(judged: Verdict) -> list[str]:
    lines = [f"outcome: {judged.outcome}"]
    facts = {
        "lost": judged.lost,
        "diverged at": judged.diverged,
        "exposed and lost": judged.exposed_lost,
        "refused but kept": judged.refused_kept,
        "in the log twice": judged.duplicated,
        "out of order": judged.reordered,
        "lost at the consumer": judged.consumer_lost,
        "lost at the producer": judged.producer_lost,
        "worked on twice": judged.processed_twice,
        "hidden from a reader": judged.hidden,
        "skipped by a reader": judged.skipped,
    }
    for name, values in facts.items():
        if values:
            lines.append(f"{name}: {_shown(values)}")
    lines.append(f"verdict: {judged.verdict} ({judged.reason})")
    return lines


def _shown(values: tuple[object, ...]) -> str:
    words = [str(one) for one in values]
    if len(words) > 12:
        return f"{' '.join(words[:3])} … {words[-1]} ({len(words)})"
    return " ".join(words)
