"""All copies of a stretch of one partition, compared offset by offset.

Where the truth's file is damaged, a copy that has followed the same leaders replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.pipeline.audit.jobs.row_types import RECORD, Bools, Ints, Table
from holdfast.pipeline.audit.replicas.slice_reader import (
    Slice,
    Unreadable,
    read_batches,
    read_slice,
)
from holdfast.pipeline.audit.replicas.truth import Replica

NO_BITS = np.uint64(0)
NO_EPOCH = -1


class Copy:
    """One copy's stretch. The truth has no records of its own: they are `Copies.records`."""

    def __init__(self, replica: Replica, part: Slice, first: int, until: int) -> None:
        self.replica = replica
        self.unreadable = part.unreadable
        self.own = np.empty(0, RECORD)
        """Records of batches that differ from the truth's."""
        self.is_equal = np.zeros(until - first, np.bool_)
        """By place: it has the truth's record."""
        self.is_damaged = _spans(self.unreadable, first, until, is_damage=True)
        """By place: its bytes are wrong."""
        self.is_epoch_wrong = _covered(part.headers[_wrong_epochs(replica, part)], first, until)
        """By place: the batch names a leader epoch that contradicts the copy's own checkpoint."""
        self.is_epoch_other = np.zeros(until - first, np.bool_)
        """By place: it has the truth's record, under another leader epoch."""


class Copies:
    """A stretch [first, until) of every copy. Of the others only what differs is decoded."""

    def __init__(
        self, replicas: Sequence[Replica], first: int, until: int, bits: Mapping[str, int]
    ) -> None:
        self.first, self.until = first, until
        self.truth = replicas[0] if replicas else None
        self.replicas = replicas
        self.bits = {name: np.uint64(1 << bit) for name, bit in bits.items()}
        self.records = np.empty(0, RECORD)
        self.all: list[Copy] = []
        """The truth first."""
        parts = [self._slice(one, is_decoded=one is self.truth) for one in replicas]
        if parts:
            self.records = parts[0].records
        self.at = self._places(self.records)
        """By place: the index in `records`, or -1."""
        for replica, part in zip(replicas, parts, strict=True):
            copy = Copy(replica, part, first, until)
            if self.all:
                self._compare(copy, part, parts[0])
            else:
                copy.is_equal = self.at >= 0
            self.all.append(copy)
        self.is_unreadable = np.zeros(self.size, np.bool_)
        """By place: the truth cannot be read there, and no copy replaces it."""
        if self.all and self.all[0].unreadable:
            self._fill(self.all[0])

    @property
    def size(self) -> int:
        return self.until - self.first

    @property
    def others(self) -> list[Copy]:
        """All but the truth."""
        return self.all[1:]

    @property
    def is_out_of_reach(self) -> Bools:
        """By place: some copy has bytes there that could not be read."""
        mask = np.zeros(self.size, np.bool_)
        for copy in self.all:
            mask |= _spans(copy.unreadable, self.first, self.until, is_damage=False)
        return mask

    def holders(self, places: Ints) -> npt.NDArray[np.uint64]:
        """Which brokers have the truth's record at these places, as bits."""
        has = np.zeros(len(places), np.uint64)
        for copy in self.all:
            has |= np.where(copy.is_equal[places], self.bits[copy.replica.broker], NO_BITS)
        return has

    def holders_of(self, rows: Table) -> npt.NDArray[np.uint64]:
        """Which brokers have these records, with their content, where the truth has not."""
        has = np.zeros(len(rows), np.uint64)
        for copy in self.others:
            at = self._places(copy.own)[rows["offset"] - self.first]
            own = copy.own[at] if len(copy.own) else np.zeros(len(rows), RECORD)
            is_same = (at >= 0) & (own["key"] == rows["key"]) & (own["value"] == rows["value"])
            has |= np.where(is_same, self.bits[copy.replica.broker], NO_BITS)
        return has

    @property
    def everyone(self) -> np.uint64:
        """All brokers that have a copy of the partition."""
        bits = NO_BITS
        for replica in self.replicas:
            bits |= self.bits[replica.broker]
        return bits

    def errors(self) -> Iterator[str]:
        """What could not be read, in sentences."""
        for copy in self.all:
            for one in copy.unreadable:
                if not one.is_damage:
                    span = f"offsets {one.first} to {one.until - 1}"
                    name = copy.replica.broker
                    yield f"{name} cannot be read at {span}: {one.place}: {one.reason}"

    def damages(self) -> list[tuple[str, int, int, str, str]]:
        """Broker, first offset, end, place in the file and reason of what is damaged."""
        return [
            (copy.replica.broker, one.first, one.until, one.place, one.reason)
            for copy in self.all
            for one in copy.unreadable
            if one.is_damage
        ]

    def _slice(self, replica: Replica, *, is_decoded: bool) -> Slice:
        return read_slice(
            replica.segments,
            max(self.first, replica.start),
            self.until,
            settled=replica.settled,
            is_decoded=is_decoded,
        )

    def _compare(self, copy: Copy, part: Slice, truth: Slice) -> None:
        twin = _twins(part, truth)
        is_twin = twin >= 0
        replica = copy.replica
        own = read_batches(replica.segments, part, ~is_twin, self.first, self.until)
        copy.own = own
        # Twins cover whole ranges of offsets; where the truth has a record, so has the copy.
        twins = part.headers[is_twin]
        is_equal = _covered(twins, self.first, self.until) & (self.at >= 0)
        is_other = twins["leader_epoch"] != truth.headers["leader_epoch"][twin[is_twin]]
        copy.is_epoch_other = _covered(twins[is_other], self.first, self.until) & is_equal
        places = own["offset"] - self.first
        at = self.at[places]
        theirs = self.records[at] if len(self.records) else np.zeros(len(own), RECORD)
        is_same = (theirs["key"] == own["key"]) & (theirs["value"] == own["value"]) & (at >= 0)
        is_equal[places[is_same]] = True
        copy.is_epoch_other[places[is_same & (theirs["epoch"] != own["epoch"])]] = True
        if replica.start > self.first:
            is_equal[: replica.start - self.first] = False
        copy.is_equal = is_equal

    def _fill(self, truth: Copy) -> None:
        """Take what the truth lacks from a copy: of the same epoch, or below its high watermark."""
        is_open = _spans(truth.unreadable, self.first, self.until) & (self.at < 0)
        for copy in self.others:
            own = copy.own[is_open[copy.own["offset"] - self.first]]
            expected = _expected(truth.replica, own["offset"])
            is_fit = (own["epoch"] == expected) | (expected == NO_EPOCH)
            own = own[is_fit | (own["offset"] < (copy.replica.high_watermark or 0))]
            is_open[own["offset"] - self.first] = False
            self.records = np.concatenate([self.records, own])
        is_filled = self.at < 0
        self.at = self._places(self.records)
        is_filled &= self.at >= 0
        self.is_unreadable = is_open
        for copy in self.others:
            places = copy.own["offset"] - self.first
            theirs = self.records[self.at[places]] if len(self.records) else copy.own
            is_same = (theirs["key"] == copy.own["key"]) & (theirs["value"] == copy.own["value"])
            copy.is_equal[places[is_same & is_filled[places]]] = True

    def _places(self, records: Table) -> npt.NDArray[np.int32]:
        at = np.full(self.size, -1, np.int32)
        at[records["offset"] - self.first] = np.arange(len(records), dtype=np.int32)
        return at


