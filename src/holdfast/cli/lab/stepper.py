"""The stepper in a terminal: one lane per replica, drawn again for every event.

`render` makes one picture; the interactive stepper and the plain print-out share it. Nothing is
shown by colour alone: committed cells stand between solid bars, others between dotted ones, and
each cell has its epoch written under it. So a pipe, which gets no colours, loses no information.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.text import Text

from holdfast.cli.lab.keys import raw_keys
from holdfast.lab.render.frames import Frame
from holdfast.lab.render.views import Acknowledgement, Cell, ReplicaView, Snapshot, alike

_INDENT = 9
"""Left of the cells: room for a mark at offset 0."""
_SOLID = ("#2f6fb5", "#c2570c", "#7b4fc4", "#0d7f78", "#b83a7a", "#6d7215", "#8a5638", "#64748b")
_LINED = ("#4f8fd6", "#e07b2e", "#9a76dd", "#1fa59c", "#d65d9b", "#9aa02c", "#b57f5c", "#8594a8")
"""Colours of epochs: as background of white letters; and as letters, legible on light and dark."""
_PLAIN_WIDTH = 80
_MOST_ACKNOWLEDGEMENTS = 14
_HELP = "← → event · PgUp PgDn step · Home End · g N step N · q quit"
_STATUS = {
    "sent": ("…", "waiting", "dim"),
    "acknowledged": ("✓", "acknowledged", "green"),
    "refused": ("✗", "refused", "dim"),
    "unanswered": ("?", "no answer", "yellow"),
    "endangered": ("⚠", "in danger", "bold yellow"),
    "lost": ("✖", "LOST", "bold white on red"),
}


Variants = Sequence[tuple[str, Sequence[Frame]]]
"""The frames of each variant, with its name."""


def run_stepper(variants: Variants, title: str) -> None:
    """Show the frames one by one as keys are pressed; `q` and Ctrl-C leave immediately."""
    with suppress(KeyboardInterrupt):
        _step_through(variants, title)


def _step_through(variants: Variants, title: str) -> None:
    console = Console(highlight=False)
    chosen, place, typed = 0, 0, None
    with console.screen(hide_cursor=True) as screen, raw_keys(sys.stdin.fileno()) as keys:
        while True:
            name, frames = variants[chosen]
            width, height = console.size
            heading = _title(title, name, chosen, len(variants), width)
            picture = render(frames[place], len(frames), width, height=height - 2, place=place)
            footer = _footer(typed, several=len(variants) > 1)
            screen.update(Group(heading, picture, Text(footer, style="dim")))
            pressed: list[str] = []
            # Ends with a key or with a new size, whichever comes first.
            while not pressed and console.size == (width, height):
                pressed = keys.read(0.2)
            for key in pressed:
                if key == "q":
                    return
                if key == "v" and typed is None:
                    chosen, place = (chosen + 1) % len(variants), 0
                    frames = variants[chosen][1]
                else:
                    place, typed = press(frames, place, typed, key)


def _title(title: str, variant: str, chosen: int, count: int, width: int) -> Text:
    """The title, and the variant that is shown."""
    shown = Text(title, style="bold", no_wrap=True)
    if variant != title:
        which = f" ({chosen + 1} of {count})" if count > 1 else ""
        variant = f"  variant {variant}{which}"
        shown.truncate(max(10, width - len(variant)), overflow="ellipsis")
        shown.append(variant, style="magenta")
    return shown


def print_all(frames: Sequence[Frame], file: TextIO) -> None:
    """Every frame in sequence, for a pipe or a file."""
    console = Console(file=file, highlight=False, width=None if file.isatty() else _PLAIN_WIDTH)
    for place, frame in enumerate(frames):
        console.print(Rule(style="dim"))
        console.print(render(frame, len(frames), console.width, place=place))


def press(
    frames: Sequence[Frame], place: int, typed: str | None, key: str
) -> tuple[int, str | None]:
    """The position that a key leads to, and what has been typed of a step's number after `g`."""
    if typed is not None:
        if key.isdigit():
            return place, typed + key
        if key == "backspace":
            return place, typed[:-1]
        return (
            _end_of_step(frames, int(typed), place) if key == "enter" and typed else place
        ), None
    if key == "g":
        return place, ""
    step = frames[place].step
    moves = {
        **dict.fromkeys(("right", "down", " ", "n", "j", "enter"), place + 1),
        **dict.fromkeys(("left", "up", "p", "k", "backspace"), place - 1),
        "home": 0,
        "end": len(frames) - 1,
        "page-down": _next_step(frames, place),
        "page-up": _end_of_step(frames, step - 1, 0),
    }
    return max(0, min(len(frames) - 1, moves.get(key, place))), None


