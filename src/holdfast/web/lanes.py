"""Draws one replica: its badges, its log, the marks on the log, and a leader's view of the others.

Reading a lane: a solid cell is committed according to this replica, an outlined one is not; HW is
the end of the committed part, LEO the end of the log; the bar below the log ends where the flushed
part ends.
"""

from __future__ import annotations

from holdfast.lab.render.frames import Frame
from holdfast.lab.render.views import NOT_REPORTED, Cell, ReplicaView, Snapshot
from holdfast.web.drawing import (
    box,
    card,
    group,
    line,
    number,
    path,
    pill,
    shortened,
    text,
    text_width,
    wrapped,
)
from holdfast.web.layout import CELL_HEIGHT, Layout
from holdfast.web.theme import EPOCH_COLOURS

HEAD_ROOM = 128
"""How far a wide lane's badges reach beside the high watermark's flag."""


def lane(view: ReplicaView, frame: Frame, layout: Layout) -> list[str]:
    """The lane in parts. Only all parts together are SVG: one may open what a later one closes."""
    top = layout.lane_top(view.id)
    touched = frame.broker == view.id
    added = frame.added if touched else ()
    removed = frame.removed if touched else ()
    first = layout.first_column(frame.snapshot)
    classes = "card focus" if touched else "card"
    return [
        "<g>" if view.alive else '<g class="dead">',
        card(0, top, layout.card_width, layout.shape.lane, classes),
        _head(view, frame.snapshot, top, layout),
        *_log(view, added, first, top, layout),
        *(_ghost(cell, cell.offset - first, top, layout) for cell in removed),
        _marks(view, first, top, layout),
        _disk(view, first, top, layout),
        _side(view, frame.snapshot, top, layout),
        "</g>",
    ]


# The head: name and badges.


def _head(view: ReplicaView, snapshot: Snapshot, top: float, layout: Layout) -> str:
    role, member = _role(view), _membership(view)
    remark = _remark(view, snapshot, top, layout)
    if not layout.shape.is_wide:
        name = shortened(view.name, layout.card_width / 3, 13)
        badge, width = pill(28.0 + text_width(name, 13, wide=True), top + 9, *role)
        x = 36.0 + text_width(name, 13, wide=True) + width
        body = (text(16, top + 22, name, "t13 b dim"), badge, pill(x, top + 9, *member)[0])
        return group("", *body, remark)
    if len(view.name) <= 2:
        name = text(16, top + 34, view.name, "t22 b dim")
        x, y = 54.0, top + 12
    else:
        # A long name takes a line of its own, and the badges move down.
        name = text(16, top + 20, shortened(view.name, layout.shape.head - 64, 13), "t13 b dim")
        x, y = 16.0, top + 27
    return group("", name, pill(x, y, *role)[0], pill(x, y + 22, *member)[0], remark)


def _role(view: ReplicaView) -> tuple[str, str]:
    if not view.alive:
        return f"✖ {view.down}", "bad"
    if view.paused:
        return "❚❚ paused", "warn"
    if view.role == "leader":
        return f"LEADER e{view.leader_epoch}", "solid"
    if view.role == "follower":
        return "follower", "p0"
    return ("offline" if view.offline else "no role yet"), "warn dash"


def _membership(view: ReplicaView) -> tuple[str, str]:
    if view.in_isr:
        return "● in sync", "good"
    return ("◐ eligible", "info") if view.eligible else ("○ not in sync", "p0 dash")


def _remark(view: ReplicaView, snapshot: Snapshot, top: float, layout: Layout) -> str:
    """The most important remark about the replica."""
    shape = layout.shape
    room = shape.head - 24 if shape.is_wide else layout.card_width - 32
    y = top + shape.lane - 8
    unreached = [target for source, target in snapshot.disconnected if source == view.name]
    if view.fault:
        words = f"disk: {view.fault}"
    elif unreached:
        words = f"✂ cannot reach {' '.join(unreached)}"
    elif view.alive and not view.session:
        words = "session expired"
    elif view.alive and view.role == "follower":
        words = f"follows {snapshot.name(view.leader)}, e{view.leader_epoch}"
        return text(16, y, shortened(words, room, 11), "t11 soft")
    else:
        return ""
    return text(16, y, shortened(words, room, 11, wide=True), "t11 warned")


# The log.


def _log(
    view: ReplicaView, added: tuple[Cell, ...], first: int, top: float, layout: Layout
) -> list[str]:
    shown = [cell for cell in view.cells if cell.offset >= first]
    fresh = {cell.offset: None for cell in added}
    drawn = [
        _cell(
            cell,
            cell.offset - first,
            top,
            layout,
            committed=cell.offset < view.high_watermark,
            fresh=cell.offset in fresh,
        )
        for cell in shown
    ]
    if first and view.log_end_offset > view.log_start:
        drawn.append(text(layout.shape.head - 6, top + layout.shape.cells + 23, "…", "soft b r"))
    slot = view.log_end_offset - first
    if 0 <= slot < layout.columns:
        x = layout.column(slot)
        drawn.append(box(x + 1.5, top + layout.shape.cells, layout.cell - 3, CELL_HEIGHT, "slot"))
    return drawn


def _cell(
    cell: Cell, place: int, top: float, layout: Layout, *, committed: bool, fresh: bool
) -> str:
    classes = f"c e{cell.epoch % EPOCH_COLOURS}"
    classes += ("" if committed else " u") + (" new" if fresh else "")
    title = f"offset {cell.offset}, epoch {cell.epoch}, {'' if committed else 'not '}committed"
    return group(classes, *_cell_body(cell, place, top, layout), title=f"{cell.label}: {title}")


