"""Folds a trace into frames: the pictures of a scenario, one per event.

Narration (`said`) and the running command (`step`) make no frame of their own; the frames after
them show them. There are two exceptions, so that nothing is lost: a command without an effect gets
one frame, so that every step has a row in the table, and narration after the last event gets a
closing frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.lab.render.arrows import Arrow, arrow_of
from holdfast.lab.render.folding import Change, World
from holdfast.lab.render.narrate import line, names_of, sentence
from holdfast.lab.render.views import Cell, ReplicaView, Snapshot
from holdfast.model.trace import TraceEvent

START = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The state of the scenario right after one event."""

    event: int
    time_ms: int
    kind: str
    broker: int | None
    why: int | None
    line: str | None
    sentence: str
    narration: str
    """The latest narration; empty before the first."""
    step: int
    """Which command is running, from 1; 0 before the first. Without commands: the frame's place."""
    step_text: str
    snapshot: Snapshot
    added: tuple[Cell, ...] = ()
    """Records that this event wrote to the broker's log."""
    removed: tuple[Cell, ...] = ()
    """Records that this event removed from it."""
    arrow: Arrow | None = None
    """The message that this event is about, for an arrow."""


def fold(events: Iterable[TraceEvent], partition: str | None = None) -> list[Frame]:
    """Every frame of one partition: the named one, or the first in the trace."""
    trace = list(events)
    wanted = partition or next((event.partition for event in trace if event.partition), "")
    folder = _Folder(names_of(trace))
    for event in trace:
        if event.partition in ("", wanted):
            folder.take(event)
    return folder.finish()


def steps(frames: Sequence[Frame]) -> list[Frame]:
    """The last frame of every step: the state after its commands."""
    last: dict[int, Frame] = {frame.step: frame for frame in frames}
    return list(last.values())


def table(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    """The numbers of every replica after every step, ready for JSON."""
    return [
        {
            "step": frame.step,
            "text": frame.step_text,
            "event": frame.event,
            "t": frame.time_ms,
            "replicas": {view.name: _row(view, frame.snapshot) for view in frame.snapshot.replicas},
        }
        for frame in steps(frames)
    ]


def _row(view: ReplicaView, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "leo": view.log_end_offset,
        "hw": view.high_watermark,
        "flushed": view.flushed_end,
        "epoch": view.leader_epoch,
        "in_isr": view.in_isr,
        "role": view.condition,
        "remote": {snapshot.name(broker): end for broker, end in view.remote},
    }


class _Folder:
    """Builds the frames; keeps the current narration and step."""

    def __init__(self, names: dict[int, str]) -> None:
        self._names = names
        self._world = World()
        self._frames: list[Frame] = []
        self._words: list[str] = []
        self._words_shown = True
        self._step = 0
        self._step_event: TraceEvent | None = None
        self._step_shown = True

    def take(self, event: TraceEvent) -> None:
        if event.kind == "said":
            self._say(str(event.numbers["text"]))
        elif event.kind == "step":
            self._show_silent_step()
            self._step += 1
            self._step_event, self._step_shown = event, False
        else:
            change = self._world.apply(event)
            self._show(event, change, line(event, self._names), sentence(event, self._names))

    def finish(self) -> list[Frame]:
        self._show_silent_step()
        if not self._words_shown and self._frames:
            last = self._frames[-1]
            closing = replace(
                last, kind="said", line=None, sentence=self._words[-1], **_NOTHING_MOVES
            )
            self._frames.append(replace(closing, narration=self._narration()))
        if self._step == 0:
            return [
                replace(frame, step=number, step_text=frame.line or (START if not number else ""))
                for number, frame in enumerate(self._frames)
            ]
        return self._frames

    def _say(self, text: str) -> None:
        # Consecutive sentences belong together; an event ends the group.
        if self._words_shown:
            self._words = []
        self._words.append(text)
        self._words_shown = False

    def _narration(self) -> str:
        return " ".join(self._words)

    def _show_silent_step(self) -> None:
        if self._step_shown or self._step_event is None:
            return
        self._show(self._step_event, Change(), None, "Nothing visible happens.")

    def _show(self, event: TraceEvent, change: Change, text: str | None, spoken: str) -> None:
        self._words_shown = self._step_shown = True
        step = self._step_event
        self._frames.append(
            Frame(
                event=event.id,
                time_ms=event.t,
                kind=event.kind,
                broker=event.broker,
                why=event.why,
                line=text,
                sentence=spoken,
                narration=self._narration(),
                step=self._step,
                step_text=START if step is None else str(step.numbers["text"]),
                snapshot=self._world.snapshot(),
                added=change.added,
                removed=change.removed,
                arrow=arrow_of(event, self._names),
            )
        )


_NOTHING_MOVES: dict[str, Any] = {"added": (), "removed": (), "arrow": None, "broker": None}
