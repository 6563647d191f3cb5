"""Judges a finished run: what became of every record.

Three outcomes stay apart: acknowledged and lost; exposed to a consumer and lost; refused but kept.
A loss that the settings do not prevent is "beyond the guarantee", not a bug.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.core import ACKS_ALL
from holdfast.lab.world.client_history import Acknowledgement, Status

if TYPE_CHECKING:
    from holdfast.lab.world.broker import SimBroker
    from holdfast.lab.world.world import World

VALID = "valid"
INVALID = "invalid"
BEYOND = "beyond the guarantee"

OUTCOMES = {
    "diverged": "two replicas hold different records at one offset, below their high watermarks",
    "lost": "acknowledged and lost",
    "exposed-lost": "a consumer could read it, no success was given, and it is gone",
    "skipped": "a reader went past a record without getting it, and got no error",
    "lost-at-consumer": "the position was committed, the work never done",
    "lost-at-producer": "the broker refused it and the producer ignored the error",
    "reordered": "one producer's records are in another order than sent",
    "duplicated": "one send is in the log twice",
    "processed-twice": "a consumer did the work twice",
    "stale-read": "a follower did not show what was acknowledged, or what the reader saw before",
    "offline": "nothing is lost, but there is no leader",
    "refused-kept": "the producer got an error, the record is in the log",
    "kept": "every acknowledged record is in the leader's log",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of the records. Lists hold labels."""

    verdict: str
    outcome: str
    reason: str
    lost: tuple[str, ...] = ()
    exposed_lost: tuple[str, ...] = ()
    refused_kept: tuple[str, ...] = ()
    diverged: tuple[int, ...] = ()
    duplicated: tuple[str, ...] = ()
    reordered: tuple[str, ...] = ()
    consumer_lost: tuple[str, ...] = ()
    processed_twice: tuple[str, ...] = ()
    producer_lost: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    offline: bool = False


def judge(world: World) -> Verdict:
    """Judge a world at the end of a run."""
    leader = world.true_leader()
    readable = _readable_keys(world, leader)
    records = list(world.history.acknowledgements.values())
    lost = [one for one in records if one.status is Status.ACKNOWLEDGED and one.key not in readable]
    exposed = [
        one
        for one in records
        if one.exposed and one.status is not Status.ACKNOWLEDGED and one.key not in readable
    ]
    refused_kept = [one for one in records if one.status is Status.REFUSED and one.key in readable]
    unseen = [
        one
        for one in records
        if one.status is Status.REFUSED
        and one.key not in readable
        and one.producer in world.fire_and_forget
    ]
    copies = _leader_keys(leader)
    facts = {
        "lost": _labels(lost),
        "exposed_lost": _labels(exposed),
        "refused_kept": _labels(refused_kept),
        "diverged": _diverged(world),
        "duplicated": _labels_of(
            world, [key for key, count in Counter(copies).items() if count > 1]
        ),
        "reordered": _reordered(world, copies),
        "consumer_lost": _consumer_lost(world),
        "processed_twice": _processed_twice(world),
        "producer_lost": _labels(unseen),
        "hidden": _labels_of(world, world.history.hidden),
        "skipped": _labels_of(world, world.history.skipped),
    }
    offline = leader is None
    outcome = _outcome(facts, offline=offline)
    verdict, reason = _guarantee(world, [*lost, *exposed], facts, outcome)
    return Verdict(
        verdict=verdict,
        outcome=outcome,
        reason=reason,
        violations=tuple(one.text for one in world.invariants.violations),
        offline=offline,
        **facts,  # type: ignore[arg-type]
    )


def _labels(records: list[Acknowledgement]) -> tuple[str, ...]:
    return tuple(one.label for one in records)


def _labels_of(world: World, keys: Iterable[int]) -> tuple[str, ...]:
    return _labels([world.history.acknowledgements[key] for key in keys])


def _readable_keys(world: World, leader: SimBroker | None) -> dict[int, None]:
    """The records that can still be read: the leader's, or without a leader those on any disk."""
    sources = [leader] if leader else list(world.brokers.values())
    return {record.key: None for one in sources for _, _, record in one.disk.records()}


def _leader_keys(leader: SimBroker | None) -> list[int]:
    return [record.key for _, _, record in leader.disk.records()] if leader else []


