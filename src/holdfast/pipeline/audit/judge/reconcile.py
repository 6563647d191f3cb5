"""Decides on the driver what no single stretch could decide, from what all of them left over.

Only exceptions: records that no acknowledged send claims, sends without an offset, sends without
their record, and order across the borders of stretches. About 200 bytes each in the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.pipeline.audit.findings.details import AT_CONSUMED, AT_LOG, KIND_NUMBER, Why
from holdfast.pipeline.audit.findings.finding_tables import found
from holdfast.pipeline.audit.findings.findings import (
    COMPACTED,
    DUPLICATE,
    INCONSISTENT,
    LOST,
    NON_MONOTONIC,
    PHANTOM,
    REFUSED_BUT_READ,
    REORDERED,
    UNDECIDED,
)
from holdfast.pipeline.audit.jobs.row_sources import DELIVERED, SENT
from holdfast.pipeline.audit.jobs.row_types import (
    ACKED,
    FOUND,
    RECORD,
    REFUSED,
    ROW,
    UNKNOWN,
    Bools,
    Ints,
    Table,
)
from holdfast.pipeline.audit.jobs.stretch_job import Context, Packs, Results, all_rows
from holdfast.pipeline.audit.judge.claims import digests, known, settle
from holdfast.pipeline.audit.judge.compacted_records import is_cleaned
from holdfast.pipeline.audit.judge.order import group_of
from holdfast.pipeline.audit.replicas.truth import Replica


class Overlap(NamedTuple):
    """A stretch in which a group's numbers overlap those of its neighbours."""

    topic: str
    partition: int
    first: int
    until: int
    group: int
    limit: int
    """Sends below it are out of order; deliveries above it came too late."""


class Search(NamedTuple):
    """What to look for in the ledgers again."""

    contents: Mapping[str, Ints]
    """Digests by topic, sorted."""
    late: tuple[Overlap, ...]

    def __bool__(self) -> bool:
        return bool(self.late) or any(len(one) for one in self.contents.values())

    def is_wanted(self, topic: str, partitions: Ints, rows: Table) -> Bools:
        wanted = self.contents.get(topic)
        if wanted is None or not len(wanted):
            chosen = np.zeros(len(rows), np.bool_)
        else:
            chosen = np.isin(digests(rows), wanted)
        return chosen | is_late(self.late, topic, partitions, rows)


def is_late(late: Iterable[Overlap], topic: str, partitions: Ints, rows: Table) -> Bools:
    """Which sends come after one that was sent later, in an earlier stretch."""
    return _is_out_of_order(late, topic, partitions, rows, is_delivery=False)


def is_back(back: Iterable[Overlap], topic: str, partitions: Ints, rows: Table) -> Bools:
    """Which deliveries came after one of a later stretch."""
    return _is_out_of_order(back, topic, partitions, rows, is_delivery=True)


def _is_out_of_order(
    overlaps: Iterable[Overlap], topic: str, partitions: Ints, rows: Table, *, is_delivery: bool
) -> Bools:
    chosen = np.zeros(len(rows), np.bool_)
    groups, sequences = group_of(rows, is_delivery), rows["sequence"]
    for one in overlaps:
        if one.topic == topic:
            is_there = (partitions == one.partition) & (groups == one.group)
            is_there &= (rows["offset"] >= one.first) & (rows["offset"] < one.until)
            is_there &= (sequences > one.limit) if is_delivery else (sequences < one.limit)
            chosen |= is_there
    return chosen