def _cell_body(cell: Cell, place: int, top: float, layout: Layout) -> tuple[str, str, str]:
    x, y = layout.column(place), top + layout.shape.cells
    size = 13 if text_width(cell.label, 13) <= layout.cell - 7 else 10
    label = shortened(cell.label, layout.cell - 5, size)
    middle = x + layout.cell / 2
    return (
        box(x + 1.5, y, layout.cell - 3, CELL_HEIGHT),
        text(middle, y + 16.5, label, f"t{size} b m"),
        text(middle, y + 29.5, f"e{cell.epoch}", "t10 m"),
    )


def _ghost(cell: Cell, place: int, top: float, layout: Layout) -> str:
    """A record that this frame's event removed from the log."""
    if not 0 <= place < layout.columns:
        return ""
    x, y = layout.column(place) + 1.5, top + layout.shape.cells
    stroke = f"M{number(x + 3)} {number(y + CELL_HEIGHT - 3)}L{number(x + layout.cell - 6)} "
    stroke += number(y + 3)
    return group(
        "gone",
        *_cell_body(cell, place, top, layout),
        path(stroke),
        title=f"{cell.label}: removed from offset {cell.offset}",
    )


def _marks(view: ReplicaView, first: int, top: float, layout: Layout) -> str:
    """HW to the left of its boundary, LEO to the right of its own: they never overlap."""
    bottom = top + layout.shape.cells + CELL_HEIGHT
    top += layout.shape.cells - 28
    high = layout.column(view.high_watermark - first)
    end = layout.column(view.log_end_offset - first)
    words = f"HW {view.high_watermark}"
    width = text_width(words, 10.5, wide=True) + 8
    label = end + 5
    if high - width < (HEAD_ROOM if layout.shape.is_wide else 0):
        # A long number at the left edge would cover the badges.
        high_left, label = high, max(label, high + width + 5)
    else:
        high_left = high - width
    return group(
        "dim",
        line(end, top + 8, end, bottom + 2, "leo"),
        text(label, top + 18.5, f"LEO {view.log_end_offset}", "t10 b soft"),
        line(high, top + 7, high, bottom + 4, "hw"),
        box(high_left, top + 7, width + 1.2, 15, "hwf", radius=3),
        text(high_left + width / 2 + 0.5, top + 18.5, words, "t10 b m hwt"),
    )


def _disk(view: ReplicaView, first: int, top: float, layout: Layout) -> str:
    if view.log_end_offset <= view.log_start or view.flushed_end == NOT_REPORTED:
        return ""
    y = top + layout.shape.cells + CELL_HEIGHT + 6
    start = layout.column(view.log_start - first)
    flushed = layout.column(view.flushed_end - first)
    end = layout.column(view.log_end_offset - first)
    drawn = []
    if flushed > start:
        drawn.append(box(start + 1.5, y - 2, flushed - start - 3, 4, "disk", radius=2))
    if end > flushed:
        drawn.append(line(max(start, flushed) + 3, y, end - 3, y, "mem"))
    words = f"on disk below {view.flushed_end}, rest in memory"
    if view.flushed_end <= view.log_start:
        words = "in memory only"
    elif view.flushed_end >= view.log_end_offset:
        words = "all on disk"
    drawn.append(text(layout.shape.head + 1.5, y + 13, words, "t10 soft"))
    return group("dim", *drawn)


# The side: a leader's view of its followers.


def _side(view: ReplicaView, snapshot: Snapshot, top: float, layout: Layout) -> str:
    if view.role != "leader":
        return ""
    lines = [(words, "t11 soft") for words in _knowledge(view, snapshot, layout)]
    if view.parked:
        waiting = " ".join(snapshot.name(broker) for broker, _ in view.parked)
        lines.append((f"fetch waits: {waiting}", "t11 soft"))
    if view.counts_on is not None and sorted(view.counts_on) != sorted(snapshot.store.isr):
        lines.append((f"⚠ counts on {{{snapshot.names(view.counts_on)}}}", "t11 b warned"))
    if view.proposed is not None:
        lines.append((f"asks for {{{snapshot.names(view.proposed)}}}", "t11 warned"))
    if not layout.shape.is_wide:
        return _below(lines, top, layout)
    x = layout.card_width - layout.shape.side + 16
    start = top + layout.shape.lane / 2 + 4 - 7.5 * (len(lines) - 1)
    return "".join(
        text(x, start + 15 * place, words, classes) for place, (words, classes) in enumerate(lines)
    )


def _below(lines: list[tuple[str, str]], top: float, layout: Layout) -> str:
    """The same in one line under the log, warnings first, because the rest may not fit."""
    warned_first = sorted(lines, key=lambda one: "warned" not in one[1])
    words = shortened(", ".join(words for words, _ in warned_first), layout.card_width - 32, 11)
    classes = warned_first[0][1] if warned_first else ""
    return text(16, top + layout.shape.lane - 8, words, classes)


def _knowledge(view: ReplicaView, snapshot: Snapshot, layout: Layout) -> list[str]:
    """The followers' log end offsets in the leader's view: one line each, or fewer."""
    known = [
        (snapshot.name(broker), "?" if end is None else str(end)) for broker, end in view.remote
    ]
    if layout.shape.is_wide and len(known) <= 2:
        lines = [f"knows {name} up to {end}" for name, end in known]
        room = layout.shape.side - 20
        if all(text_width(one, 11) <= room for one in lines):
            return lines
        return [f"{name} up to {end}" for name, end in known]
    if not known:
        return []
    words = "knows " + ", ".join(f"{name}={end}" for name, end in known)
    return wrapped(words, layout.shape.side - 20, 11) if layout.shape.is_wide else [words]
