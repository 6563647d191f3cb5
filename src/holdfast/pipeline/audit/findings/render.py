"""Renders tables of findings for people and programs: as `Finding`s, and as an Arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.pipeline.audit.findings.details import KIND_NAMES, PLACES, Why
from holdfast.pipeline.audit.findings.finding_tables import ALIKE, folded
from holdfast.pipeline.audit.findings.findings import (
    CONSUMED,
    EXIT_OF,
    KINDS,
    TABLE,
    Finding,
    LedgerRow,
)
from holdfast.pipeline.audit.jobs.ledger_owners import Owner
from holdfast.pipeline.audit.jobs.row_types import (
    CONSUMED_BIT,
    NOBODY,
    RESULTS,
    TABLE_BIT,
    Ints,
    Table,
)
from holdfast.pipeline.audit.replicas.truth import Replica

Partitions = Mapping[tuple[str, int], Sequence[Replica]]
Damages = Mapping[tuple[str, int], Sequence[tuple[str, int, int, str, str]]]
"""Broker, first offset, end, place and reason."""
MOST_DAMAGES = 5
"""The number of damages that one finding names."""
_WORST = {severity: rank for rank, severity in enumerate(EXIT_OF)}
_RANKS = np.array([_WORST[KINDS[name].severity] for name in KIND_NAMES])


class TopicFindings(NamedTuple):
    """One topic's findings."""

    topic: str
    table: Table
    partitions: Ints


