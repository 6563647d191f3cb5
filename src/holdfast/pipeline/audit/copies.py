"""All copies of a stretch of one partition, side by side, one place an offset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from holdfast.pipeline.audit.packs import RECORD, Bools, Ints, Table
from holdfast.pipeline.audit.replicas import Replica
from holdfast.pipeline.audit.slices import Slice, Unreadable, read_batches, read_slice

NO_BITS = np.uint64(0)


class Copy:
    """A follower's stretch, held against the truth's."""

    def __init__(self, replica: Replica, part: Slice, own: Table, is_equal: Bools) -> None:
        self.replica = replica
        self.unreadable = part.unreadable
        self.own = own
        """Records of batches that the truth does not have like this."""
        self.is_equal = is_equal
        """By place: it has the truth's record."""


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
        self.unreadable: tuple[Unreadable, ...] = ()
        self.others: list[Copy] = []
        part = None
        if self.truth is not None:
            part = self._slice(self.truth, is_decoded=True)
            self.records, self.unreadable = part.records, part.unreadable
        self.at = self._places(self.records)
        """By place: which of `records` stands there, or -1."""
        for replica in replicas[1:]:
            assert part is not None
            self.others.append(self._copy(replica, part))

    @property
    def size(self) -> int:
        return self.until - self.first

    def is_unreadable(self, unreadable: Sequence[Unreadable]) -> Bools:
        """By place."""
        mask = np.zeros(self.size, np.bool_)
        for one in unreadable:
            mask[max(0, one.first - self.first) : max(0, one.until - self.first)] = True
        return mask

    def holders(self, places: Ints) -> npt.NDArray[np.uint64]:
        """Which brokers have the truth's record at these places, as bits."""
        assert self.truth is not None
        has = np.where(self.at[places] >= 0, self.bits[self.truth.broker], NO_BITS)
        for copy in self.others:
            has |= np.where(copy.is_equal[places], self.bits[copy.replica.broker], NO_BITS)
        return has

    def holders_of(self, rows: Table) -> npt.NDArray[np.uint64]:
        """Which brokers have these records, content and all, where the truth has not."""
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
        for replica, unreadable in (
            *(((self.truth, self.unreadable),) if self.truth else ()),
            *((copy.replica, copy.unreadable) for copy in self.others),
        ):
            for one in unreadable:
                span = f"offsets {one.first} to {one.until - 1}"
                yield f"{replica.broker} cannot be read at {span}: {one.reason}"

    def _slice(self, replica: Replica, *, is_decoded: bool) -> Slice:
        return read_slice(
            replica.segments,
            max(self.first, replica.start),
            self.until,
            flushed=replica.flushed or 0,
            is_decoded=is_decoded,
        )

    def _copy(self, replica: Replica, truth: Slice) -> Copy:
        part = self._slice(replica, is_decoded=False)
        is_twin = _twins(part, truth)
        own = read_batches(replica.segments, part, ~is_twin, self.first, self.until)
        # Twins cover whole ranges of offsets; where the truth has a record, so has the copy.
        edges = np.zeros(self.size + 1, np.int32)
        bases = part.headers["base_offset"][is_twin].astype(np.int64) - self.first
        ends = bases + part.headers["last_offset_delta"][is_twin] + 1
        np.add.at(edges, np.clip(bases, 0, self.size), 1)
        np.add.at(edges, np.clip(ends, 0, self.size), -1)
        is_equal = (np.cumsum(edges[:-1]) > 0) & (self.at >= 0)
        places = own["offset"] - self.first
        at = self.at[places]
        theirs = self.records[at] if len(self.records) else np.zeros(len(own), RECORD)
        is_same = (theirs["key"] == own["key"]) & (theirs["value"] == own["value"]) & (at >= 0)
        is_equal[places[is_same]] = True
        if replica.start > self.first:
            is_equal[: replica.start - self.first] = False
        return Copy(replica, part, own, is_equal)

    def _places(self, records: Table) -> npt.NDArray[np.int32]:
        at = np.full(self.size, -1, np.int32)
        at[records["offset"] - self.first] = np.arange(len(records), dtype=np.int32)
        return at


def _twins(part: Slice, truth: Slice) -> Bools:
    """Which batches the truth has too: same place, same length, same verified CRC."""
    if not len(truth.headers):
        return np.zeros(len(part.headers), np.bool_)
    bases = truth.headers["base_offset"].astype(np.int64)
    order = np.argsort(bases, kind="stable")
    wanted = part.headers["base_offset"].astype(np.int64)
    at = order[np.minimum(np.searchsorted(bases[order], wanted), len(bases) - 1)]
    theirs = truth.headers[at]
    is_twin = np.ones(len(part.headers), np.bool_)
    for field in ("base_offset", "last_offset_delta", "length", "crc"):
        is_twin &= theirs[field] == part.headers[field]
    return is_twin
