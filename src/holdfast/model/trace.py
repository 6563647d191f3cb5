"""The trace: one line of JSON per event, the same for a real run and a simulated one.

A trace alone must be enough to draw every replica at every step and to explain why a record is
lost. `KINDS` is the table of all events and their numbers; the stepper, `explain` and the audit
read nothing else.

A line has these keys, then the numbers of its kind:

    {"id": 7, "t": 120, "b": 1, "be": 3, "p": "events-0", "k": "appended", "why": 5, ...}

`id` counts up from 0, `t` is the time in milliseconds, `b` the broker (null for clients and the
controller), `be` its broker epoch, `p` the partition, `why` the id of its cause or null.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

SCHEMA = "holdfast-trace/1"


class Kind(NamedTuple):
    """One row of the table: the numbers an event of this kind carries, and what it means."""

    numbers: tuple[str, ...]
    meaning: str


KINDS: Mapping[str, Kind] = {
    # The scenario as a whole.
    "begins": Kind(
        ("schema", "names", "replicas", "isr", "leader", "leader_epoch", "settings", "rules"),
        "the start: the replicas (names: broker id to name) and their rules",
    ),
    "said": Kind(("text",), "a sentence of the scenario's text"),
    "step": Kind(("text",), "the next command of the scenario; its effects follow"),
    "verdict": Kind(
        ("verdict", "outcome", "lost", "exposed_lost", "refused_kept", "diverged", "reason"),
        "the end: which records are lost or kept",
    ),
    # Roles and agreement.
    "registered": Kind((), "the broker has a new broker epoch (be)"),
    "became-leader": Kind(
        ("leader_epoch", "start_offset", "log_end_offset", "high_watermark", "isr"),
        "a leader epoch begins",
    ),
    "became-follower": Kind(("leader", "leader_epoch"), "follows another broker"),
    "went-offline": Kind(("reason",), "this replica refuses every request from now on"),
    "elected": Kind(
        ("leader", "leader_epoch", "partition_epoch", "isr", "eligible", "rule"),
        "a new leader in the store; rule: isr, eligible, best-log, first-up, unclean, preferred, "
        "designated, settings, shutdown, created, reassigned, majority, none (partition offline)",
    ),
    "isr-proposed": Kind(("isr", "partition_epoch"), "the leader asks for another ISR"),
    "isr-committed": Kind(
        ("isr", "partition_epoch", "eligible"), "the store has another ISR, the leader is the same"
    ),
    "isr-refused": Kind(("isr", "error"), "the controller refused another ISR"),
    "isr-applied": Kind(("isr", "partition_epoch"), "a leader now uses this ISR"),
    "command-refused": Kind(
        ("controller_epoch", "error"), "a broker refuses a command, e.g. of a former controller"
    ),
    "controller": Kind(("controller_epoch",), "a broker has become the controller"),
    "settings-stored": Kind(
        ("min_insync_replicas",), "the store has another min.insync.replicas of the topic"
    ),
    "reassigned": Kind(("replicas", "adding", "removing"), "the assignment changed"),
    # The log of one replica.
    "appended": Kind(
        ("base_offset", "end_offset", "leader_epoch", "records", "as_leader"),
        "records written to the log (records: their labels, or an empty list)",
    ),
    "truncated": Kind(
        ("end_offset", "was", "records"), "the log was truncated; records: those removed"
    ),
    "flushed": Kind(("end_offset",), "everything below is on the disk, not only in the page cache"),
    "high-watermark": Kind(("high_watermark", "was"), "this replica's high watermark rose"),
    # Messages between replicas.
    "fetch-sent": Kind(
        ("leader", "fetch_offset", "last_fetched_epoch", "leader_epoch"), "a follower sends a fetch"
    ),
    "fetched": Kind(
        ("follower", "fetch_offset", "last_fetched_epoch", "leader_epoch", "noted"),
        "a follower's request is handled; noted: its position counts (else it is refused)",
    ),
    "fetch-parked": Kind(("follower", "fetch_offset"), "nothing to send yet: the request waits"),
    "fetch-answered": Kind(
        ("follower", "base_offset", "end_offset", "high_watermark"), "records on their way"
    ),
    "diverged": Kind(
        ("follower", "epoch", "end_offset"), "the leader reports where the logs diverge"
    ),
    "fetch-refused": Kind(("follower", "error"), "a fence or another error"),
    "answer-dropped": Kind(("leader", "reason"), "a stale answer was ignored"),
    "message-lost": Kind(("what", "source", "target"), "the network dropped a message"),
    # Clients.
    "sent": Kind(("producer", "record", "acks"), "a producer sends (b: to which broker)"),
    "acknowledged": Kind(
        ("producer", "record", "offset", "acks"), "the producer received an acknowledgement"
    ),
    "refused": Kind(("producer", "record", "error", "offset"), "the producer received an error"),
    "unanswered": Kind(("producer", "record"), "no response: the record may be kept or not"),
    "duplicate": Kind(("producer", "record", "offset"), "a retry was recognised, not appended"),
    "consumed": Kind(("consumer", "offset", "record"), "a consumer received a record"),
    "read-refused": Kind(("consumer", "offset", "error"), "a consumer received an error"),
    "committed": Kind(("consumer", "offset"), "a consumer stored its position"),
    "processed": Kind(("consumer", "offset", "record"), "a consumer's work on a record is done"),
    # Faults and repairs.
    "crashed": Kind((), "the process died; written records survive in the page cache"),
    "power-lost": Kind(("kept", "was", "torn"), "the machine failed; unflushed records are lost"),
    "disk-lost": Kind(("was",), "the disk came back empty"),
    "stopped": Kind((), "a clean shutdown"),
    "restarted": Kind(("log_end_offset", "high_watermark", "clean"), "the process is back"),
    "paused": Kind((), "the process is paused"),
    "resumed": Kind((), "the process continues"),
    "session-expired": Kind((), "the broker's session in the coordination store expired"),
    "cut": Kind(("source", "targets"), "these were disconnected (one way)"),
    "healed": Kind((), "every link works again"),
    "disk-failed": Kind(("error",), "a read or write failed"),
    "consumer-crashed": Kind(("consumer",), "a consumer died"),
}

COMMON = ("id", "t", "b", "be", "p", "k", "why")

_MAY_BE_NULL = ("b", "be", "why", "leader", "offset")
_WHOLE_NUMBERS = (
    *("id", "t", "b", "be", "why", "leader", "follower", "offset", "base_offset", "end_offset"),
    *("start_offset", "log_end_offset", "fetch_offset", "high_watermark", "was", "kept", "torn"),
    *("epoch", "leader_epoch", "partition_epoch", "controller_epoch", "last_fetched_epoch"),
)
_WORDS = (
    *("p", "k", "schema", "text", "reason", "rule", "error", "verdict", "outcome", "what"),
    *("source", "target", "producer", "record", "consumer"),
)
_LISTS_OF_NUMBERS = ("replicas", "isr", "eligible", "adding", "removing", "diverged")
_LISTS_OF_WORDS = ("records", "lost", "exposed_lost", "refused_kept", "targets")
_TABLES = ("names", "settings", "rules")

_BY_A_BROKER = (
    *("registered", "became-leader", "became-follower", "went-offline", "appended", "truncated"),
    *("flushed", "high-watermark", "fetch-sent", "fetched", "fetch-parked", "fetch-answered"),
    *("diverged", "fetch-refused", "crashed", "power-lost", "disk-lost", "stopped", "restarted"),
    *("paused", "resumed", "session-expired", "disk-failed"),
)
"""Kinds that need a broker."""


class TraceEvent(NamedTuple):
    """One event."""

    id: int
    t: int
    kind: str
    broker: int | None
    broker_epoch: int | None
    partition: str
    numbers: dict[str, Any]
    why: int | None = None

    def to_json(self) -> str:
        """One line, keys in a fixed order, so that equal runs give equal bytes."""
        line = {
            "id": self.id,
            "t": self.t,
            "b": self.broker,
            "be": self.broker_epoch,
            "p": self.partition,
            "k": self.kind,
            "why": self.why,
            **self.numbers,
        }
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def trace_hash(events: Iterable[TraceEvent]) -> str:
    """Equal runs have equal hashes, under any PYTHONHASHSEED."""
    digest = hashlib.sha256()
    for event in events:
        digest.update(event.to_json().encode())
    return digest.hexdigest()


class MalformedTraceError(ValueError):
    """A trace line that cannot be read. Says which line and why."""


def parse_trace(lines: Iterable[str]) -> Iterator[TraceEvent]:
    """Read a trace, one JSON object per line; empty lines are skipped."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _parse_line(line, number)


