"""Renders the terse line of an event, as scenario files expect it.

One table has one renderer per kind; a test finds a kind without a renderer. Brokers appear by name,
sets as (b2,b3), ranges of offsets as [1,3) with the end excluded. The plain English sentences are
in `sentences`; this module offers them too, so that a caller needs one import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from holdfast.lab.render.sentences import SENTENCES
from holdfast.lab.render.wording import Names, Words, at_offset, listed, names_in, span
from holdfast.model.trace import TraceEvent

Renderer = Callable[[Words], str | None]


def line(event: TraceEvent, names: Names) -> str | None:
    """The line that a scenario expects. None for narration and steps."""
    return LINES[event.kind](Words(event, names))


def sentence(event: TraceEvent, names: Names) -> str:
    """What just happened, in one plain English sentence (sometimes two)."""
    words = Words(event, names)
    text = SENTENCES[event.kind](words)
    # A name keeps its spelling at the beginning of a sentence.
    return text if text.startswith(words.who) else text[:1].upper() + text[1:]


def names_of(events: Iterable[TraceEvent]) -> dict[int, str]:
    """The names that a trace gives to its brokers; empty if it has no `begins` event."""
    for event in events:
        if event.kind == "begins":
            return names_in(event)
    return {}


def _silent(_words: Words) -> None:
    return None


def _verdict(w: Words) -> str:
    text = f"verdict: {w['verdict']} outcome={w['outcome']}"
    for key in ("lost", "exposed_lost", "refused_kept", "diverged"):
        value = w[key]
        if value:
            text += f" {key}={listed(value) if isinstance(value, (list, tuple)) else value}"
    return text


def _became_leader(w: Words) -> str:
    return f"{w.who} becomes leader epoch={w['leader_epoch']} starts_at={w['start_offset']}"


def _elected(w: Words) -> str:
    rule = w["rule"] or "isr"
    leader = "no leader (NoReplicaOnline)" if rule == "none" else f"leader={w.name(w['leader'])}"
    text = f"controller: {leader} leader_epoch={w['leader_epoch']} isr={w.set_of('isr')}"
    if rule not in ("isr", "none"):
        text += f" rule={rule}"
    return text + _eligible(w)


def _eligible(w: Words) -> str:
    return f" eligible={w.set_of('eligible')}" if w["eligible"] else ""


def _controller(w: Words) -> str:
    return "another broker" if w.event.broker is None else w.who


def _reassigned(w: Words) -> str:
    text = f"controller: replicas={w.set_of('replicas')}"
    for key in ("adding", "removing"):
        if w[key]:
            text += f" {key}={w.set_of(key)}"
    return text


def _truncated(w: Words) -> str:
    dropped = span(w["end_offset"], w["was"]) if w["end_offset"] <= w["was"] else "everything"
    text = f"{w.who} truncates to {w['end_offset']}, drops {dropped}"
    return f"{text} {w.labels()}".rstrip()


def _high_watermark(w: Words) -> str:
    high_watermark, was = w["high_watermark"], w["was"]
    if isinstance(was, int) and high_watermark < was:
        return f"{w.who} lowers high_watermark to {high_watermark}, was {was}"
    return f"{w.who} commits up to {high_watermark}"


def _fetched(w: Words) -> str:
    return (
        f"{w.name(w['follower'])}->{w.who} Fetch epoch={w['leader_epoch']} "
        f"fetch_offset={w['fetch_offset']} last_fetched_epoch={w['last_fetched_epoch']}"
    )


def _fetch_answered(w: Words) -> str:
    what = "nothing new"
    if w["end_offset"] > w["base_offset"]:
        what = f"records {span(w['base_offset'], w['end_offset'])}"
    return f"{_to_follower(w)} {what} high_watermark={w['high_watermark']}"


def _to_follower(w: Words) -> str:
    return f"{w.who}->{w.name(w['follower'])}"


def _acknowledged(w: Words) -> str:
    who = w.client("producer") + " is" if w.event.broker is None else w.who
    verb = "acknowledged" if w.event.broker is None else "acknowledges"
    return f"{who} {verb} offset={w['offset']}"


def _refused(w: Words) -> str:
    text = f"{w.who} refuses {w['record']} {w['error']}"
    return f"{text} offset={w['offset']}" if at_offset(w["offset"]) else text


def _sent(w: Words) -> str:
    return f"{w['producer']}->{w.who} Produce {w['record']} acks={w.acks()}"


def _power_lost(w: Words) -> str:
    torn = " with a torn tail" if w["torn"] else ""
    return f"{w.who} loses power, keeps {span(0, w['kept'])}{torn}"


def _restarted(w: Words) -> str:
    clean = "" if w["clean"] else " unclean"
    return (
        f"{w.who} restarts{clean} log_end_offset={w['log_end_offset']} "
        f"high_watermark={w['high_watermark']}"
    )


LINES: Mapping[str, Renderer] = {
    "begins": _silent,
    "said": _silent,
    "step": _silent,
    "verdict": _verdict,
    "registered": lambda w: f"{w.who} registers broker_epoch={w.event.broker_epoch}",
    "became-leader": _became_leader,
    "became-follower": lambda w: (
        f"{w.who} becomes follower of {w.name(w['leader'])} epoch={w['leader_epoch']}"
    ),
    "went-offline": lambda w: f"{w.who} goes offline: {w['reason']}",
    "elected": _elected,
    "isr-proposed": lambda w: f"{w.who} proposes isr={w.set_of('isr')}",
    "isr-committed": lambda w: f"controller: isr={w.set_of('isr')}{_eligible(w)}",
    "isr-refused": lambda w: f"controller: refuses isr={w.set_of('isr')} {w['error']}",
    "isr-applied": lambda w: f"{w.who} counts on isr={w.set_of('isr')}",
    "command-refused": lambda w: (
        f"{w.who} refuses controller_epoch={w['controller_epoch']} {w['error']}"
    ),
    "controller": lambda w: f"{_controller(w)} becomes controller epoch={w['controller_epoch']}",
    "reassigned": _reassigned,
    "settings-stored": lambda w: f"store: min.insync.replicas={w['min_insync_replicas']}",
    "appended": lambda w: (
        f"{w.who} appends {span(w['base_offset'], w['end_offset'])} epoch={w['leader_epoch']}"
    ),
    "truncated": _truncated,
    "flushed": lambda w: f"{w.who} flushes up to {w['end_offset']}",
    "high-watermark": _high_watermark,
    "fetch-sent": lambda w: (
        f"{w.who} sends Fetch to {w.name(w['leader'])} fetch_offset={w['fetch_offset']}"
    ),
    "fetched": _fetched,
    "fetch-parked": lambda w: (
        f"{w.who} parks Fetch of {w.name(w['follower'])} fetch_offset={w['fetch_offset']}"
    ),
    "fetch-answered": _fetch_answered,
    "diverged": lambda w: (
        f"{_to_follower(w)} diverging_epoch={w['epoch']} end_offset={w['end_offset']}"
    ),
    "fetch-refused": lambda w: f"{_to_follower(w)} {w['error']}",
    "answer-dropped": lambda w: (
        f"{w.who} ignores the answer of {w.name(w['leader'])}: {w['reason']}"
    ),
    "message-lost": lambda w: (
        f"network: {w.name(w['source'])}->{w.name(w['target'])} {w['what']} is lost"
    ),
    "sent": _sent,
    "acknowledged": _acknowledged,
    "refused": _refused,
    "unanswered": lambda w: f"{w['producer']} gets no answer for {w['record']}",
    "duplicate": lambda w: f"{w.who} recognises {w['record']} again offset={w['offset']}",
    "consumed": lambda w: f"{w['consumer']} reads {w['record']} offset={w['offset']}",
    "read-refused": lambda w: f"{w['consumer']} is refused offset={w['offset']} {w['error']}",
    "committed": lambda w: f"{w['consumer']} commits offset={w['offset']}",
    "processed": lambda w: f"{w['consumer']} has processed {w['record']} offset={w['offset']}",
    "crashed": lambda w: f"{w.who} crashes",
    "power-lost": _power_lost,
    "disk-lost": lambda w: f"{w.who} loses its disk, drops {span(0, w['was'])}",
    "stopped": lambda w: f"{w.who} stops",
    "restarted": _restarted,
    "paused": lambda w: f"{w.who} pauses",
    "resumed": lambda w: f"{w.who} resumes",
    "session-expired": lambda w: f"{w.who} loses its session",
    "cut": lambda w: f"network: {w.name(w['source'])} disconnected from {w.set_of('targets')}",
    "healed": lambda w: (
        "network: reconnected" if w.event.broker is None else f"network: {w.who} reconnected"
    ),
    "disk-failed": lambda w: f"{w.who} disk fails: {w['error']}",
    "consumer-crashed": lambda w: f"{w['consumer']} crashes",
}
