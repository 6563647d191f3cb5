"""One audit from start to end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast import __version__
from holdfast.pipeline.audit.causes import Past, explain, faults
from holdfast.pipeline.audit.findings.details import KIND_NUMBER, PLACES, Why
from holdfast.pipeline.audit.findings.findings import (
    LOST,
    UNSEEN_TAIL,
    Audit,
    Damage,
    PartitionFacts,
    ReplicaFacts,
    TimelinePoint,
    Verdict,
    exit_code,
)
from holdfast.pipeline.audit.findings.render import Damages, FindingRenderer, TopicFindings
from holdfast.pipeline.audit.inputs import AuditInputs
from holdfast.pipeline.audit.jobs.backends import BySpark, Here
from holdfast.pipeline.audit.jobs.ledger_owners import Roster, consumers, producers
from holdfast.pipeline.audit.jobs.row_sources import DELIVERED, SENT
from holdfast.pipeline.audit.jobs.row_types import (
    ACKED,
    MOST_BROKERS,
    REFUSED,
    ROW,
    UNKNOWN,
    unpack,
)
from holdfast.pipeline.audit.jobs.stretch_job import Context, Packs, Results
from holdfast.pipeline.audit.judge.concurrent_changes import doubted
from holdfast.pipeline.audit.judge.reconcile import Topic, settle_topics, tally
from holdfast.pipeline.audit.judge.stretch_verdict import Expectation
from holdfast.pipeline.audit.replicas.replica_files import Cluster, find_replicas
from holdfast.pipeline.audit.replicas.slice_reader import began_ms
from holdfast.pipeline.audit.replicas.truth import Replica
from holdfast.pipeline.errors import PipelineError
from holdfast.pipeline.spark import failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(spark: SparkSession, inputs: AuditInputs) -> Audit:
    """Judge everything; PipelineError if inputs are missing, StreamFailedError if Spark fails."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return Run(BySpark(spark), inputs).audit()
    except (Py4JError, PySparkException) as error:
        raise failures.readable_failure(error, "the audit could not go on") from error


def run_here(inputs: AuditInputs) -> Audit:
    """The same without Spark, for what fits into this process; it cannot audit a table."""
    return Run(Here(), inputs).audit()