def _next_step(frames: Sequence[Frame], place: int) -> int:
    """To the end of this step; from there, to the end of the next."""
    end = _end_of_step(frames, frames[place].step, place)
    return end if end > place else _end_of_step(frames, frames[place].step + 1, place)


def _end_of_step(frames: Sequence[Frame], step: int, otherwise: int) -> int:
    places = [place for place, frame in enumerate(frames) if frame.step == step]
    return places[-1] if places else otherwise


def _footer(typed: str | None, *, several: bool) -> str:
    if typed is not None:
        return f"go to step: {typed}▏ (enter)"
    return f"{_HELP} · v next variant" if several else _HELP


# One picture.


def render(
    frame: Frame, total: int, width: int, *, height: int | None = None, place: int | None = None
) -> RenderableType:
    """One frame. A low terminal gets lower lanes: first without the disk's bar, then the epochs."""
    snapshot = frame.snapshot
    above = [*_heading(frame, total, width, place), _arrow(frame), _store(snapshot)]
    if height is not None and len(frame.sentence) < width:
        # So that the lanes do not move when the next sentence takes two lines.
        above.append(Text())
    below = [_acknowledgements(snapshot), *_readers(snapshot), *_verdict(snapshot)]
    room = 99 if height is None else height - _lines(above + below, width)
    rows = 5
    # At most two rounds: a lane has no fewer than three rows.
    while rows > 3 and rows * len(snapshot.replicas) + 2 > room:
        rows -= 1
    grid = _Grid(snapshot, frame.removed, width)
    lanes = [row for view in snapshot.replicas for row in _lane(view, frame, grid, rows)]
    return Group(*above, Text(), grid.ruler(), *lanes, *below)