def _spans(
    unreadable: Sequence[Unreadable], first: int, until: int, *, is_damage: bool | None = None
) -> Bools:
    """By place: what cannot be read, of either kind or of one."""
    mask = np.zeros(until - first, np.bool_)
    for one in unreadable:
        if is_damage is None or one.is_damage == is_damage:
            mask[max(0, one.first - first) : max(0, one.until - first)] = True
    return mask


def _covered(headers: npt.NDArray[Any], first: int, until: int) -> Bools:
    """By place: one of these batches covers it."""
    size = until - first
    edges = np.zeros(size + 1, np.int32)
    bases = headers["base_offset"].astype(np.int64) - first
    ends = bases + headers["last_offset_delta"] + 1
    np.add.at(edges, np.clip(bases, 0, size), 1)
    np.add.at(edges, np.clip(ends, 0, size), -1)
    covered: Bools = np.cumsum(edges[:-1]) > 0
    return covered


def _expected(replica: Replica, offsets: Ints) -> Ints:
    """The epoch of each offset by the copy's checkpoint; NO_EPOCH where it has none."""
    starts = np.array([one.start_offset for one in replica.epochs], np.int64)
    epochs = np.array([NO_EPOCH, *(one.epoch for one in replica.epochs)], np.int64)
    found: Ints = epochs[np.searchsorted(starts, offsets, side="right")]
    return found


def _wrong_epochs(replica: Replica, part: Slice) -> Bools:
    """Which batches contradict the copy's own checkpoint. No CRC covers the epoch.

    An epoch that is newer than the checkpoint is still right if the partition has reached it: then
    the checkpoint is older than the log. What was written since the audit began is not checked.
    """
    bases = part.headers["base_offset"].astype(np.int64)
    epochs = part.headers["leader_epoch"].astype(np.int64)
    expected = _expected(replica, bases)
    newest = replica.epochs[-1].epoch if replica.epochs else NO_EPOCH
    is_newer = (epochs > newest) & (epochs <= replica.epoch)
    wrong: Bools = (expected != NO_EPOCH) & (epochs != NO_EPOCH) & (epochs != expected)
    return wrong & ~is_newer & (bases < replica.end)


def _twins(part: Slice, truth: Slice) -> npt.NDArray[np.int64]:
    """Which batch of the truth is the same: same place, same length, same verified CRC; or -1."""
    if not len(truth.headers):
        return np.full(len(part.headers), -1, np.int64)
    bases = truth.headers["base_offset"].astype(np.int64)
    order = np.argsort(bases, kind="stable")
    wanted = part.headers["base_offset"].astype(np.int64)
    at = order[np.minimum(np.searchsorted(bases[order], wanted), len(bases) - 1)]
    theirs = truth.headers[at]
    is_twin = np.ones(len(part.headers), np.bool_)
    for field in ("base_offset", "last_offset_delta", "length", "crc"):
        is_twin &= theirs[field] == part.headers[field]
    return np.where(is_twin, at, -1)
