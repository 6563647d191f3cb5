"""Renders an event as one plain sentence for a person who does not know Kafka.

One renderer per kind, as in `narrate`. The words are always the same: a log *holds* records,
records are *committed* when every in-sync replica has them, a broker *acknowledges* a record to its
producer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.lab.render.wording import Words, at_offset, below, headline, spoken_list, spoken_span


def _begins(w: Words) -> str:
    replicas = w["replicas"] or ()
    if w["leader"] is None or w["leader"] < 0:
        return f"{w.list_of('replicas')} each keep a copy of the log; there is no leader yet."
    others = [w.name(broker) for broker in replicas if broker != w["leader"]]
    if not others:
        return f"{w.name(w['leader'])} keeps the only copy of the log."
    verb = "copies" if len(others) == 1 else "copy"
    return f"{w.name(w['leader'])} leads; {spoken_list(others)} {verb} its log."


def _verdict(w: Words) -> str:
    reason = f"; {w['reason']}" if w["reason"] else ""
    return f"the end: {headline(w.numbers)}{reason}."


def _became_leader(w: Words) -> str:
    return (
        f"{w.who} takes the lead: epoch {w['leader_epoch']} begins at offset {w['start_offset']}, "
        f"and as far as {w.who} knows {below(w['high_watermark'])} is committed."
    )


def _became_follower(w: Words) -> str:
    if not at_offset(w["leader"]):
        return f"{w.who} learns that epoch {w['leader_epoch']} has no leader."
    return f"{w.who} now follows {w.name(w['leader'])}, the leader of epoch {w['leader_epoch']}."


_ELECTED_BY: Mapping[str, str] = {
    "isr": "it was in sync, so it should have every committed record",
    "eligible": "it left the in-sync set but is known to hold every committed record",
    "best-log": "its log is the best of the surviving ones",
    "first-up": "it was the first to come back, whatever its log has lost",
    "unclean": "it was not in sync, so committed records may be missing from its log",
    "preferred": "it is the preferred leader",
    "designated": "an operator chose it",
    "shutdown": "the old leader is shutting down",
    "created": "the partition is new",
    "reassigned": "the partition moves",
    "majority": "a majority voted for it",
}


def _elected(w: Words) -> str:
    rule = w["rule"] or "isr"
    if rule == "none":
        return "no replica that may lead is alive: the partition is offline."
    reason = _ELECTED_BY.get(rule, f"by the rule {rule}")
    leader = w.name(w["leader"])
    return f"the controller makes {leader} leader of epoch {w['leader_epoch']}: {reason}."


def _isr_committed(w: Words) -> str:
    isr = w["isr"] or ()
    verb = "are" if len(isr) > 1 else "is"
    text = f"the store now says that {w.list_of('isr')} {verb} in sync"
    if w["eligible"]:
        text += f", and that {w.list_of('eligible')} may still be elected"
    return text + "."


def _reassigned(w: Words) -> str:
    return f"the partition now belongs on {w.list_of('replicas')}."


def _appended(w: Words) -> str:
    labels = [str(label) for label in w["records"] or ()]
    where = spoken_span(w["base_offset"], w["end_offset"])
    what = f"{spoken_list(labels)}, {where}," if 0 < len(labels) <= 4 else where
    if w["as_leader"]:
        return f"{w.who}, the leader, writes {what} to its log."
    return f"{w.who} copies {what} into its log."


def _truncated(w: Words) -> str:
    labels = [str(label) for label in w["records"] or ()]
    gone = spoken_span(w["end_offset"], w["was"])
    if 0 < len(labels) <= 4:
        gone = f"{spoken_list(labels)}, {gone}"
    if w["was"] < w["end_offset"]:
        return f"{w.who} discards its whole log and starts again at offset {w['end_offset']}."
    if w["was"] == w["end_offset"]:
        return f"{w.who} has nothing to truncate above offset {w['end_offset']}."
    return f"{w.who} truncates its log to offset {w['end_offset']} and discards {gone}."


def _high_watermark(w: Words) -> str:
    high_watermark, was = w["high_watermark"], w["was"]
    if isinstance(was, int) and high_watermark < was:
        return (
            f"{w.who} now counts only {below(high_watermark)} as committed, not up to {was} as "
            "before."
        )
    return f"{w.who} now knows that {below(high_watermark)} is committed; readers may see it."


_MESSAGES: Mapping[str, str] = {
    "AlterRequest": "the request for another in-sync set",
    "AlterResponse": "the answer about the in-sync set",
    "FetchRequest": "the request for records",
    "FetchResponse": "the answer with records",
    "ProduceRequest": "the producer's record",
    "ProduceResponse": "the answer to the producer",
    "ReadRequest": "the reader's request",
    "ReadResponse": "the answer to the reader",
    "RegisterRequest": "the request for a session",
    "RegisterResponse": "the confirmation of a session",
    "StateMessage": "the message that names the leader",
}


def _message(what: object) -> str:
    return _MESSAGES.get(str(what), f"a message ({what})")


def _fetched(w: Words) -> str:
    follower, offset = w.name(w["follower"]), w["fetch_offset"]
    held = "nothing yet" if offset <= 0 else "everything below"
    if not w["noted"]:
        return f"{w.who} receives a fetch of {follower} from offset {offset}."
    return (
        f"{w.who} receives a fetch of {follower} from offset {offset}, so {follower} holds {held}."
    )


def _fetch_answered(w: Words) -> str:
    follower, committed = w.name(w["follower"]), below(w["high_watermark"])
    if w["end_offset"] <= w["base_offset"]:
        return (
            f"{w.who} has no new records for {follower}, and reports that {committed} is committed."
        )
    what = spoken_span(w["base_offset"], w["end_offset"])
    return f"{w.who} sends {follower} {what}, and reports that {committed} is committed."


def _diverged(w: Words) -> str:
    follower = w.name(w["follower"])
    if not at_offset(w["end_offset"]):
        return f"{w.who} cannot say where the log of {follower} diverges from its own."
    return (
        f"{w.who} reports to {follower} that their logs diverge: epoch {w['epoch']} ends at offset "
        f"{w['end_offset']} here, so {follower} must truncate its log there."
    )


_ACKS: Mapping[str, str] = {
    "0": "and will not wait for an answer",
    "1": "and wants it on the leader before the answer",
    "all": "and wants it on every in-sync replica before the answer",
}


def _sent(w: Words) -> str:
    wish = _ACKS.get(w.acks(), f"with acks={w['acks']}")
    return f"{w.client('producer')} sends {w.record()} to {w.who} {wish}."


def _acknowledged(w: Words) -> str:
    if str(w["acks"]) == "0":
        return f"{w.client('producer')} counts {w.record()} as written: acks=0 has no response."
    named = w["record"] not in (None, "")
    where = f" at offset {w['offset']}" if named and at_offset(w["offset"]) else ""
    return f"{w.who} acknowledges {w.record()}{where} to {w.client('producer')}."


def _refused(w: Words) -> str:
    text = f"{w.who} refuses {w.record()}: {w.cause()}"
    return f"{text}. It stays in the log all the same." if at_offset(w["offset"]) else f"{text}."


def _consumed(w: Words) -> str:
    source = "" if w.event.broker is None else f" from {w.who}"
    where = f" at offset {w['offset']}" if w["record"] not in (None, "") else ""
    return f"{w.client('consumer')} reads {w.record()}{where}{source}."


def _power_lost(w: Words) -> str:
    kept, was = w["kept"], w["was"]
    torn = ", the last write torn in half" if w["torn"] else ""
    if isinstance(was, int) and was > kept:
        gone, verb = spoken_span(kept, was), "was" if was == kept + 1 else "were"
        return f"the power of {w.who} fails: {gone} {verb} only in memory and now gone{torn}."
    return f"the power of {w.who} fails; all of its log was on the disk and survives{torn}."


def _restarted(w: Words) -> str:
    how = "after a clean stop" if w["clean"] else "after a crash"
    return (
        f"{w.who} is back {how}: its log ends at {w['log_end_offset']}, and it remembers "
        f"{below(w['high_watermark'])} as committed."
    )


SENTENCES: Mapping[str, Callable[[Words], str]] = {
    "begins": _begins,
    "said": lambda w: str(w["text"]),
    "step": lambda w: str(w["text"]),
    "verdict": _verdict,
    "registered": lambda w: (
        f"{w.who} registers with the store and gets broker epoch {w.event.broker_epoch}."
    ),
    "became-leader": _became_leader,
    "became-follower": _became_follower,
    "went-offline": lambda w: f"{w.who} takes its replica offline: {w['reason']}.",
    "elected": _elected,
    "isr-proposed": lambda w: (
        f"{w.who} asks the store to count {w.list_of('isr')} as the in-sync replicas."
    ),
    "isr-committed": _isr_committed,
    "isr-refused": lambda w: (
        f"the controller does not accept {w.list_of('isr')} as in-sync replicas: {w.cause()}."
    ),
    "isr-applied": lambda w: (
        f"from now on {w.who} waits for {w.list_of('isr')} before it calls a record committed."
    ),
    "command-refused": lambda w: f"{w.who} refuses a command: {w.cause()}.",
    "controller": lambda w: (
        f"{'another broker' if w.event.broker is None else w.who} is the controller now, "
        f"with controller epoch {w['controller_epoch']}."
    ),
    "reassigned": _reassigned,
    "settings-stored": lambda w: (
        f"the store now has min.insync.replicas={w['min_insync_replicas']}, and the brokers "
        "apply it."
    ),
    "appended": _appended,
    "truncated": _truncated,
    "flushed": lambda w: f"{w.who} has flushed {below(w['end_offset'])}.",
    "high-watermark": _high_watermark,
    "fetch-sent": lambda w: (
        f"{w.who} asks {w.name(w['leader'])} for records from offset {w['fetch_offset']}."
    ),
    "fetched": _fetched,
    "fetch-parked": lambda w: (
        f"{w.who} has nothing for {w.name(w['follower'])} yet and parks the request."
    ),
    "fetch-answered": _fetch_answered,
    "diverged": _diverged,
    "fetch-refused": lambda w: (
        f"{w.who} rejects the request of {w.name(w['follower'])}: {w.cause()}."
    ),
    "answer-dropped": lambda w: (
        f"{w.who} ignores an answer of {w.name(w['leader'])} that came too late: {w['reason']}."
    ),
    "message-lost": lambda w: (
        f"{_message(w['what'])} from {w.name(w['source'])} to {w.name(w['target'])} never arrives."
    ),
    "sent": _sent,
    "acknowledged": _acknowledged,
    "refused": _refused,
    "unanswered": lambda w: (
        f"{w.client('producer')} gets no answer for {w.record()}: the log may or may not have it."
    ),
    "duplicate": lambda w: (
        f"{w.who} already has {w.record()} at offset {w['offset']} and does not write it twice."
    ),
    "consumed": _consumed,
    "read-refused": lambda w: (
        f"{w.client('consumer')} cannot read offset {w['offset']}: {w.cause()}."
    ),
    "committed": lambda w: (
        f"{w.client('consumer')} notes that it is done with {below(w['offset'])}."
    ),
    "processed": lambda w: f"{w.client('consumer')} has done its work on {w.record()}.",
    "crashed": lambda w: f"{w.who} dies; what it has written survives in the page cache.",
    "power-lost": _power_lost,
    "disk-lost": lambda w: f"the disk of {w.who} comes back empty.",
    "stopped": lambda w: f"{w.who} shuts down cleanly.",
    "restarted": _restarted,
    "paused": lambda w: f"{w.who} is paused; the others continue.",
    "resumed": lambda w: f"{w.who} continues, and has not noticed the pause.",
    "session-expired": lambda w: f"the store ends the session of {w.who}.",
    "cut": lambda w: f"{w.name(w['source'])} can no longer reach {w.list_of('targets')}.",
    "healed": lambda _w: "the network carries messages again.",
    "disk-failed": lambda w: f"the disk of {w.who} fails: {w.cause()}.",
    "consumer-crashed": lambda w: f"{w.client('consumer')} dies.",
}