def overlaps(
    facts: Iterable[tuple[str, int, Mapping[str, Any]]], name: str, span: int
) -> Iterator[Overlap]:
    """Overlaps of the stretches' spans: of sends ("order") or deliveries ("polls")."""
    by_group: dict[tuple[str, int, int], list[tuple[int, int, int]]] = {}
    for topic, partition, one in facts:
        for group, least, greatest in one[name]:
            by_group.setdefault((topic, partition, group), []).append(
                (one["stretch"], least, greatest)
            )
    is_polls = name == "polls"
    for (topic, partition, group), stretches in by_group.items():
        limit: int | None = None
        for stretch, least, greatest in sorted(stretches, reverse=is_polls):
            if limit is not None and (greatest > limit if is_polls else least < limit):
                first = stretch * span
                yield Overlap(topic, partition, first, first + span, group, limit)
            if is_polls:
                limit = least if limit is None else min(limit, least)
            else:
                limit = greatest if limit is None else max(limit, greatest)


class Topic:
    """One topic's exceptions, before they become findings."""

    def __init__(
        self,
        left: tuple[Table, Ints],
        opened: tuple[Table, Ints],
        reported: tuple[Table, Ints],
        *,
        is_doubtful: bool,
    ) -> None:
        by_offset = np.lexsort((left[0]["offset"], left[1]))
        self.left, self.left_partitions = left[0][by_offset], left[1][by_offset]
        self.opened, self.opened_partitions = opened
        self.found, self.partitions = reported[0].copy(), reported[1]
        self.is_doubtful = is_doubtful
        """Something of this topic could not be read."""
        self.moved = 0
        self.landed = 0
        """Unanswered sends whose record exists."""
        self.foreign = 0
        self._settle()

    def _settle(self) -> None:
        lost = np.flatnonzero(self._is(LOST, AT_LOG))
        settled = settle(
            self.left,
            self.left_partitions,
            self.opened,
            self.opened_partitions,
            self.found["row"][lost],
            self.partitions[lost],
        )
        moved = lost[settled.moved.sends]
        self.found["kind"][moved] = KIND_NUMBER[REORDERED]
        self.found["why"][moved] = Why.MOVED
        self.found["there"][moved] = self.left["offset"][settled.moved.records]
        self.moved = len(moved)
        claimants = self.opened[settled.opened.sends]
        self.landed = int(np.count_nonzero(claimants["result"] == UNKNOWN))
        is_refused = claimants["result"] == REFUSED
        records = settled.opened.records[is_refused]
        self._add(
            found(REFUSED_BUT_READ, self.left["offset"][records], row=claimants[is_refused]),
            self.left_partitions[records],
        )
        is_unmet = self.opened["result"] == ACKED
        is_unmet[settled.opened.sends] = False
        kind = UNDECIDED if self.is_doubtful else LOST
        unmet = self.opened[is_unmet]
        self._add(
            found(kind, unmet["offset"], why=Why.UNANSWERED, row=unmet),
            self.opened_partitions[is_unmet],
        )
        self.rest, self.rest_partitions = (
            self.left[settled.rest],
            self.left_partitions[settled.rest],
        )

    def clean(self, partitions: Mapping[int, Replica], span: int) -> None:
        """Mark records as compacted if compaction explains them; `partitions` has the truths."""
        for partition, truth in partitions.items():
            is_absent = self._is(LOST, AT_LOG) & (self.found["why"] == Why.ABSENT)
            lost = np.flatnonzero(is_absent & (self.partitions == partition))
            cleaned = lost[is_cleaned(self.found["row"][lost], truth, span)]
            self.found["kind"][cleaned] = KIND_NUMBER[COMPACTED]
            self.found["why"][cleaned] = Why.NONE

    def contents(self) -> Ints:
        """What to look for in the ledgers."""
        strays = self.found["row"][self._is(PHANTOM)]
        return np.unique(np.concatenate([digests(self.rest), digests(strays)]))

    def learn(self, contents: npt.NDArray[Any]) -> None:
        """Take sends with a content that was looked for."""
        is_known = known(self.rest, contents)
        again = self.rest[is_known]
        bare = np.zeros(len(again), ROW)
        bare["key"], bare["value"], bare["who"] = again["key"], again["value"], -1
        self._add(
            found(DUPLICATE, again["offset"], why=Why.AGAIN, row=bare),
            self.rest_partitions[is_known],
        )
        self.foreign = int(np.count_nonzero(~is_known))
        strays = np.flatnonzero(self._is(PHANTOM))
        sent = strays[known(self.found["row"][strays], contents)]
        self.found["kind"][sent] = KIND_NUMBER[INCONSISTENT]
        self.found["why"][sent] = Why.STALE

    def add_late(self, rows: Table, partitions: Ints) -> None:
        """Add sends out of order across stretches, unless they are findings already."""
        is_named = self._is(LOST, AT_LOG) | self._is(REORDERED)
        is_named |= self._is(UNDECIDED) & (self.found["why"] != Why.OLDER)
        fresh = ~_is_among(rows, self.found["row"][is_named])
        self._add(found(REORDERED, rows["offset"][fresh], row=rows[fresh]), partitions[fresh])

    def add_back(self, rows: Table, partitions: Ints) -> None:
        """Add deliveries out of order across stretches."""
        fresh = ~_is_among(rows, self.found["row"][self._is(NON_MONOTONIC)])
        self._add(
            found(NON_MONOTONIC, rows["offset"][fresh], place=AT_CONSUMED, row=rows[fresh]),
            partitions[fresh],
        )

    def _is(self, kind: str, place: int | None = None) -> Bools:
        is_kind: Bools = self.found["kind"] == KIND_NUMBER[kind]
        return is_kind if place is None else is_kind & (self.found["place"] == place)

    def _add(self, table: Table, partitions: Ints) -> None:
        self.found = np.concatenate([self.found, table])
        self.partitions = np.concatenate([self.partitions, partitions])


