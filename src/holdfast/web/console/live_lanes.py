"""The live picture of one partition: the stepper's drawing of what is known right now.

With a trace, the stepper's own state (`World`) follows the events. Without one, or for what a trace
cannot show, such as a broker that died by itself, the observed numbers are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from holdfast.lab.render.folding import World
from holdfast.lab.render.frames import Frame
from holdfast.lab.render.narrate import names_of, sentence
from holdfast.lab.render.views import NOT_REPORTED, Cell, ReplicaView, Role, Snapshot, StoreView
from holdfast.model.trace import TraceEvent
from holdfast.web.console.reading.observation import (
    DOWN,
    OFFLINE,
    Observation,
    PartitionFacts,
    ReplicaFacts,
)
from holdfast.web.layout import NARROW, WIDE, layout_of
from holdfast.web.svg import parts

MOST_CELLS: Final = 30
_OF_CLIENTS: Final = ("sent", "acknowledged", "refused", "unanswered", "duplicate", "consumed")
"""A picture of each acknowledged record would grow for ever."""
ROUTINE: Final = (
    *("fetch-sent", "fetched", "fetch-parked", "fetch-answered", "appended", "high-watermark"),
    *("flushed", "begins", *_OF_CLIENTS),
)
"""Kinds that every record causes: no sentence for them."""
_DOWN: Final = {"killed": "killed", "power-lost": "lost power", "stopped": "stopped"}


class LiveWorld:
    """Follows the trace of one partition."""

    def __init__(self, events: Sequence[TraceEvent]) -> None:
        self._world = World()
        self._names = names_of(events)
        self.sentence = ""
        """The last event that was not routine, in words."""
        self.take(events)

    def take(self, events: Iterable[TraceEvent]) -> None:
        for event in events:
            if event.kind not in _OF_CLIENTS:
                self._world.apply(event)
            if event.kind not in ROUTINE:
                self.sentence = sentence(event, self._names)

    def snapshot(self) -> Snapshot:
        return self._world.snapshot()


def observed(partition: PartitionFacts, seen: Observation, traced: Snapshot | None) -> Snapshot:
    """What to draw: the trace's state if there is one, corrected by the observation."""
    known = {view.id: view for view in traced.replicas} if traced else {}
    views = tuple(
        _view(partition, seen, broker, known.get(broker)) for broker in sorted(partition.replicas)
    )
    if traced and traced.store.leader_epoch >= partition.leader_epoch:
        return replace(traced, replicas=views)
    store = StoreView(
        leader=partition.leader if partition.leader >= 0 else None,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        eligible=partition.eligible or (),
    )
    return replace(traced or Snapshot(), replicas=views, store=store)


def _view(
    partition: PartitionFacts, seen: Observation, broker: int, traced: ReplicaView | None
) -> ReplicaView:
    facts = seen.brokers.get(broker)
    state = facts.state if facts else OFFLINE
    condition: dict[str, Any] = {
        "in_isr": broker in partition.isr,
        "eligible": broker in (partition.eligible or ()),
        "alive": state not in DOWN,
        "paused": state == "paused",
        "down": _DOWN.get(state, state),
    }
    copy = partition.copies.get(broker)
    if traced is not None and not traced.alive and not condition["alive"]:
        base = traced  # it knows what the fault left of the log
    elif copy is None or copy.log_end is None:
        base = traced or ReplicaView(id=broker, name=f"b{broker}")
    elif traced is not None and traced.log_end_offset >= copy.log_end:
        base = replace(traced, log_start=max(traced.log_start, copy.log_start or 0))
    else:
        base = _of_facts(partition, copy, traced)
    fault = next((one for one in facts.faults if one.startswith("disk")), "") if facts else ""
    return replace(base, **condition, fault=fault.removeprefix("disk ") or base.fault)


def _of_facts(
    partition: PartitionFacts, copy: ReplicaFacts, traced: ReplicaView | None
) -> ReplicaView:
    end = copy.log_end or 0
    high = copy.high_watermark
    if high is None:
        # Only the leader's high watermark is known: a follower's is at most that.
        high = min(end, partition.end or 0)
    role: Role = "follower"
    if copy.broker == partition.leader:
        role = "leader"
    elif copy.role == "offline":
        role = "offline"
    view = traced or ReplicaView(id=copy.broker, name=f"b{copy.broker}")
    return replace(
        view,
        role=role,
        leader=partition.leader if partition.leader >= 0 else None,
        leader_epoch=partition.leader_epoch if copy.leader_epoch is None else copy.leader_epoch,
        log_start=copy.log_start or 0,
        log_end_offset=end,
        high_watermark=high,
        flushed_end=NOT_REPORTED if copy.flushed is None else copy.flushed,
        cells=_cells(view.cells, partition, copy, end),
    )


def _cells(
    known: tuple[Cell, ...], partition: PartitionFacts, copy: ReplicaFacts, end: int
) -> tuple[Cell, ...]:
    """The newest cells, with the epochs of the trace, or else those that the leader named."""
    epochs = {cell.offset: cell.epoch for cell in known}
    first = max(copy.log_start or 0, end - MOST_CELLS)
    return tuple(
        Cell(offset, epochs.get(offset, partition.epoch_at(offset)), str(offset))
        for offset in range(first, end)
    )


def drawn(snapshot: Snapshot) -> dict[str, Any]:
    """The picture in both shapes; the page shows the one that fits."""
    frame = live_frame(snapshot)
    pictures: dict[str, Any] = {}
    for name, shape in (("wide", WIDE), ("narrow", NARROW)):
        layout = layout_of([frame], shape)
        pictures[name] = {
            "width": round(layout.width),
            "height": round(layout.height),
            "parts": parts(frame, layout),
        }
    return pictures


def live_frame(snapshot: Snapshot) -> Frame:
    """The stepper draws frames; this one is of no event."""
    return Frame(
        event=0,
        time_ms=0,
        kind="live",
        broker=None,
        why=None,
        line=None,
        sentence="",
        narration="",
        step=0,
        step_text="",
        snapshot=snapshot,
    )
