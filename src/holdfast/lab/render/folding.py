"""Folds trace events into the state that they describe.

A `World` takes one event after another and returns a `Snapshot` on request. It trusts the trace: an
event sets the numbers that it carries, and nothing is computed that the trace contains. Only one
rule is known here, what survives a fault: a crash keeps the log, a power loss truncates it to the
offset in the event, a lost disk empties it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.lab.render.acknowledgements import ClientViews
from holdfast.lab.render.views import Cell, ReplicaView, Role, Snapshot, StoreView, VerdictView
from holdfast.lab.render.wording import names_in
from holdfast.model.trace import TraceEvent

MOST_CELLS = 512
"""Cells kept per replica. A picture shows fewer; without a bound, a real broker's trace of n
records would cost n² memory."""


class Change(NamedTuple):
    """What one event did to the log of its broker."""

    added: tuple[Cell, ...] = ()
    removed: tuple[Cell, ...] = ()


NO_CHANGE = Change()


class World:
    """The state after the events so far."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._replicas: dict[int, ReplicaView] = {}
        self._store = StoreView()
        self._disconnected: dict[tuple[str, str], None] = {}
        self._rules: tuple[tuple[str, str], ...] = ()
        self._verdict: VerdictView | None = None
        self._clients = ClientViews()
        self._change = NO_CHANGE

    def apply(self, event: TraceEvent) -> Change:
        """Take one event. Events of other kinds change nothing."""
        self._change = NO_CHANGE
        if event.broker is not None and event.broker >= 0:
            self._meet(event.broker)
        if event.kind in _CHANGES:
            self._set(event, **_CHANGES[event.kind](event))
        elif event.kind in _HANDLERS:
            _HANDLERS[event.kind](self, event)
        self._clients.take(event)
        moved = self._change.added + self._change.removed
        replicas = tuple(self._replicas.values())
        self._clients.judge(replicas, self._store.leader, self._verdict, moved)
        return self._change

    def snapshot(self) -> Snapshot:
        return Snapshot(
            replicas=tuple(self._replicas.values()),
            store=self._store,
            acknowledgements=self._clients.acknowledgements(),
            consumers=self._clients.consumers(),
            disconnected=tuple(self._disconnected),
            rules=self._rules,
            verdict=self._verdict,
        )

    # Small tools of the handlers.

    def _meet(self, broker: int) -> ReplicaView:
        """The replica on this broker, created if new: a trace may begin in the middle."""
        if broker not in self._replicas:
            name = self._names.get(broker, f"b{broker}")
            self._replicas[broker] = ReplicaView(id=broker, name=name)
            self._replicas = dict(sorted(self._replicas.items()))
        return self._replicas[broker]

    def _set(self, event: TraceEvent, **changes: Any) -> None:
        """Change the replica of the event's broker, if the event has one."""
        if event.broker is not None:
            self._replicas[event.broker] = replace(self._meet(event.broker), **changes)

    def _name(self, who: object) -> str:
        return self._names.get(who, f"b{who}") if isinstance(who, int) else str(who)

    def _set_store(self, store: StoreView) -> None:
        self._store = store
        for broker, view in self._replicas.items():
            in_isr, eligible = broker in store.isr, broker in store.eligible
            if (view.in_isr, view.eligible) != (in_isr, eligible):
                self._replicas[broker] = replace(view, in_isr=in_isr, eligible=eligible)

    def _truncate_log(self, event: TraceEvent, end: int) -> None:
        """Truncate the log to `end`, and record what was removed."""
        if event.broker is None:
            return
        view = self._meet(event.broker)
        kept = tuple(cell for cell in view.cells if cell.offset < end)
        self._change = Change(removed=view.cells[len(kept) :])
        self._set(
            event,
            cells=kept,
            log_end_offset=end,
            high_watermark=min(view.high_watermark, end),
            flushed_end=min(view.flushed_end, end),
        )

    def _others(self, leader: int, log_end_offset: int) -> tuple[tuple[int, int | None], ...]:
        """A new leader's remote offsets: 0 if its log is empty, else unknown."""
        known = 0 if log_end_offset == 0 else None
        return tuple((broker, known) for broker in self._replicas if broker != leader)

    # The scenario as a whole.

    def _on_begins(self, event: TraceEvent) -> None:
        numbers = event.numbers
        self._names = names_in(event)
        self._rules = _pairs(numbers.get("rules")) + _pairs(numbers.get("settings"))
        leader = _broker(numbers.get("leader"))
        epoch = _number(numbers.get("leader_epoch"), -1)
        for broker in _brokers(numbers.get("replicas")):
            self._meet(broker)
        for broker in self._replicas:
            role: Role = "follower" if leader is not None else "none"
            self._replicas[broker] = replace(
                self._meet(broker), role=role, leader=leader, leader_epoch=epoch
            )
        isr = _brokers(numbers.get("isr"))
        if leader is not None:
            self._replicas[leader] = replace(
                self._meet(leader), role="leader", remote=self._others(leader, 0), counts_on=isr
            )
        self._set_store(StoreView(leader=leader, leader_epoch=epoch, isr=isr))

    def _on_verdict(self, event: TraceEvent) -> None:
        numbers = event.numbers
        self._verdict = VerdictView(
            verdict=str(numbers.get("verdict")),
            outcome=str(numbers.get("outcome")),
            reason=str(numbers.get("reason") or ""),
            lost=_labels(numbers.get("lost")),
            exposed_lost=_labels(numbers.get("exposed_lost")),
            refused_kept=_labels(numbers.get("refused_kept")),
            diverged=_labels(numbers.get("diverged")),
        )

    # Roles and the ISR.

    def _on_became_leader(self, event: TraceEvent) -> None:
        numbers = event.numbers
        end = _number(numbers["log_end_offset"], 0)
        assert event.broker is not None
        self._set(
            event,
            role="leader",
            leader=event.broker,
            leader_epoch=numbers["leader_epoch"],
            log_end_offset=end,
            high_watermark=numbers["high_watermark"],
            remote=self._others(event.broker, end),
            counts_on=_brokers(numbers["isr"]),
            proposed=None,
            parked=(),
        )

    def _on_elected(self, event: TraceEvent) -> None:
        numbers = event.numbers
        rule = str(numbers.get("rule") or "isr")
        self._set_store(
            StoreView(
                leader=None if rule == "none" else _broker(numbers["leader"]),
                leader_epoch=numbers["leader_epoch"],
                partition_epoch=_number(numbers.get("partition_epoch"), -1),
                isr=_brokers(numbers["isr"]),
                eligible=_brokers(numbers.get("eligible")),
                rule="" if rule == "isr" else rule,
            )
        )

    def _on_isr_committed(self, event: TraceEvent) -> None:
        numbers = event.numbers
        self._set_store(
            replace(
                self._store,
                isr=_brokers(numbers["isr"]),
                partition_epoch=_number(numbers.get("partition_epoch"), -1),
                eligible=_brokers(numbers.get("eligible")),
            )
        )

    def _on_reassigned(self, event: TraceEvent) -> None:
        for broker in _brokers(event.numbers["replicas"]):
            self._meet(broker)

    # The log of one replica.

    def _on_appended(self, event: TraceEvent) -> None:
        numbers = event.numbers
        base, end = numbers["base_offset"], numbers["end_offset"]
        labels = _labels(numbers["records"])
        named = len(labels) == end - base
        # At most MOST_CELLS rounds: older records would not be shown.
        added = tuple(
            Cell(offset, numbers["leader_epoch"], labels[offset - base] if named else str(offset))
            for offset in range(max(base, end - MOST_CELLS), end)
        )
        assert event.broker is not None
        view = self._meet(event.broker)
        older = tuple(cell for cell in view.cells if cell.offset < base)
        self._set(
            event,
            cells=(older + added)[-MOST_CELLS:],
            log_end_offset=end,
            log_start=base if not older and view.log_end_offset == 0 else view.log_start,
        )
        self._change = Change(added=added, removed=view.cells[len(older) :])

    def _on_truncated(self, event: TraceEvent) -> None:
        end = event.numbers["end_offset"]
        if end > event.numbers["was"]:
            # The leader's log begins beyond the end of this one: it starts again, empty.
            self._truncate_log(event, 0)
            self._set(event, log_start=end, log_end_offset=end)
        else:
            self._truncate_log(event, end)

    # Messages between replicas.

    def _on_fetched(self, event: TraceEvent) -> None:
        assert event.broker is not None
        follower, offset = event.numbers["follower"], event.numbers["fetch_offset"]
        remote: dict[int, int | None] = dict(self._meet(event.broker).remote)
        if event.numbers["noted"]:
            remote[follower] = offset
        self._set(event, remote=tuple(sorted(remote.items())))
        self._on_fetch_over(event)  # A newer request takes the place of a parked one.

    def _on_fetch_parked(self, event: TraceEvent) -> None:
        assert event.broker is not None
        parked = dict(self._meet(event.broker).parked)
        parked[event.numbers["follower"]] = event.numbers["fetch_offset"]
        self._set(event, parked=tuple(sorted(parked.items())))

    def _on_fetch_over(self, event: TraceEvent) -> None:
        assert event.broker is not None
        parked = dict(self._meet(event.broker).parked)
        if parked.pop(event.numbers["follower"], None) is not None:
            self._set(event, parked=tuple(parked.items()))

    # Faults and repairs.

    def _on_stopped(self, event: TraceEvent) -> None:
        assert event.broker is not None
        end = self._meet(event.broker).log_end_offset  # A clean shutdown flushes everything.
        self._set(event, alive=False, paused=False, down="stopped", flushed_end=end, **_NO_ROLE)

    def _on_power_lost(self, event: TraceEvent) -> None:
        kept = event.numbers["kept"]
        self._truncate_log(event, kept)
        self._set(event, alive=False, paused=False, down="lost power", flushed_end=kept, **_NO_ROLE)

    def _on_disk_lost(self, event: TraceEvent) -> None:
        self._truncate_log(event, 0)
        self._set(event, log_start=0)

    def _on_restarted(self, event: TraceEvent) -> None:
        numbers = event.numbers
        self._truncate_log(event, numbers["log_end_offset"])
        self._set(
            event,
            alive=True,
            down="",
            fault="",
            high_watermark=numbers["high_watermark"],
            broker_epoch=event.broker_epoch,
            **_NO_ROLE,
        )

    def _on_cut(self, event: TraceEvent) -> None:
        source = self._name(event.numbers["source"])
        for target in event.numbers["targets"]:
            self._disconnected[(source, self._name(target))] = None

    def _on_healed(self, _event: TraceEvent) -> None:
        self._disconnected = {}


