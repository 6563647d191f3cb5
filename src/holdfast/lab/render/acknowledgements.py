"""The clients' side of a scenario: answers to producers, positions of consumers.

Every acknowledged record is judged after every event. It is safe while the leader in the store has
it; without a running leader, while any running replica has it. It is endangered while only other
logs have it: no consumer can read it. It is lost when no log has it, on a running broker or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.lab.render.views import (
    Acknowledgement,
    Answer,
    Cell,
    ConsumerView,
    ReplicaView,
    Status,
    VerdictView,
)
from holdfast.lab.render.wording import acks_word
from holdfast.model.trace import TraceEvent

_Key = tuple[str, str]
"""Producer and record."""


class ClientViews:
    """Every record that was sent, and every consumer, in order of appearance."""

    def __init__(self) -> None:
        self._acknowledgements: dict[_Key, Acknowledgement] = {}
        self._consumers: dict[str, ConsumerView] = {}
        self._logs: dict[int, _Log] = {}
        self._by_label: dict[str, tuple[_Key, ...]] = {}
        self._by_offset: dict[int, tuple[_Key, ...]] = {}
        self._touched: dict[_Key, None] = {}
        self._situation: object = None

    def acknowledgements(self) -> tuple[Acknowledgement, ...]:
        return tuple(self._acknowledgements.values())

    def consumers(self) -> tuple[ConsumerView, ...]:
        return tuple(self._consumers.values())

    def take(self, event: TraceEvent) -> None:
        handler = _HANDLERS.get(event.kind)
        if handler is not None:
            handler(self, event)

    def judge(
        self,
        replicas: tuple[ReplicaView, ...],
        leader: int | None,
        verdict: VerdictView | None,
        moved: tuple[Cell, ...],
    ) -> None:
        """Find where every record is, and judge each acknowledged one.

        Looks only at the records that the event can have changed: those that moved in or out of a
        log, or all of them after a crash, a restart or an election.
        """
        renewed = self._renew(replicas)
        alive = {view.id: None for view in replicas if view.alive}
        situation = (tuple(alive), leader, verdict)
        if situation != self._situation or (renewed and not moved):
            self._touched = dict.fromkeys(self._acknowledgements)
        for cell in moved:
            for key in self._by_label.get(cell.label, ()) + self._by_offset.get(cell.offset, ()):
                self._touched[key] = None
        readable = {leader: None} if leader is not None and leader in alive else alive
        for key in self._touched:
            self._acknowledgements[key] = self._judge_one(
                self._acknowledgements[key], readable, verdict
            )
        self._touched = {}
        self._situation = situation

    def _renew(self, replicas: tuple[ReplicaView, ...]) -> bool:
        """Index the logs that changed again; returns whether any did."""
        renewed = False
        for view in replicas:
            log = self._logs.get(view.id)
            if log is None or not log.is_of(view):
                self._logs[view.id] = _Log(view)
                renewed = True
        return renewed

    def _judge_one(
        self, entry: Acknowledgement, readable: Mapping[int, None], verdict: VerdictView | None
    ) -> Acknowledgement:
        copies = {broker: log.copies_of(entry) for broker, log in self._logs.items()}
        held = tuple(broker for broker, count in copies.items() if count)
        status: Status = entry.answer
        if entry.answer == "acknowledged" and not any(broker in readable for broker in held):
            # A record sent with acks=0 is taken for written before it arrives anywhere.
            arrived = entry.offset is not None or entry.copies > 0 or entry.status == "lost"
            status = "endangered" if held else "lost" if arrived else "sent"
        if verdict is not None and entry.record in verdict.lost:
            status = "lost"
        most = max(copies.values(), default=0)
        if (held, status, most) == (entry.held, entry.status, entry.copies):
            return entry
        return replace(entry, held=held, status=status, copies=most)

    # Producers.

    def _change(self, event: TraceEvent, answer: Answer, **changes: Any) -> None:
        key = producer, record = _who(event, "producer"), _record(event)
        known = self._acknowledgements.get(key)
        if known is None:
            acks = acks_word(event.numbers.get("acks", ""))
            known = Acknowledgement(producer=producer, record=record, acks=acks)
            self._by_label[record] = (*self._by_label.get(record, ()), key)
        self._acknowledgements[key] = replace(known, answer=answer, **changes)
        self._touched[key] = None

    def _on_sent(self, event: TraceEvent) -> None:
        known = self._acknowledgements.get((_who(event, "producer"), _record(event)))
        # An acknowledgement stays valid, whatever a later retry does.
        if known is None or known.answer != "acknowledged":
            acks = acks_word(event.numbers["acks"])
            # With acks=0 there is no answer: the producer takes the record for written immediately.
            self._change(event, "acknowledged" if acks == "0" else "sent", acks=acks)

    def _on_acknowledged(self, event: TraceEvent) -> None:
        offset = event.numbers["offset"]
        offset = offset if isinstance(offset, int) and offset >= 0 else None
        log = self._logs.get(event.broker) if event.broker is not None else None
        epoch = log.epoch_at(offset) if log is not None and offset is not None else None
        if offset is not None:
            key = (_who(event, "producer"), _record(event))
            self._by_offset[offset] = (*self._by_offset.get(offset, ()), key)
        self._change(
            event,
            "acknowledged",
            offset=offset,
            epoch=epoch,
            error="",
            acks=acks_word(event.numbers["acks"]),
        )

    def _on_refused(self, event: TraceEvent) -> None:
        self._change(event, "refused", error=str(event.numbers["error"]))

    def _on_unanswered(self, event: TraceEvent) -> None:
        self._change(event, "unanswered")

    # Consumers.

    def _set(self, event: TraceEvent, **changes: Any) -> None:
        name = _who(event, "consumer")
        known = self._consumers.get(name, ConsumerView(name=name))
        self._consumers[name] = replace(known, **changes)

    def _on_consumed(self, event: TraceEvent) -> None:
        offset = event.numbers["offset"]
        self._set(event, position=offset + 1, record=_record(event), error="", alive=True)

    def _on_read_refused(self, event: TraceEvent) -> None:
        self._set(event, position=event.numbers["offset"], error=str(event.numbers["error"]))

    def _on_committed(self, event: TraceEvent) -> None:
        self._set(event, committed=event.numbers["offset"])

    def _on_processed(self, event: TraceEvent) -> None:
        self._set(event, record=_record(event))

    def _on_consumer_crashed(self, event: TraceEvent) -> None:
        self._set(event, alive=False)


_HANDLERS: Mapping[str, Callable[[ClientViews, TraceEvent], None]] = {
    name.removeprefix("_on_").replace("_", "-"): handler
    for name, handler in vars(ClientViews).items()
    if name.startswith("_on_")
}


class _Log:
    """An index of one replica's cells by offset and label."""

    def __init__(self, view: ReplicaView) -> None:
        self._view = view
        self._start = view.log_start
        self._first = view.cells[0].offset if view.cells else view.log_end_offset
        self._by_offset: dict[int, Cell] = {cell.offset: cell for cell in view.cells}
        self._by_label: dict[str, int] = {}
        for cell in view.cells:
            self._by_label[cell.label] = self._by_label.get(cell.label, 0) + 1

    def is_of(self, view: ReplicaView) -> bool:
        mine = self._view
        return mine.cells is view.cells and mine.log_end_offset == view.log_end_offset

    def epoch_at(self, offset: int) -> int | None:
        cell = self._by_offset.get(offset)
        return None if cell is None else cell.epoch

    def copies_of(self, entry: Acknowledgement) -> int:
        if entry.offset is None:
            return self._by_label.get(entry.record, 0)
        if self._start <= entry.offset < self._first:
            return 1  # Older than the cells that a view keeps: the log was not truncated there.
        cell = self._by_offset.get(entry.offset)
        if cell is not None and cell.anonymous:
            return int(entry.epoch in (None, cell.epoch))
        return self._by_label.get(entry.record, 0)


def _who(event: TraceEvent, key: str) -> str:
    return str(event.numbers.get(key) or key)


def _record(event: TraceEvent) -> str:
    """The record's label; a record without one is called by its offset."""
    label = event.numbers.get("record")
    return str(event.numbers.get("offset")) if label in (None, "") else str(label)
