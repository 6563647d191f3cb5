"""Fetch requests and responses, and where the logs of a follower and its leader diverge.

Since KIP-595 a fetch is also an epoch check: it names the epoch of the record before its offset. A
leader whose log has another epoch there answers with the diverging epoch instead of records.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.replica.effects import Effects
from holdfast.core.replica.log_state import LogState
from holdfast.model import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_OFFSET,
    UNKNOWN_EPOCH_END,
    BrokerEpoch,
    BrokerId,
    EpochEnd,
    ErrorCode,
    LeaderEpoch,
    Offset,
)


class Fetch(NamedTuple):
    """A request for one partition, as its replica handles it."""

    follower: BrokerId
    """NO_BROKER: a consumer's."""
    fetch_offset: Offset
    last_fetched_epoch: LeaderEpoch
    """The epoch of the record before `fetch_offset`; -1: no check."""
    current_leader_epoch: LeaderEpoch
    """The follower's leader epoch; -1 if it sends none (before KIP-320)."""
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH


class FetchAnswer(NamedTuple):
    """The response: the records from `fetch_offset` up to `end_offset`, or none.

    If `diverging` is not None, the logs diverge there and no records are sent. The driver carries
    out the effects of the request (a moved high watermark, woken requests) first.
    """

    error: ErrorCode
    fetch_offset: Offset
    end_offset: Offset
    high_watermark: Offset
    log_start_offset: Offset
    diverging: EpochEnd | None
    effects: Effects


def refusal(error: ErrorCode, log: LogState, effects: Effects = ()) -> FetchAnswer:
    """An answer that carries only an error."""
    start = log.log_start_offset
    return FetchAnswer(error, NO_OFFSET, NO_OFFSET, log.high_watermark, start, None, effects)


def served(
    fetch_offset: Offset, end_offset: Offset, log: LogState, effects: Effects = ()
) -> FetchAnswer:
    """An answer with the records of these offsets."""
    high_watermark, start = log.high_watermark, log.log_start_offset
    return FetchAnswer(
        ErrorCode.NONE, fetch_offset, end_offset, high_watermark, start, None, effects
    )


def divergence(
    log: LogState, fetch_offset: Offset, last_fetched_epoch: LeaderEpoch, *, exact: bool
) -> EpochEnd | None:
    """Where a log that has `last_fetched_epoch` just below `fetch_offset` diverges from ours.

    None if it does not. UNKNOWN_EPOCH_END if our log cannot answer.
    """
    if last_fetched_epoch == NO_EPOCH:
        return None
    epochs = log.epochs
    if last_fetched_epoch == epochs.latest_epoch and fetch_offset <= log.log_end_offset:
        return None
    if not epochs.entries and fetch_offset == log.log_start_offset:
        return None
    end = epochs.end_offset_for(last_fetched_epoch, log.log_end_offset, exact=exact)
    if end == UNKNOWN_EPOCH_END:
        return end
    if end.epoch < last_fetched_epoch or end.end_offset < fetch_offset:
        return end
    return None


def truncation_point(log: LogState, diverging: EpochEnd) -> Offset:
    """Where a follower must truncate its log, given its leader's answer (KIP-279).

    Without the epoch that the leader names, we truncate to the end of our largest smaller one and
    fetch again; each round goes to an older epoch, so there are at most as many as epochs.
    """
    if diverging == UNKNOWN_EPOCH_END:
        # Only the rule from before leader epochs is left. It can lose records.
        return log.high_watermark
    ours = log.epochs.end_offset_for(diverging.epoch, log.log_end_offset)
    if ours == UNKNOWN_EPOCH_END:
        return Offset(min(diverging.end_offset, log.log_end_offset))
    if ours.epoch != diverging.epoch:
        return Offset(min(ours.end_offset, log.log_end_offset))
    return Offset(min(ours.end_offset, diverging.end_offset, log.log_end_offset))