class FindingRenderer:
    """Renders findings: replaces numbers by the names of brokers and producers."""

    def __init__(
        self,
        bits: Mapping[str, int],
        producers: Sequence[Owner],
        consumers: Sequence[Owner],
        partitions: Partitions,
        damages: Damages,
    ) -> None:
        self.names = {1 << bit: name for name, bit in bits.items()}
        self.names |= {int(TABLE_BIT): TABLE, int(CONSUMED_BIT): CONSUMED}
        self.producers, self.consumers = producers, consumers
        self.partitions = partitions
        self.damages = damages

    def findings(
        self, topics: Sequence[TopicFindings], most: int
    ) -> tuple[tuple[Finding, ...], int]:
        """The worst first, neighbours folded; and the number of further ones."""
        runs = [_runs(one) for one in topics]
        order = [
            (int(rank), nth, at)
            for nth, one in enumerate(runs)
            for at, rank in enumerate(_RANKS[one.table["kind"]].tolist())
        ]
        order.sort()
        listed = tuple(self._finding(runs[nth], at) for _, nth, at in order[:most])
        return listed, len(order) - len(listed)

    def _finding(self, topic: TopicFindings, at: int) -> Finding:
        row = topic.table[at]
        partition = int(topic.partitions[at])
        replicas = self.partitions.get((topic.topic, partition), ())
        offset, last = int(row["first"]), int(row["last"])
        is_delivery = KIND_NAMES[row["kind"]] == "non-monotonic poll"
        owner = self._owner(row["row"], is_delivery)
        lacks = self._named(row["lacks"])
        damages = self._damages(topic.topic, partition, row, lacks)
        detail = Why(row["why"]).sentence.format(there=int(row["there"]))
        return Finding(
            kind=KIND_NAMES[row["kind"]],
            topic=topic.topic,
            partition=partition,
            place=PLACES[row["place"]],
            offset=None if offset < 0 else offset,
            last_offset=None if last < 0 else last,
            count=int(row["count"]),
            ledger=self._ledger(row["row"], is_delivery),
            last_ledger=self._ledger(row["last_row"], is_delivery),
            leader=replicas[0].broker if replicas else None,
            has=self._named(row["has"]),
            lacks=lacks,
            detail="; ".join((detail, *(f"{place}: {reason}" for place, reason in damages))),
            evidence=(
                *(place for place, _ in damages),
                *(replica.path for replica in replicas),
                *((owner.folder,) if owner else ()),
            ),
        )

    def _damages(
        self, topic: str, partition: int, row: Any, brokers: Sequence[str]
    ) -> list[tuple[str, str]]:
        """Place and reason of the damage that belongs to a finding."""
        if row["why"] not in (Why.DAMAGED, Why.NO_COPY):
            return []
        return [
            (place, reason)
            for broker, first, until, place, reason in self.damages.get((topic, partition), ())
            if broker in brokers and first <= row["last"] and row["first"] < until
        ][:MOST_DAMAGES]

    def _owner(self, row: Any, is_delivery: bool) -> Owner | None:
        owners = self.consumers if is_delivery else self.producers
        return owners[row["who"]] if row["who"] != NOBODY else None

    def _ledger(self, row: Any, is_delivery: bool) -> LedgerRow | None:
        owner = self._owner(row, is_delivery)
        if owner is None:
            return None
        sent = int(row["time"])
        result = RESULTS.get(int(row["result"]), "delivered")
        return LedgerRow(
            run=owner.run,
            producer=owner.name,
            sequence=int(row["sequence"]),
            result=result,
            acks=owner.acks,
            idempotent=owner.is_idempotent,
            sent_ms=sent,
            acked_ms=sent + int(row["delay"]) if result == "acked" else None,
            error=int(row["error"]),
        )

    def _named(self, bits: Any) -> tuple[str, ...]:
        return tuple(name for bit, name in self.names.items() if int(bits) & bit)

    def records(self, topics: Sequence[TopicFindings]) -> Any:
        """All findings as one pyarrow.Table, one row per record unless they are runs already."""
        return pa.concat_tables([self._records(one) for one in topics])

    def _records(self, topic: TopicFindings) -> Any:
        table = topic.table
        rows = table["row"]
        is_known = rows["who"] != NOBODY
        is_delivery = np.array(KIND_NAMES)[table["kind"]] == "non-monotonic poll"
        names = [
            (self.consumers if delivery else self.producers)[who] if known_ else None
            for delivery, who, known_ in zip(
                is_delivery.tolist(), rows["who"].tolist(), is_known.tolist(), strict=True
            )
        ]

        def numbers(column: Any, is_there: Any) -> Any:
            return pa.array(column, mask=~is_there)

        def texts(column: Iterable[str | None]) -> Any:
            return pa.array(list(column), pa.string())

        def brokers(column: Any) -> Any:
            names = [list(self._named(one)) for one in column.tolist()]
            return pa.array(names, pa.list_(pa.string()))

        has_offset = table["first"] >= 0
        reasons = zip(table["why"].tolist(), table["there"].tolist(), strict=True)
        return pa.table(
            {
                "kind": texts(KIND_NAMES[one] for one in table["kind"].tolist()),
                "place": texts(PLACES[one] for one in table["place"].tolist()),
                "topic": texts([topic.topic] * len(table)),
                "partition": pa.array(topic.partitions, pa.int32()),
                "offset": numbers(table["first"], has_offset),
                "last_offset": numbers(table["last"], has_offset),
                "count": pa.array(table["count"]),
                "run": texts(one.run if one else None for one in names),
                "producer": texts(one.name if one else None for one in names),
                "sequence": numbers(rows["sequence"], is_known),
                "sent_ms": numbers(rows["time"], is_known),
                "has": brokers(table["has"]),
                "lacks": brokers(table["lacks"]),
                "detail": texts(Why(why).sentence.format(there=there) for why, there in reasons),
            }
        )


def _runs(topic: TopicFindings) -> TopicFindings:
    """Sorted by kind, partition and offset, and neighbours folded."""
    table, partitions = topic.table, topic.partitions
    keys = [table["first"], *(table[name] for name in reversed(ALIKE)), partitions]
    order = np.lexsort(keys)
    table, partitions = table[order], partitions[order]
    pieces, homes = [], []
    for partition in np.unique(partitions).tolist():
        runs = folded(table[partitions == partition])
        pieces.append(runs)
        homes.append(np.full(len(runs), partition, np.int64))
    if not pieces:
        return topic
    return TopicFindings(topic.topic, np.concatenate(pieces), np.concatenate(homes))