_NO_LEADERSHIP: Mapping[str, Any] = {
    "remote": (),
    "counts_on": None,
    "proposed": None,
    "parked": (),
}
_NO_ROLE: Mapping[str, Any] = {"role": "none", "leader": None, **_NO_LEADERSHIP}

_CHANGES: Mapping[str, Callable[[TraceEvent], dict[str, Any]]] = {
    "registered": lambda event: {"broker_epoch": event.broker_epoch, "session": True},
    "became-follower": lambda event: {
        "role": "follower",
        "leader": _broker(event.numbers["leader"]),
        "leader_epoch": event.numbers["leader_epoch"],
        **_NO_LEADERSHIP,
    },
    "went-offline": lambda _: {"role": "offline", **_NO_LEADERSHIP},
    "isr-proposed": lambda event: {"proposed": _brokers(event.numbers["isr"])},
    "isr-refused": lambda _: {"proposed": None},
    "isr-applied": lambda event: {"counts_on": _brokers(event.numbers["isr"]), "proposed": None},
    "flushed": lambda event: {"flushed_end": event.numbers["end_offset"]},
    "high-watermark": lambda event: {"high_watermark": event.numbers["high_watermark"]},
    "crashed": lambda _: {"alive": False, "paused": False, "down": "crashed", **_NO_ROLE},
    "paused": lambda _: {"paused": True},
    "resumed": lambda _: {"paused": False},
    "session-expired": lambda _: {"session": False},
    "disk-failed": lambda event: {"fault": str(event.numbers["error"])},
}
"""The events that only set fields of their broker's replica."""

_HANDLERS: Mapping[str, Callable[[World, TraceEvent], None]] = {
    name.removeprefix("_on_").replace("_", "-"): handler
    for name, handler in vars(World).items()
    if name.startswith("_on_")
} | dict.fromkeys(("fetch-answered", "fetch-refused", "diverged"), World._on_fetch_over)


# Reading a trace's values: a broker may be absent (-1 or null), a list may be null.


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def _broker(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _brokers(value: Iterable[int] | None) -> tuple[int, ...]:
    return tuple(value or ())


def _labels(value: object) -> tuple[str, ...]:
    if not value or isinstance(value, bool):
        return ()
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else (str(value),)


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    if isinstance(value, Mapping):
        return tuple((str(key), _spoken(item)) for key, item in value.items() if item != [])
    return tuple((item, "") for item in _labels(value))


def _spoken(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
