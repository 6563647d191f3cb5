"""Finds the message that an event is about, so that a picture can draw an arrow.

An end of the arrow is a broker id, or the name of a node that is no broker: the producer, a
consumer, the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.lab.render.wording import Names, Words, span
from holdfast.model.trace import TraceEvent

PRODUCER = "producer"
CONSUMER = "consumer"
STORE = "store"

End = int | str


class Arrow(NamedTuple):
    source: End
    target: End
    text: str
    arrives: bool = True


def arrow_of(event: TraceEvent, names: Names) -> Arrow | None:
    """The arrow, or None if the event is not about a message."""
    renderer = _ARROWS.get(event.kind)
    if renderer is None or (event.broker is None and event.kind in _BROKER_NEEDED):
        return None
    return renderer(Words(event, names))


def _end(who: End, what: str, names: Names) -> End:
    """The end of an arrow for a node: a lost message gives only its name."""
    for broker, name in names.items():
        if name == who:
            return broker
    if isinstance(who, int):
        return who
    if who == STORE or who.startswith("controller"):
        return STORE
    return CONSUMER if what.startswith("Read") else PRODUCER


def _here(w: Words) -> End:
    return STORE if w.event.broker is None else w.event.broker


def _answer(w: Words) -> Arrow:
    what = "nothing new"
    if w["end_offset"] > w["base_offset"]:
        what = f"records {span(w['base_offset'], w['end_offset'])}"
    return Arrow(_here(w), w["follower"], f"{what}, HW {w['high_watermark']}")


def _isr(w: Words) -> str:
    return f"ISR {{{' '.join(w.name(who) for who in w['isr'] or ())}}}"


def _elected(w: Words) -> Arrow | None:
    if (w["rule"] or "isr") == "none" or not isinstance(w["leader"], int):
        return None
    return Arrow(STORE, w["leader"], f"lead epoch {w['leader_epoch']}")


def _dropped(w: Words) -> Arrow:
    return Arrow(w["leader"], _here(w), "stale answer", arrives=False)


def _lost(w: Words) -> Arrow:
    what = str(w["what"])
    source, target = (_end(w[key], what, w.names) for key in ("source", "target"))
    return Arrow(source, target, _shorter(what), arrives=False)


def _shorter(what: str) -> str:
    for ending, said in (("Request", ""), ("Response", " answer"), ("Message", "")):
        if what.endswith(ending):
            return what.removesuffix(ending) + said
    return what


_ARROWS: Mapping[str, Callable[[Words], Arrow | None]] = {
    "elected": _elected,
    "isr-proposed": lambda w: Arrow(_here(w), STORE, f"{_isr(w)}?"),
    "isr-refused": lambda w: Arrow(STORE, _here(w), f"no: {w['error']}"),
    "fetch-sent": lambda w: Arrow(_here(w), w["leader"], f"Fetch from {w['fetch_offset']}"),
    "fetched": lambda w: Arrow(w["follower"], _here(w), f"Fetch from {w['fetch_offset']}"),
    "fetch-parked": lambda w: Arrow(w["follower"], _here(w), "Fetch waits"),
    "fetch-answered": _answer,
    "diverged": lambda w: Arrow(_here(w), w["follower"], f"logs diverge at {w['end_offset']}"),
    "fetch-refused": lambda w: Arrow(_here(w), w["follower"], str(w["error"])),
    "answer-dropped": _dropped,
    "message-lost": _lost,
    "sent": lambda w: Arrow(PRODUCER, _here(w), f"{w['record']}, acks={w.acks()}"),
    "acknowledged": lambda w: Arrow(_here(w), PRODUCER, f"✓ {w['record']}"),
    "refused": lambda w: Arrow(_here(w), PRODUCER, f"✗ {w['record']}"),
    "duplicate": lambda w: Arrow(PRODUCER, _here(w), f"{w['record']} again"),
    "consumed": lambda w: Arrow(_here(w), CONSUMER, str(w["record"])),
    "read-refused": lambda w: Arrow(_here(w), CONSUMER, str(w["error"])),
}

_BROKER_NEEDED = ("sent", "acknowledged", "refused", "duplicate", "consumed", "read-refused")