def _lines(texts: Sequence[Text], width: int) -> int:
    return sum(max(1, -(-text.cell_len // width)) for text in texts)


def _heading(frame: Frame, total: int, width: int, place: int | None) -> list[Text]:
    count = f"{'?' if place is None else place + 1}/{total} · {frame.time_ms} ms"
    command = Text(f"step {frame.step}  {frame.step_text}", style="cyan", no_wrap=True)
    command.truncate(max(10, width - len(count) - 2), overflow="ellipsis", pad=True)
    heading = [Text().append_text(command).append(f"  {count}", style="dim")]
    if frame.narration:
        heading.append(Text(frame.narration, style="italic dim"))
    return [*heading, Text(frame.sentence, style="bold")]


def _arrow(frame: Frame) -> Text:
    if frame.arrow is None:
        return Text()
    source, target = (
        frame.snapshot.name(end) if isinstance(end, int) else end
        for end in (frame.arrow.source, frame.arrow.target)
    )
    if frame.arrow.arrives:
        return Text(f"{source} ── {frame.arrow.text} ──▶ {target}", style="blue")
    return Text(f"{source} ── {frame.arrow.text} ──✗   {target}", style="red")


def _store(snapshot: Snapshot) -> Text:
    store = snapshot.store
    text = Text().append("store    ", style="dim")
    text.append(f"leader {snapshot.name(store.leader)}", style="bold")
    text.append(f"  epoch {store.leader_epoch}", style="none")
    text.append(f"  in sync {{{snapshot.names(store.isr)}}}", style="green")
    if store.eligible:
        text.append(f"  eligible {{{snapshot.names(store.eligible)}}}", style="blue")
    if store.rule:
        text.append(f"  by rule: {store.rule}", style="yellow")
    for source, target in snapshot.disconnected:
        text.append(f"  ✂ {source}→{target}", style="yellow")
    return text


class _Grid:
    """The visible offsets and the width of a cell: the same for all lanes."""

    def __init__(self, snapshot: Snapshot, removed: tuple[Cell, ...], width: int) -> None:
        cells = [cell for view in snapshot.replicas for cell in view.cells] + list(removed)
        longest = max((len(cell.label) for cell in cells), default=2)
        self.cell = min(max(longest, 2), 8) + 2
        end = max((view.log_end_offset for view in snapshot.replicas), default=0)
        end = max([end, *(cell.offset + 1 for cell in removed)])
        # One column of a cell is the bar at its left; seven more are for the mark at the end.
        self.columns = max(1, (width - _INDENT - 8) // (self.cell + 1))
        self.first = max(0, end - self.columns)
        self.end = end

    def column(self, offset: int) -> int:
        """The column of the bar at the left of this offset."""
        return _INDENT + (max(offset, self.first) - self.first) * (self.cell + 1)

    def ruler(self) -> Text:
        text = "offset".ljust(_INDENT)
        for offset in range(self.first, self.end):
            text += f" {offset:^{self.cell}}"
        return Text(text, style="dim", no_wrap=True)


def _lane(view: ReplicaView, frame: Frame, grid: _Grid, rows: int) -> list[Text]:
    touched = frame.broker == view.id
    removed = frame.removed if touched else ()
    labels, epochs = _cells(view, removed, grid)
    lane = [_head(view, frame.snapshot, touched=touched), labels, epochs, _disk(view, grid)]
    if rows < 5:
        lane.pop()
    if rows < 4:
        lane.pop()
    return [*lane, _marks(view, grid)]


def _head(view: ReplicaView, snapshot: Snapshot, *, touched: bool) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append("▶ " if touched else "  ", style="bold blue")
    text.append(view.name, style="bold" if view.alive else "dim").append(" " * (5 - len(view.name)))
    role, style = _role(view)
    text.append(f" {role} ", style=style)
    member = "● in sync" if view.in_isr else "◐ eligible" if view.eligible else "○ not in sync"
    text.append(f"  {member}", style="green" if view.in_isr else "dim")
    for words in _remarks(view, snapshot):
        text.append(f"  {words}", style="yellow")
    if view.role == "leader" and view.remote:
        known = " ".join(
            f"{snapshot.name(broker)}={'?' if end is None else end}" for broker, end in view.remote
        )
        text.append(f"  knows {known}", style="dim")
    return text


def _role(view: ReplicaView) -> tuple[str, str]:
    if not view.alive:
        return f"✖ {view.down}", "bold red"
    if view.paused:
        return f"❚❚ paused {view.role}", "yellow"
    if view.role == "leader":
        return f"LEADER e{view.leader_epoch}", "reverse bold"
    if view.role == "follower":
        return f"follower e{view.leader_epoch}", "none"
    return ("offline" if view.offline else "no role yet"), "yellow"


def _remarks(view: ReplicaView, snapshot: Snapshot) -> list[str]:
    remarks = [f"disk: {view.fault}"] if view.fault else []
    if view.alive and not view.session:
        remarks.append("session expired")
    if view.counts_on is not None and sorted(view.counts_on) != sorted(snapshot.store.isr):
        remarks.append(f"⚠ counts on {{{snapshot.names(view.counts_on)}}}")
    if view.proposed is not None:
        remarks.append(f"asks for {{{snapshot.names(view.proposed)}}}")
    return remarks + [f"{snapshot.name(broker)}'s fetch waits" for broker, _ in view.parked]


def _cells(view: ReplicaView, removed: tuple[Cell, ...], grid: _Grid) -> tuple[Text, Text]:
    """The labels and, under them, the epochs."""
    before = "…" if grid.first and view.log_end_offset else " "
    labels, epochs = (Text(before.rjust(_INDENT), no_wrap=True) for _ in range(2))
    bar = ""
    for cell in view.cells:
        if cell.offset >= grid.first:
            committed = cell.offset < view.high_watermark
            style, bar = _cell_style(cell, view, committed=committed), "│" if committed else "┊"
            for row, words in ((labels, cell.label), (epochs, f"e{cell.epoch}")):
                _pad(row, grid.column(cell.offset))
                row.append(bar).append(_fit(words, grid.cell), style=style)
    labels.append(bar)
    epochs.append(bar)
    for cell in removed:
        if cell.offset >= grid.first:
            for row, words in ((labels, f"✗{cell.label}✗"), (epochs, "gone")):
                _pad(row, grid.column(cell.offset) + 1)
                row.append(_fit(words, grid.cell), style="red")
    return labels, epochs


def _pad(row: Text, column: int) -> None:
    row.append(" " * (column - row.cell_len))


def _cell_style(cell: Cell, view: ReplicaView, *, committed: bool) -> str:
    place = cell.epoch % len(_SOLID)
    style = f"bold #ffffff on {_SOLID[place]}" if committed else _LINED[place]
    return style if view.alive else f"dim {style}"


def _fit(label: str, width: int) -> str:
    short = label if len(label) <= width else label[: width - 1] + "…"
    return f"{short:^{width}}"


def _disk(view: ReplicaView, grid: _Grid) -> Text:
    text = Text(" " * _INDENT, no_wrap=True, style="dim")
    flushed = grid.column(view.flushed_end) - _INDENT
    rest = grid.column(view.log_end_offset) - _INDENT - flushed
    if view.log_end_offset > view.log_start:
        text.append("━" * flushed).append("┄" * max(0, rest))
        text.append(f" disk {view.flushed_end}")
    return text


def _marks(view: ReplicaView, grid: _Grid) -> Text:
    """HW left of its boundary, LEO right of its own: they never overlap."""
    high, end = grid.column(view.high_watermark), grid.column(view.log_end_offset)
    text = Text(no_wrap=True, style="none" if view.alive else "dim")
    text.append(f"HW {view.high_watermark}┘".rjust(high + 1), style="bold")
    corner = "└" if end > high else " "
    return text.append(" " * (end - high - 1)).append(f"{corner}LEO {view.log_end_offset}")


# Below the lanes.


def _acknowledgements(snapshot: Snapshot) -> Text:
    text = Text().append("records ", style="dim")
    for group in alike(snapshot.acknowledgements, _MOST_ACKNOWLEDGEMENTS):
        first, last = group[0], group[-1]
        sign, word, style = _STATUS[first.status]
        words = f"{first.record} {_word(first, word)}".rstrip()
        if len(group) > 1:
            words = f"{first.record} to {last.record} {word}"
        text.append(f" {sign} {words} ", style=style).append(" ")
    return text


def _word(acknowledgement: Acknowledgement, word: str) -> str:
    if acknowledgement.status == "refused" and acknowledgement.held:
        word = "refused, kept"
    if acknowledgement.status == "acknowledged":
        word = "" if acknowledgement.acks == "all" else f"acks={acknowledgement.acks}"
    return f"{word} ×{acknowledgement.copies}" if acknowledgement.copies > 1 else word


def _readers(snapshot: Snapshot) -> list[Text]:
    if not snapshot.consumers:
        return []
    text = Text().append("readers ", style="dim")
    for reader in snapshot.consumers:
        next_offset = "?" if reader.position is None else reader.position
        state = f"next {next_offset}" if reader.alive else "dead"
        done = "" if reader.committed is None else f", committed {reader.committed}"
        error = f", {reader.error}" if reader.error else ""
        text.append(f" {reader.name}: {state}{done}{error} ", style="blue")
    return [text]


def _verdict(snapshot: Snapshot) -> list[Text]:
    verdict = snapshot.verdict
    if verdict is None:
        return []
    sign, style = ("✖", "bold white on red") if verdict.harm else ("✓", "bold green")
    if not verdict.harm and verdict.verdict != "valid":
        sign, style = "⚠", "bold yellow"
    return [Text(f" {sign} {verdict.verdict}: {verdict.headline} ", style=style)]
