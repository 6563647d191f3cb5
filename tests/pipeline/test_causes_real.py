"""Records lost on real brokers, and what the traces and the files say about why.

A finding is made here as the audit makes it: from the acknowledgements that producers received. Its
cause may be read only from the brokers' own traces and files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from holdfast.cluster import Cluster, ClusterError
from holdfast.model.trace import parse_trace
from holdfast.pipeline.audit.audit import past_of
from holdfast.pipeline.audit.causes import explain
from holdfast.pipeline.audit.findings.findings import (
    DIFFER,
    LOST,
    EpochStart,
    Finding,
    LedgerRow,
    PartitionFacts,
    Remedy,
    ReplicaFacts,
)
from holdfast.pipeline.audit.replicas.replica_files import find_replicas
from holdfast.storage import RealDisk, examine_log
from holdfast.storage.inspect.log_files import checkpointed_epochs, log_files
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

CONFIG = {
    "broker.session.timeout.ms": "6000",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "200",
    "auto.leader.rebalance.enable": "false",
}
NAMES = {1: "north", 2: "east", 3: "south"}
"""What the user of the audit calls the brokers."""


class Scene:
    """A topic on a cluster that other scenes may have used before."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster = cluster
        self.topic = topic
        controller = cluster.controller()
        self.a, self.b = (one for one in cluster.brokers if one != controller)

    def create(self, replicas: list[int], **config: str) -> None:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        self.cluster.create_topic(self.topic, assignment={0: replicas}, config=settings)
        self.cluster.wait_isr(self.topic)

    def send(self, *values: str, acks: int = -1) -> LedgerRow:
        sent_ms = time.time_ns() // 1_000_000
        self.cluster.produce(self.topic, values, acks=acks)
        return LedgerRow(
            run="r",
            producer="p",
            sequence=0,
            result="acked",
            acks="all" if acks == -1 else str(acks),
            idempotent=False,
            sent_ms=sent_ms,
            acked_ms=time.time_ns() // 1_000_000,
        )

    def settle(self, end: int, *brokers: int) -> None:
        for broker in brokers:
            self.until(partial(self._ends_at, broker, end), f"{broker} ends at {end}")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        def look() -> bool:
            with suppress(ClusterError):
                return condition()
            return False

        wait_until(look, f"{self.topic}: {what}")

    def _ends_at(self, broker: int, end: int) -> bool:
        return self.cluster.replica(self.topic, 0, broker).leo == end

    def part(self) -> None:
        """Disconnect A and B from each other."""
        for one, other in ((self.a, self.b), (self.b, self.a)):
            self.cluster.ask(one, "links", do="cut", to=[other], both_ways=True)

    def lost(
        self,
        row: LedgerRow,
        first: int,
        last: int,
        has: tuple[str, ...] = (),
        lacks: tuple[str, ...] = (),
    ) -> Finding:
        return Finding(
            kind=LOST,
            topic=self.topic,
            partition=0,
            offset=first,
            last_offset=last,
            count=last - first + 1,
            ledger=row,
            has=has,
            lacks=lacks,
        )

    @property
    def logs(self) -> dict[str, Path]:
        return {NAMES[one]: self.cluster.files(one).log for one in self.cluster.brokers}

    def explained(self, *findings: Finding, trace: bool = True) -> list[Finding]:
        self.cluster.flush_traces()
        traces = [self.cluster.data_dir] if trace else []
        return explain(findings, self.logs, traces, [self.facts()])

    def explained_by_store(self, finding: Finding) -> Finding:
        """Without a trace, but with what the coordination store remembers."""
        cluster = find_replicas(self.logs, [self.topic])
        past = past_of(cluster, (self.topic, 0))
        [result] = explain([finding], self.logs, (), [self.facts()], {(self.topic, 0): past})
        return result

    def facts(self) -> PartitionFacts:
        """What the files say, running brokers or not."""
        name = f"{self.topic}-0"
        held = {one: folder for one, folder in self.logs.items() if (folder / name).is_dir()}
        replicas = tuple(replica_facts(one, folder, name) for one, folder in held.items())
        return PartitionFacts(
            topic=self.topic,
            partition=0,
            leader=None,
            replicas=replicas,
            acked=0,
            found=0,
            lost=0,
        )


