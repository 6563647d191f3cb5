"""Why records are gone, from leader-epoch checkpoints alone: what Apache Kafka leaves behind.

One epoch writes one record at an offset. So if a record was acknowledged, and the leader's line has
there what a later epoch wrote, or a later epoch begins below it, then the leader of that epoch did
not have it. Whether it was elected cleanly the files do not say; the producer's acks make one of
the two likely. All that is said here is said with that reservation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.lab.telling.wording import spoken_list
from holdfast.pipeline.audit.causes.case import Asked
from holdfast.pipeline.audit.causes.kinds import (
    LEADER_ALONE,
    LOST_FLUSH,
    OUTSIDE,
    STALE_REPLICA,
    UNCLEAN_ELECTION,
    UNKNOWN_CAUSE,
)
from holdfast.pipeline.audit.causes.reasons import ACKS_ALL, Reason
from holdfast.pipeline.audit.causes.reigns import epoch_at, line_of, newest
from holdfast.pipeline.audit.findings import EpochStart, ReplicaFacts


def reason_from_epochs(
    asked: Asked, replicas: Sequence[ReplicaFacts], has: Iterable[str]
) -> Reason | None:
    """Why acknowledged records are not in the newest log; None if there is no log at all."""
    truth = newest(replicas)
    if truth is None:
        return None
    offset = asked.span.start
    holders = [one for one in replicas if one.broker in has and one is not truth]
    epochs = [entry.epoch for one in holders if (entry := epoch_at(one, offset)) is not None]
    later = _reign_without(truth, offset, min(epochs, default=None))
    if later is not None:
        return _overruled(asked, truth, later, holders)
    if offset >= truth.log_end_offset:
        return _shortened(asked, truth, replicas)
    told = (
        f"No later epoch begins below offset {offset} in any log: the files were changed by "
        "something else than an election."
    )
    return Reason(kind=OUTSIDE, sentence=told, evidence=(truth.path,))


def _reign_without(truth: ReplicaFacts, offset: int, wrote: int | None) -> EpochStart | None:
    """The reign of the first leader that did not have what stood at an offset."""
    if wrote is not None:
        later = [one for one in truth.epochs if one.epoch > wrote and one.start_offset <= offset]
        return later[0] if later else None
    found = epoch_at(truth, offset)
    # The first reign of a log has no predecessor that could have written something else.
    return found if found is not None and found != truth.epochs[0] else None


def _overruled(
    asked: Asked, truth: ReplicaFacts, later: EpochStart, holders: list[ReplicaFacts]
) -> Reason:
    what = asked.what
    told = (
        f"Epoch {later.epoch} begins at offset {later.start_offset} in the log of {truth.broker}: "
        f"the leader of that epoch did not have {what}."
    )
    if holders:
        names = spoken_list([one.broker for one in holders])
        told += f" {names} still {'has' if len(holders) == 1 else 'have'} what was acknowledged."
    kind, likely = UNKNOWN_CAUSE, "A trace would tell whether the election was clean."
    if asked.acks == ACKS_ALL:
        kind, likely = (
            UNCLEAN_ELECTION,
            ("With acks=all every in-sync replica had it: the election was most likely unclean."),
        )
    elif asked.acks is not None:
        kind, likely = (
            LEADER_ALONE,
            (
                f"With acks={asked.acks} the former leader alone had answered: the election was "
                "most likely clean."
            ),
        )
    evidence = [line_of(truth, later), *(one.path for one in holders)]
    return Reason(kind=kind, sentence=f"{told} {likely}", acks=asked.acks, evidence=tuple(evidence))


def _shortened(asked: Asked, truth: ReplicaFacts, replicas: Sequence[ReplicaFacts]) -> Reason:
    what = asked.what
    for one in replicas:
        known = one.high_watermark
        if known is not None and known > max(one.log_end_offset, asked.span.start):
            told = (
                f"The checkpoint of {one.broker} says that everything below offset {known} was "
                f"committed, but its log ends at {one.log_end_offset}: {what} most likely went "
                "with a power failure, before a flush."
            )
            return Reason(
                kind=LOST_FLUSH,
                sentence=told,
                acks=asked.acks,
                copies=len(replicas),
                evidence=(one.path,),
            )
    told = (
        f"The newest log, of {truth.broker}, ends at offset {truth.log_end_offset}, below {what}. "
        "The files do not say whether a power failure or an election took the end; a trace would."
    )
    return Reason(kind=UNKNOWN_CAUSE, sentence=told, acks=asked.acks, evidence=(truth.path,))


def reason_of_difference(offset: int, replicas: Sequence[ReplicaFacts]) -> Reason | None:
    """Why two logs have different records at one offset; None if only one has any."""
    truth = newest(replicas)
    mine = None if truth is None else epoch_at(truth, offset)
    if truth is None or mine is None:
        return None
    others = [(one, entry) for one in replicas if (entry := epoch_at(one, offset)) is not None]
    stale = [(one, entry) for one, entry in others if entry.epoch != mine.epoch]
    if stale:
        other, entry = stale[0]
        told = (
            f"At offset {offset} {other.broker} has what epoch {entry.epoch} wrote, "
            f"{truth.broker} what epoch {mine.epoch} wrote: {other.broker} has not followed a "
            f"leader of epoch {mine.epoch} since."
        )
        evidence = (line_of(other, entry), line_of(truth, mine))
        return Reason(kind=STALE_REPLICA, sentence=told, evidence=evidence)
    if len(others) < 2:
        return None
    told = (
        f"All logs say that epoch {mine.epoch} wrote offset {offset}, and one epoch writes one "
        "record there: a file was damaged, or changed by something else than its broker."
    )
    return Reason(kind=OUTSIDE, sentence=told, evidence=tuple(one.path for one, _ in others))