def _parse_line(line: str, number: int) -> TraceEvent:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise MalformedTraceError(f"line {number}: not JSON ({error})") from None
    if not isinstance(fields, dict):
        raise MalformedTraceError(f"line {number}: not a JSON object")
    for key in COMMON:
        if key not in fields:
            raise MalformedTraceError(f"line {number}: the key {key!r} is missing")
    kind = KINDS.get(fields["k"]) if isinstance(fields["k"], str) else None
    if kind is None:
        raise MalformedTraceError(f"line {number}: unknown kind {fields['k']!r}")
    missing = [name for name in kind.numbers if name not in fields]
    if missing:
        raise MalformedTraceError(f"line {number}: {fields['k']} lacks {', '.join(missing)}")
    for key, value in fields.items():
        wrong = _what_is_wrong(key, value)
        if wrong:
            raise MalformedTraceError(f"line {number}: {key} {wrong}")
    if fields["b"] is None and fields["k"] in _BY_A_BROKER:
        raise MalformedTraceError(f"line {number}: {fields['k']} needs a broker (b)")
    numbers = {key: value for key, value in fields.items() if key not in COMMON}
    return TraceEvent(
        fields["id"],
        fields["t"],
        fields["k"],
        fields["b"],
        fields["be"],
        fields["p"],
        numbers,
        fields["why"],
    )


def _what_is_wrong(key: str, value: object) -> str:
    """Why this value is invalid; empty if it is valid."""
    if value is None and key in _MAY_BE_NULL:
        return ""
    if key in _WHOLE_NUMBERS:
        return "" if isinstance(value, int) else "is not a whole number"
    if key in _WORDS:
        return "" if isinstance(value, str) else "is not text"
    if key in _LISTS_OF_NUMBERS:
        return "" if _all_are(int, value) else "is not a list of whole numbers"
    if key in _LISTS_OF_WORDS:
        return "" if _all_are(str, value) else "is not a list of texts"
    if key == "names" and isinstance(value, dict):
        known = all(number.isdecimal() for number in value) and _all_are(str, [*value.values()])
        return "" if known else "does not map broker ids to texts"
    if key in _TABLES:
        return "" if isinstance(value, dict) else "is not a JSON object"
    return ""


def _all_are(kind: type, values: object) -> bool:
    return isinstance(values, list) and all(isinstance(one, kind) for one in values)