def replica_facts(broker: str, folder: Path, name: str) -> ReplicaFacts:
    disk = RealDisk(folder, read_only=True)
    files = log_files(disk, name)
    examined = examine_log(disk, files)
    epochs = checkpointed_epochs(disk, files) or []
    return ReplicaFacts(
        broker=broker,
        path=str(folder / name),
        log_start_offset=examined.start_offset,
        log_end_offset=examined.end_offset,
        high_watermark=None,
        flushed=None,
        epochs=tuple(EpochStart(epoch=one.epoch, start_offset=one.start_offset) for one in epochs),
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster(brokers=3, config=CONFIG, trace=True)
    try:
        made.start()
        yield made
    finally:
        made.close(clean=False)


@pytest.fixture
def scene(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Scene]:
    wait_until(lambda: _has_controller(cluster), "a controller")
    yield Scene(cluster, request.node.name.replace("_", "-")[:40])
    cluster.heal()
    down = [one for one in cluster.brokers if not cluster.is_running(one)]
    cluster.restart(*down)


def _has_controller(cluster: Cluster) -> bool:
    with suppress(ClusterError):
        return cluster.controller() > 0
    return False


def root_of(finding: Finding) -> dict[str, object]:
    """The event that the cause names, read from the place that the evidence names first."""
    assert finding.cause is not None
    path, _, line = finding.evidence[0].rpartition(":")
    [event] = parse_trace([Path(path).read_text(encoding="utf-8").splitlines()[int(line) - 1]])
    assert event.id == finding.cause.event_id
    return {"kind": event.kind, "broker": event.broker, **event.numbers}


def lose_with_acks_1(scene: Scene) -> Finding:
    """Three records that A alone had, and A dies."""
    scene.create([scene.a, scene.b], min_insync_replicas="1")
    scene.send("m0")
    scene.settle(1, scene.a, scene.b)
    scene.part()
    row = scene.send("m1", "m2", "m3", acks=1)
    scene.cluster.kill(scene.a)
    scene.cluster.wait_leader(scene.topic, broker=scene.b)
    scene.cluster.heal()
    scene.send("m4")
    return scene.lost(row, 1, 3)


def test_acks_1_and_the_leader_dies(scene: Scene) -> None:
    finding = lose_with_acks_1(scene)
    scene.cluster.restart(scene.a)
    scene.cluster.wait_isr(scene.topic)
    [result] = scene.explained(finding)
    assert result.cause is not None
    assert result.cause.kind == "leader-alone"
    assert result.remedy == Remedy(setting="acks", value="all")
    root = root_of(result)
    assert (root["kind"], root["leader"], root["rule"]) == ("elected", scene.b, "isr")
    a, b = NAMES[scene.a], NAMES[scene.b]
    assert result.cause.sentence == (
        f"With acks=1 {a} alone answered for the 3 records at offsets 1 to 3, before another log "
        f"had them. {a} died. {b} began epoch 1 at offset 1 without them, by a clean election. "
        f"{a} truncated them to follow the new leader."
    )
    truncation = next(step for step in result.cause.chain if step.kind == "truncated")
    assert (truncation.broker, truncation.offset) == (a, 1)
    assert "crashed" in [step.kind for step in result.cause.chain]
    assert (result.offset, result.last_offset, result.count) == (1, 3, 3)


def test_without_a_trace_the_checkpoints_say_it_with_less_certainty(scene: Scene) -> None:
    a, b = NAMES[scene.a], NAMES[scene.b]
    finding = replace(lose_with_acks_1(scene), has=(a,), lacks=(b,))
    [result] = scene.explained(finding, trace=False)
    assert result.cause is not None
    assert (result.cause.event_id, result.cause.kind) == (None, "leader-alone")
    assert f"Epoch 1 begins at offset 1 in the log of {b}" in result.cause.sentence
    assert "most likely" in result.cause.sentence
    assert result.remedy == Remedy(setting="acks", value="all")
    checkpoint, _, line = result.evidence[0].rpartition(":")
    assert Path(checkpoint).read_text(encoding="utf-8").splitlines()[int(line) - 1] == "1 1"
    # The dead broker's log parts from the others' at the same place.
    differ = Finding(kind=DIFFER, topic=scene.topic, partition=0, offset=1, last_offset=3, count=3)
    [result] = scene.explained(differ, trace=False)
    assert result.cause is not None
    assert result.cause.kind == "stale-replica"
    assert result.cause.sentence.startswith(
        f"At offset 1 {a} has what epoch 0 wrote, {b} what epoch"
    )


def test_an_unclean_election(scene: Scene) -> None:
    unclean = {"unclean.leader.election.enable": "true"}
    scene.create([scene.a, scene.b], min_insync_replicas="1", **unclean)
    scene.send("m0")
    scene.settle(1, scene.a, scene.b)
    scene.part()
    row = scene.send("m1", "m2")
    row_1 = scene.send("m3", acks=1)
    scene.cluster.kill(scene.b)
    scene.cluster.kill(scene.a)
    scene.cluster.restart(scene.b)
    scene.cluster.wait_leader(scene.topic, broker=scene.b)
    scene.send("m4")
    [result] = scene.explained(scene.lost(row, 1, 2))
    a, b = NAMES[scene.a], NAMES[scene.b]
    assert result.cause is not None
    assert result.cause.kind == "unclean-election"
    assert result.remedy == Remedy(setting="unclean.leader.election.enable", value="false")
    assert root_of(result)["rule"] == "unclean"
    assert f"Unclean election: {b} began epoch" in result.cause.sentence
    assert f"{a} still has them, where no reader looks." in result.cause.sentence
    # What the files alone say.
    [result] = scene.explained(scene.lost(row, 1, 2, has=(a,), lacks=(b,)), trace=False)
    assert result.cause is not None
    assert result.cause.kind == "unclean-election"
    assert result.remedy == Remedy(setting="unclean.leader.election.enable", value="false")
    # What the store remembers: also of acks=1, also after the old leader has truncated its log.
    scene.cluster.restart(scene.a)
    scene.cluster.wait_isr(scene.topic)
    for finding in (scene.lost(row, 1, 2), scene.lost(row_1, 3, 3)):
        result = scene.explained_by_store(finding)
        assert result.cause is not None
        assert result.cause.kind == "unclean-election"
        assert result.remedy == Remedy(setting="unclean.leader.election.enable", value="false")
        assert f"{b} was elected for epoch" in result.cause.sentence
        assert "store.sqlite" in result.evidence[0]


def test_a_power_failure_of_all_replicas(scene: Scene) -> None:
    scene.create(list(scene.cluster.brokers), min_insync_replicas="2")
    scene.send("m0")
    scene.settle(1, *scene.cluster.brokers)
    scene.cluster.flush()
    row = scene.send("m1", "m2")
    scene.settle(3, *scene.cluster.brokers)
    scene.cluster.power_loss(*scene.cluster.brokers)
    scene.cluster.restart(*scene.cluster.brokers)
    scene.cluster.wait_leader(scene.topic)
    [result] = scene.explained(scene.lost(row, 1, 2))
    assert result.cause is not None
    assert result.cause.kind == "lost-flush"
    assert result.remedy == Remedy(setting="flush.messages", value="1")
    root = root_of(result)
    assert (root["kind"], root["kept"], root["was"]) == ("power-lost", 1, 3)
    said = result.cause.sentence
    assert "failed: offsets 1 to 2 were in their page caches only." in said
    assert all(name in said.partition(" failed")[0] for name in NAMES.values())
    assert len([one for one in result.cause.chain if one.kind == "power-lost"]) == 3


def test_two_fates_in_one_run_of_offsets_are_two_findings(scene: Scene) -> None:
    """Some records are on the disks of all, some in their page caches only, all are reported."""
    scene.create(list(scene.cluster.brokers), min_insync_replicas="2")
    row = scene.send("m0", "m1")
    scene.settle(2, *scene.cluster.brokers)
    scene.cluster.flush()
    scene.send("m2", "m3")
    scene.settle(4, *scene.cluster.brokers)
    scene.cluster.power_loss(*scene.cluster.brokers)
    scene.cluster.restart(*scene.cluster.brokers)
    scene.cluster.wait_leader(scene.topic)
    kept, gone = scene.explained(scene.lost(row, 0, 3))
    assert (kept.offset, kept.last_offset, kept.count) == (0, 1, 2)
    assert kept.cause is not None
    assert kept.cause.kind == "outside", "by the trace they are still there"
    assert kept.remedy is None
    assert (gone.offset, gone.last_offset, gone.count) == (2, 3, 2)
    assert gone.cause is not None
    assert gone.cause.kind == "lost-flush"