def _diverged(world: World) -> tuple[int, ...]:
    seen: dict[int, int] = {}
    found: dict[int, None] = {}
    for broker in world.brokers.values():
        if not broker.alive:
            continue
        for offset, _, record in broker.disk.records():
            below = offset < broker.replica.log.high_watermark
            if below and seen.setdefault(offset, record.key) != record.key:
                found[offset] = None
    return tuple(found)


def _reordered(world: World, keys: list[int]) -> tuple[str, ...]:
    records = world.history.acknowledgements
    newest: dict[str, int] = {}
    late: dict[int, None] = {}
    for key in dict.fromkeys(keys):
        producer = records[key].producer
        if key < newest.get(producer, -1):
            late[key] = None
        newest[producer] = max(key, newest.get(producer, -1))
    return _labels_of(world, late)


def _consumer_lost(world: World) -> tuple[str, ...]:
    history = world.history
    done = {(one.consumer, one.offset): None for one in history.processed}
    return tuple(
        dict.fromkeys(
            one.label
            for one in history.consumed
            if one.offset < history.committed.get(one.consumer, 0)
            and (one.consumer, one.offset) not in done
        )
    )


def _processed_twice(world: World) -> tuple[str, ...]:
    counts = Counter((one.consumer, one.key) for one in world.history.processed)
    return _labels_of(world, [key for (_, key), count in counts.items() if count > 1])


def _outcome(facts: dict[str, tuple[object, ...]], *, offline: bool) -> str:
    # Divergence first: no setting allows it, while a loss beside it may be beyond the guarantee.
    order = (
        ("diverged", "diverged"),
        ("lost", "lost"),
        ("exposed_lost", "exposed-lost"),
        ("skipped", "skipped"),
        ("consumer_lost", "lost-at-consumer"),
        ("producer_lost", "lost-at-producer"),
        ("reordered", "reordered"),
        ("duplicated", "duplicated"),
        ("processed_twice", "processed-twice"),
        ("hidden", "stale-read"),
    )
    for fact, outcome in order:
        if facts[fact]:
            return outcome
    if offline:
        return "offline"
    return "refused-kept" if facts["refused_kept"] else "kept"


def _guarantee(
    world: World, gone: list[Acknowledgement], facts: dict[str, tuple[object, ...]], outcome: str
) -> tuple[str, str]:
    """Whether the settings guarantee what did not hold, and the reason."""
    if facts["diverged"]:
        return INVALID, "no setting allows two committed records at one offset"
    if facts["skipped"]:
        return INVALID, "a reader must get every record, or an error"
    broken = [one for one in gone if not _excuse(world, one)]
    if any(_acknowledged_with_acks_all(one) for one in broken):
        return INVALID, "the settings guarantee that it is kept"
    if broken:
        return INVALID, "what a consumer can read must stay"
    if gone:
        return BEYOND, _excuse(world, gone[0])
    client_side = ("consumer_lost", "producer_lost", "reordered", "duplicated", "processed_twice")
    if any(facts[one] for one in client_side):
        return BEYOND, "the log kept its guarantee; the client's settings allow this"
    if facts["hidden"]:
        return BEYOND, "a follower may be behind; only the leader shows all that is committed"
    return VALID, OUTCOMES[outcome]


def _excuse(world: World, record: Acknowledgement) -> str:
    """Why this record may be gone; empty if it may not.

    The acks of a producer excuse the loss of its own record. They do not excuse the loss of a
    committed record, because a consumer could read it.
    """
    faults = _faults_beyond(world)
    if _acknowledged_with_acks_all(record) or record.status is not Status.ACKNOWLEDGED:
        return faults
    if record.exposed and not faults:
        return ""
    guarantee = "nothing" if record.acks == 0 else "one copy, on the leader"
    return f"acks={record.acks} guarantees {guarantee}"


def _acknowledged_with_acks_all(record: Acknowledgement) -> bool:
    """Whether the record was acknowledged with acks=all."""
    return record.status is Status.ACKNOWLEDGED and record.acks == ACKS_ALL


def _faults_beyond(world: World) -> str:
    """Why the faults exceed what the settings survive; empty if they do not."""
    invariants = world.invariants
    minimum = max(1, min(world.store.settings.min_insync_replicas, len(world.brokers)))
    if len(invariants.lossy) >= minimum:
        who = ", ".join(invariants.lossy)
        return (
            f"{who} lost written records, and min.insync.replicas={minimum} survives {minimum - 1}"
        )
    if invariants.unclean:
        return "an unclean election discarded committed records"
    return ""
