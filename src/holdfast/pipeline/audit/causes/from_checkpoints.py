"""Explains lost records from the files of Apache Kafka: leader-epoch checkpoints and metadata.

One epoch writes one record at an offset. So if a record was acknowledged, and the leader's log has
a later epoch's record there, or a later epoch begins below it, then the leader of that epoch did
not have the record. The controllers' metadata log says whether that leader was elected cleanly.
Without that log the producer's acks make one of the two likely, and the sentence says "most
likely".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.lab.render.wording import spoken_list
from holdfast.pipeline.audit.causes import kinds
from holdfast.pipeline.audit.causes.case import Asked, Names
from holdfast.pipeline.audit.causes.from_traces import ACKS_ALL, Reason
from holdfast.pipeline.audit.causes.leader_epochs import epoch_at, line_of, newest
from holdfast.pipeline.audit.causes.partition_history import Past, named, recreated, spoken_time
from holdfast.pipeline.audit.controllers.kraft_metadata import Election
from holdfast.pipeline.audit.findings.findings import Damage, EpochStart, ReplicaFacts


def reason_from_epochs(
    asked: Asked,
    replicas: Sequence[ReplicaFacts],
    has: Iterable[str],
    past: Past,
    names: Names,
) -> Reason | None:
    """Why acknowledged records are not in the newest log; None if there is no log at all."""
    truth = newest(replicas)
    if truth is None:
        return None
    reason = recreated(asked, past)
    if reason is None and _damages(asked, [truth]):
        reason = _damaged(asked, replicas)
    if reason is not None:
        return reason
    offset = asked.span.start
    holders = [one for one in replicas if one.broker in has and one is not truth]
    epochs = [entry.epoch for one in holders if (entry := epoch_at(one, offset)) is not None]
    wrote = min(epochs, default=past.epoch_when(asked.acked_ms))
    if not past.is_whole:
        for one in past.unclean_after(asked.acked_ms):
            begun = _begun(truth, offset, one.leader_epoch)
            if begun is not None:
                return _elected(asked, truth, begun, [one], names)
    later = _epoch_without(truth, offset, wrote)
    if later is not None:
        elections = past.between(_before(truth, later) if wrote is None else wrote, later.epoch)
        if elections:
            return _elected(asked, truth, later, elections, names)
        return _overruled(asked, truth, later, holders)
    if offset >= truth.log_end_offset:
        return _shortened(asked, truth, replicas)
    text = (
        f"No later epoch begins below offset {offset} in any log: the files were changed by "
        "something else than an election."
    )
    return Reason(kind=kinds.OUTSIDE, sentence=text, evidence=(truth.path,))


def _epoch_without(truth: ReplicaFacts, offset: int, wrote: int | None) -> EpochStart | None:
    """The epoch of the first leader that did not have the record of an offset."""
    if wrote is not None:
        later = [one for one in truth.epochs if one.epoch > wrote and one.start_offset <= offset]
        return later[0] if later else None
    found = epoch_at(truth, offset)
    # The first epoch of a log has no predecessor that could have written another record.
    return found if found is not None and found != truth.epochs[0] else None


def _begun(truth: ReplicaFacts, offset: int, epoch: int) -> EpochStart | None:
    """An epoch that begins at or below an offset, or the one that replaced it."""
    later = [one for one in truth.epochs if one.epoch >= epoch and one.start_offset <= offset]
    return later[0] if later else None


def _before(truth: ReplicaFacts, later: EpochStart) -> int:
    """The last epoch in the log before this one."""
    return max((one.epoch for one in truth.epochs if one.epoch < later.epoch), default=-1)


def _damaged(asked: Asked, replicas: Sequence[ReplicaFacts]) -> Reason | None:
    """Bytes of the batch are wrong: no broker writes that."""
    found = _damages(asked, replicas)
    if not found:
        return None
    text = (
        f"The batch of {asked.what} is damaged in {_files(len(found))}: a disk failed, or "
        "something else than the broker changed its file."
    )
    return Reason(kind=kinds.OUTSIDE, sentence=text, evidence=tuple(one.place for one in found))


def _damages(asked: Asked, replicas: Iterable[ReplicaFacts]) -> list[Damage]:
    return [
        damage
        for one in replicas
        for damage in one.damages
        if damage.first <= asked.span.start < damage.until
    ]


def _files(count: int) -> str:
    return "a file" if count == 1 else f"{count} files"


def _elected(
    asked: Asked,
    truth: ReplicaFacts,
    later: EpochStart,
    elections: Sequence[Election],
    names: Names,
) -> Reason:
    """From the controllers' records. One of these elections lost the records; prefers unclean."""
    one = next((one for one in elections if one.is_unclean), elections[0])
    leader, isr = named([one.leader], names), named(one.isr, names)
    text = f"{leader} was elected for epoch {one.leader_epoch} at {spoken_time(one.time_ms)}"
    begins = (
        f"Epoch {later.epoch} begins at offset {later.start_offset} in the log of {truth.broker}, "
        f"without {asked.what}."
    )
    evidence = (one.evidence, line_of(truth, later))
    if one.is_unclean:
        kind = kinds.UNCLEAN_ELECTION
        text = f"Unclean election: {text}, and was not in sync; {isr} was. {begins}"
    elif asked.acks in (0, 1):
        kind = kinds.LEADER_ALONE
        text = (
            f"With acks={asked.acks} the former leader alone had answered. {text}, cleanly: in "
            f"sync were {isr}. {begins}"
        )
    else:
        kind = kinds.LOST_FLUSH
        text = (
            f"{text}, cleanly: in sync were {isr}. {begins} It had the records when they were "
            "acknowledged, and most likely lost them in a power failure, before a flush."
        )
    return Reason(kind=kind, sentence=text, acks=asked.acks, copies=len(one.isr), evidence=evidence)


