"""The text of chips: one for each produced record, one for each reader.

A status shows as a sign, a word and a colour. If a scenario has many records, neighbours with the
same status share a chip; a lost record always has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.lab.render.views import Acknowledgement, ConsumerView, Snapshot, Status, alike
from holdfast.web.drawing import pill_width, text_width

MOST_CHIPS = 14


class Look(NamedTuple):
    sign: str
    word: str
    classes: str


LOOKS: Mapping[Status, Look] = {
    "sent": Look("…", "waiting", "p0 dash"),
    "acknowledged": Look("✓", "acknowledged", "good"),
    "refused": Look("✗", "refused", "p0"),
    "unanswered": Look("?", "no answer", "warn dash"),
    "endangered": Look("⚠", "in danger", "warn"),
    "lost": Look("✖", "LOST", "lost"),
}


class Chip(NamedTuple):
    title: str
    word: str
    classes: str
    hint: str

    @property
    def width(self) -> float:
        if not self.word:
            return pill_width(self.title)
        return max(text_width(self.title, 13), text_width(self.word, 10.5), 36) + 18


def store_chips(snapshot: Snapshot) -> list[Chip]:
    """The state in the coordination store, one pill per item, without a second line."""
    store = snapshot.store
    chips = [
        (f"leader {snapshot.name(store.leader)}", "lost" if store.leader is None else "solid"),
        (f"epoch {store.leader_epoch}", "p0"),
        (f"in sync {{{snapshot.names(store.isr)}}}", "good"),
    ]
    if store.eligible:
        chips.append((f"eligible {{{snapshot.names(store.eligible)}}}", "info"))
    if store.rule:
        chips.append((f"by rule: {store.rule}", "warn" if store.rule == "unclean" else "p0"))
    return [Chip(words, "", classes, "") for words, classes in chips]


def produced_chips(snapshot: Snapshot) -> list[Chip]:
    return [
        _produced(group[0], snapshot) if len(group) == 1 else _together(group)
        for group in alike(snapshot.acknowledgements, MOST_CHIPS)
    ]


def _together(group: Sequence[Acknowledgement]) -> Chip:
    look = LOOKS[group[0].status]
    title = f"{look.sign} {group[0].record} to {group[-1].record}"
    return Chip(title, f"{len(group)} {look.word}", look.classes, f"{len(group)} records")


def _produced(produced: Acknowledgement, snapshot: Snapshot) -> Chip:
    look = LOOKS[produced.status]
    word = look.word
    if produced.status == "refused" and produced.held:
        word = "refused, kept"
    if produced.copies > 1:
        word = f"{word}, twice" if produced.copies == 2 else f"{word}, {produced.copies} times"
    if produced.answer == "acknowledged" and produced.acks == "0":
        word = f"{'assumed' if produced.status in ('sent', 'acknowledged') else word}, acks=0"
    elif produced.status == "acknowledged" and produced.acks not in ("all", ""):
        word = f"{word}, acks={produced.acks}"
    where = f"on {snapshot.names(produced.held)}" if produced.held else "on no log"
    offset = "" if produced.offset is None else f" at offset {produced.offset}"
    error = f", {produced.error}" if produced.error else ""
    hint = f"{produced.record}{offset}, acks={produced.acks}: {look.word}{error}, {where}"
    return Chip(f"{look.sign} {produced.record}", word, look.classes, hint)


def reader_chips(snapshot: Snapshot) -> list[Chip]:
    return [_reader(consumer) for consumer in snapshot.consumers]


def _reader(consumer: ConsumerView) -> Chip:
    where = "has read nothing" if consumer.position is None else f"next: {consumer.position}"
    done = "" if consumer.committed is None else f", committed: {consumer.committed}"
    if not consumer.alive:
        return Chip(f"✖ {consumer.name}", f"dead{done}", "p0 dash", consumer.name)
    if consumer.error:
        return Chip(consumer.name, f"{where}, {consumer.error}", "warn", consumer.error)
    return Chip(consumer.name, where + done, "info", consumer.name)