class Run:
    def __init__(self, mover: BySpark | Here, inputs: AuditInputs) -> None:
        if not 0 < len(inputs.logs) <= MOST_BROKERS:
            raise PipelineError(
                f"{len(inputs.logs)} log directories", hint=f"give 1 to {MOST_BROKERS} as NAME=DIR"
            )
        self.mover, self.inputs = mover, inputs
        self.sent = producers(inputs.ledger)
        self.delivered = consumers(inputs.consumed) if inputs.consumed else None
        self.topics = self._topics()
        self.cluster = find_replicas(inputs.logs, self.topics, inputs.store)
        self.bits = {broker: bit for bit, broker in enumerate(self.cluster.brokers)}
        table = inputs.table
        self.context = Context(
            partitions=self.cluster.partitions,
            bits=self.bits,
            is_partial=self.cluster.is_partial,
            min_insync=inputs.min_insync,
            is_acks_all=self.sent.is_acks_all(),
            table=None if table is None else mover.open_table(table, self.topics),
            consumed=None if self.delivered is None else self._consumed_spans(self.delivered),
            span=inputs.span,
        )

    def audit(self) -> Audit:
        delivered = self.delivered.files if self.delivered else None
        results = self.mover.judged(self.context, self.topics, self.sent.files, delivered)
        topics = settle_topics(results, self.topics, self.context, self._look)
        topic_findings = doubted(
            [TopicFindings(name, topic.found, topic.partitions) for name, topic in topics.items()],
            self.cluster.partitions,
        )
        counts = tally([one.table for one in topic_findings])
        missing = tuple(self._missing(results, topic_findings))
        renderer = FindingRenderer(
            self.bits,
            self.sent.owners,
            self.delivered.owners if self.delivered else (),
            self.cluster.partitions,
            _damages(results),
        )
        listed, left_out = renderer.findings(topic_findings, self.inputs.most_findings)
        partitions = tuple(self._partitions(results, topic_findings))
        pasts = {name: past_of(self.cluster, name) for name in self.cluster.partitions}
        explained = explain(listed, self.inputs.logs, self.inputs.traces, partitions, pasts)
        is_undecided = len(missing) > 0
        return Audit(
            verdict=self._verdict(results, topics, counts, is_undecided=is_undecided),
            findings=tuple(explained),
            left_out=left_out,
            partitions=partitions,
            timeline=tuple(_timeline(results)),
            faults=faults(self.inputs.traces, self.inputs.logs),
            missing=missing,
            notes=self.cluster.notes,
            inputs=self._inputs(),
            records=renderer.records(topic_findings),
        )

    # Preparation.

    def _topics(self) -> tuple[str, ...]:
        wanted = self.inputs.topics or self.sent.topics
        unknown = sorted(set(wanted) - set(self.sent.topics))
        if unknown:
            raise PipelineError(
                f"no ledger below {self.inputs.ledger} has the topic {unknown[0]!r}",
                hint=f"it has: {', '.join(self.sent.topics) or 'none'}",
            )
        return tuple(sorted(wanted))

    def _consumed_spans(self, roster: Roster) -> Mapping[tuple[str, int], Expectation]:
        """A consumer may begin anywhere, so its ledger is checked from its first delivery on."""
        spans: dict[tuple[str, int], Expectation] = {}
        packs = self.mover.packs(roster.files, self.topics, DELIVERED, self.inputs.span)
        for topic, partition, _, _, rows in packs:
            offsets = unpack([rows], ROW)["offset"]
            old = spans.get((topic, partition), Expectation(1 << 62, 0))
            first = 0 if self.inputs.is_consumed_whole else int(offsets.min())
            spans[topic, partition] = Expectation(
                min(old.first, first), max(old.end, int(offsets.max()) + 1)
            )
        return spans

    # Results.

    def _look(self, source: int, is_wanted: Callable[..., Any]) -> Packs:
        """Read ledgers again, for some of their rows."""
        roster = self.sent if source == SENT else self.delivered
        assert roster is not None
        found: Packs = {}
        packs = self.mover.packs(roster.files, self.topics, source, self.inputs.span, is_wanted)
        for topic, partition, _, _, rows in packs:
            found.setdefault((topic, partition), []).append(rows)
        return found

    def _missing(self, results: Results, topic_findings: Sequence[TopicFindings]) -> Iterable[str]:
        yield from self.cluster.missing
        yield from self.sent.missing
        yield from self.delivered.missing if self.delivered else ()
        yield from sorted(set(results.sentences))
        for topic, partition, facts in results.facts:
            yield from (f"{topic}-{partition}: {error}" for error in facts["errors"])
            if facts["acked"] and (topic, partition) not in self.cluster.partitions:
                yield f"no directory holds a log of {topic}-{partition}"
        for one in topic_findings:
            older = int(one.table["count"][one.table["why"] == Why.OLDER].sum())
            if older:
                yield (
                    f"{one.topic}: {older} records that were acknowledged with acks=all are in"
                    " fewer copies than min.insync.replicas. The other copies may be older than the"
                    " acknowledgement: audit copies of stopped brokers, or take newer copies"
                )
            is_tail = one.table["kind"] == KIND_NUMBER[UNSEEN_TAIL]
            for place in np.unique(one.table["place"][is_tail]).tolist():
                count = int(one.table["count"][is_tail & (one.table["place"] == place)].sum())
                yield (
                    f"{PLACES[place]} of {one.topic}: {count} acknowledged records are after its"
                    " end; let the reader reach the end of the log and audit again"
                )

    def _verdict(
        self,
        results: Results,
        topics: Mapping[str, Topic],
        counts: Mapping[str, int],
        *,
        is_undecided: bool,
    ) -> Verdict:
        opened = np.concatenate([topic.opened["result"] for topic in topics.values()])
        acked = sum(facts["acked"] for _, _, facts in results.facts)
        acked += int(np.count_nonzero(opened == ACKED))
        refused, unknown = (int(np.count_nonzero(opened == one)) for one in (REFUSED, UNKNOWN))
        has_table = self.context.table is not None
        has_consumed = self.delivered is not None
        return Verdict(
            sent=acked + refused + unknown,
            acked=acked,
            refused=refused,
            unknown=unknown,
            found={
                broker: sum(facts["found"].get(broker, 0) for _, _, facts in results.facts)
                for broker in self.cluster.brokers
            },
            in_truth=sum(facts["in_truth"] for _, _, facts in results.facts)
            + sum(topic.moved for topic in topics.values()),
            in_table=_total(results, "table") if has_table else None,
            in_consumed=_total(results, "consumed") if has_consumed else None,
            counts=counts,
            foreign=sum(topic.foreign for topic in topics.values()),
            exit_code=int(exit_code(counts, is_undecided=is_undecided)),
        )

    def _partitions(
        self, results: Results, topic_findings: Sequence[TopicFindings]
    ) -> Iterable[PartitionFacts]:
        names = dict.fromkeys(self.cluster.partitions)
        names |= dict.fromkeys((topic, partition) for topic, partition, _ in results.facts)
        lost: dict[tuple[str, int], int] = {}
        for one in topic_findings:
            table = one.table
            is_lost = (table["kind"] == KIND_NUMBER[LOST]) & (table["place"] == 0)
            for partition in one.partitions[is_lost].tolist():
                lost[one.topic, partition] = lost.get((one.topic, partition), 0) + 1
        for topic, partition in sorted(names):
            replicas = self.cluster.partitions.get((topic, partition), ())
            mine = [facts for t, p, facts in results.facts if (t, p) == (topic, partition)]
            yield PartitionFacts(
                topic=topic,
                partition=partition,
                leader=replicas[0].broker if replicas else None,
                replicas=tuple(_replica_facts(one, mine) for one in replicas),
                acked=sum(facts["acked"] for facts in mine),
                found=sum(facts["in_truth"] for facts in mine),
                lost=lost.get((topic, partition), 0),
                table_end=_end(self.context.table, (topic, partition)),
                consumed_end=_end(self.context.consumed, (topic, partition)),
            )

    def _inputs(self) -> Mapping[str, str]:
        inputs = self.inputs
        logs = ",".join(f"{broker}={path}" for broker, path in inputs.logs.items())
        values = {
            "ledger": str(inputs.ledger),
            "logs": logs,
            "table": inputs.table,
            "consumed": str(inputs.consumed) if inputs.consumed else None,
            "trace": ",".join(map(str, inputs.traces)) or None,
            "topics": ",".join(self.topics),
            "store": inputs.store,
            "min.insync.replicas": str(inputs.min_insync) if inputs.min_insync else None,
            "holdfast": __version__,
            **self.mover.versions,
        }
        return {name: value for name, value in values.items() if value is not None}