def _overruled(
    asked: Asked, truth: ReplicaFacts, later: EpochStart, holders: list[ReplicaFacts]
) -> Reason:
    what = asked.what
    text = (
        f"Epoch {later.epoch} begins at offset {later.start_offset} in the log of {truth.broker}: "
        f"the leader of that epoch did not have {what}."
    )
    if holders:
        names = spoken_list([one.broker for one in holders])
        text += f" {names} still {'has' if len(holders) == 1 else 'have'} what was acknowledged."
    kind, likely = kinds.UNKNOWN_CAUSE, "A trace would show whether the election was clean."
    if asked.acks == ACKS_ALL:
        kind = kinds.UNCLEAN_ELECTION
        likely = "With acks=all every in-sync replica had it: the election was most likely unclean."
    elif asked.acks is not None:
        kind = kinds.LEADER_ALONE
        likely = (
            f"With acks={asked.acks} the former leader alone had answered: the election was "
            "most likely clean."
        )
    evidence = [line_of(truth, later), *(one.path for one in holders)]
    return Reason(kind=kind, sentence=f"{text} {likely}", acks=asked.acks, evidence=tuple(evidence))


def _shortened(asked: Asked, truth: ReplicaFacts, replicas: Sequence[ReplicaFacts]) -> Reason:
    what = asked.what
    for one in replicas:
        known = one.high_watermark
        if known is not None and known > max(one.log_end_offset, asked.span.start):
            text = (
                f"The checkpoint of {one.broker} says that everything below offset {known} was "
                f"committed, but its log ends at {one.log_end_offset}: a power failure before a "
                f"flush most likely removed {what}."
            )
            return Reason(
                kind=kinds.LOST_FLUSH,
                sentence=text,
                acks=asked.acks,
                copies=len(replicas),
                evidence=(one.path,),
            )
    text = (
        f"The newest log, of {truth.broker}, ends at offset {truth.log_end_offset}, below {what}. "
        "The files do not say whether a power failure or an election took the end; a trace would."
    )
    return Reason(kind=kinds.UNKNOWN_CAUSE, sentence=text, acks=asked.acks, evidence=(truth.path,))


def reason_of_shortage(
    asked: Asked, replicas: Sequence[ReplicaFacts], lacks: Iterable[str]
) -> Reason | None:
    """Why a copy lacks what it should have, or cannot return it; None if it does not end below."""
    offset = asked.span.start
    lacking = [one for one in replicas if one.broker in lacks]
    short = [one for one in lacking if one.log_end_offset <= offset]
    if not short:
        return _damaged(asked, lacking)
    one = short[0]
    if one.is_absent:
        kind, text = kinds.OUTSIDE, f"{one.broker} should have a copy, and its folder is not there."
    elif one.log_end_offset == one.log_start_offset:
        kind, text = (
            kinds.LOST_DISK,
            f"The log of {one.broker} is empty: its disk came back without it.",
        )
    elif one.flushed is not None and one.flushed > offset:
        kind = kinds.OUTSIDE
        text = (
            f"The log of {one.broker} ends at {one.log_end_offset}, though it was flushed up to "
            f"{one.flushed}: something else than the broker changed its files."
        )
    else:
        kind = kinds.LOST_FLUSH
        text = (
            f"The log of {one.broker} ends at {one.log_end_offset}, though it had more: most "
            "likely a power failure took what was not flushed, or its file was changed."
        )
    return Reason(
        kind=kind, sentence=text, acks=asked.acks, copies=len(replicas), evidence=(one.path,)
    )


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
        text = (
            f"At offset {offset} {other.broker} has what epoch {entry.epoch} wrote, "
            f"{truth.broker} what epoch {mine.epoch} wrote: {other.broker} has not followed a "
            f"leader of epoch {mine.epoch} since."
        )
        evidence = (line_of(other, entry), line_of(truth, mine))
        return Reason(kind=kinds.STALE_REPLICA, sentence=text, evidence=evidence)
    if len(others) < 2:
        return None
    text = (
        f"All logs say that epoch {mine.epoch} wrote offset {offset}, and one epoch writes one "
        "record there: a file was damaged, or changed by something else than its broker."
    )
    return Reason(kind=kinds.OUTSIDE, sentence=text, evidence=tuple(one.path for one, _ in others))