def _is_among(rows: Table, others: Table) -> Bools:
    """Whether it is the same send, or the same delivery."""

    def names(table: Table) -> Ints:
        named: Ints = table["who"].astype(np.int64) << 44 | table["sequence"]
        return named

    return np.isin(names(rows), names(others))


Look = Callable[[int, Callable[[str, Ints, Table], Bools]], Packs]
"""Reads ledgers again (of sends, or of deliveries) for the rows that are wanted."""


def settle_topics(
    results: Results, names: Sequence[str], context: Context, look: Look
) -> dict[str, Topic]:
    """Decide everything that is left; ledgers are read again only if something is."""
    span = context.span
    doubtful = {topic for topic, _, facts in results.facts if facts["is_doubtful"]}
    topics = {
        name: Topic(
            all_rows(results.left, name, RECORD),
            all_rows(results.opened, name, ROW),
            all_rows(results.found, name, FOUND),
            is_doubtful=context.is_partial or name in doubtful,
        )
        for name in names
    }
    for name, topic in topics.items():
        truths = {at: one[0] for (of, at), one in context.partitions.items() if of == name}
        topic.clean(truths, span)
    late = tuple(overlaps(results.facts, "order", span))
    search = Search({name: topic.contents() for name, topic in topics.items()}, late)
    if search:
        packs = look(SENT, search.is_wanted)
        for name, topic in topics.items():
            rows, partitions = all_rows(packs, name, ROW)
            topic.learn(rows)
            chosen = is_late(late, name, partitions, rows)
            topic.add_late(rows[chosen], partitions[chosen])
    back = tuple(overlaps(results.facts, "polls", span))
    if back:
        packs = look(DELIVERED, partial(is_back, back))
        for name, topic in topics.items():
            topic.add_back(*all_rows(packs, name, ROW))
    return topics


def tally(tables: Sequence[Table]) -> dict[str, int]:
    """Records by kind."""
    counts: dict[str, int] = {}
    for table in tables:
        for kind, number in KIND_NUMBER.items():
            counted = int(table["count"][table["kind"] == number].sum())
            if counted:
                counts[kind] = counts.get(kind, 0) + counted
    return counts