def past_of(cluster: Cluster, name: tuple[str, int]) -> Past:
    """What is known of a partition apart from its logs."""
    metadata, truth = cluster.metadata, cluster.partitions[name][0]
    known = None if metadata is None else metadata.partition(*name)
    return Past(
        topic_id=truth.topic_id,
        incarnations=() if metadata is None else tuple(metadata.incarnations[name[0]]),
        elections=() if known is None else tuple(known.elections),
        is_whole=metadata is not None and metadata.is_whole,
        strangers=cluster.strangers.get(name, ()),
        began_ms=began_ms(truth.segments),
    )


def _damages(results: Results) -> Damages:
    found: dict[tuple[str, int], list[tuple[str, int, int, str, str]]] = {}
    for topic, partition, facts in results.facts:
        found.setdefault((topic, partition), []).extend(facts["damages"])
    return found


def _total(results: Results, reader: str) -> int:
    return sum(facts[reader] for _, _, facts in results.facts)


def _end(spans: Mapping[tuple[str, int], Expectation] | None, name: tuple[str, int]) -> int | None:
    span = spans.get(name) if spans is not None else None
    return span.end if span is not None else None


def _replica_facts(replica: Replica, facts: Sequence[Mapping[str, Any]]) -> ReplicaFacts:
    errors = [error for one in facts for error in one["errors"]]
    damages = [
        Damage(first=first, until=until, place=place, reason=reason)
        for one in facts
        for broker, first, until, place, reason in one["damages"]
        if broker == replica.broker
    ]
    return ReplicaFacts(
        broker=replica.broker,
        path=replica.path,
        log_start_offset=replica.start,
        log_end_offset=replica.end,
        high_watermark=replica.high_watermark,
        flushed=replica.flushed,
        epochs=replica.epochs,
        errors=tuple(error for error in errors if error.startswith(f"{replica.broker} ")),
        damages=tuple(damages),
        is_absent=replica.is_absent,
        first_segment=replica.segments[0].base if replica.segments else 0,
    )


def _timeline(results: Results) -> Iterable[TimelinePoint]:
    points: dict[tuple[str, int, int], list[int]] = {}
    for topic, partition, facts in results.facts:
        for second, acked, kept in zip(*facts["seconds"], strict=True):
            point = points.setdefault((topic, partition, second), [0, 0])
            point[0] += acked
            point[1] += kept
    for (topic, partition, second), (acked, kept) in sorted(points.items()):
        yield TimelinePoint(
            topic=topic, partition=partition, second=second, acked=acked, found=kept
        )
