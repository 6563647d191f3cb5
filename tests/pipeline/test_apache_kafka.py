"""Ledger, ingest, logs, audit and advice with Apache Kafka in place of Holdfast's brokers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from holdfast.pipeline.audit.causes.kinds import LEADER_ALONE, RETENTION, UNCLEAN_ELECTION
from holdfast.pipeline.audit.causes.kinds import RECREATED as RECREATED_CAUSE
from holdfast.pipeline.audit.controllers.kraft_log_reader import read_records
from holdfast.pipeline.audit.controllers.kraft_metadata import METADATA
from holdfast.pipeline.audit.findings.findings import Exit, Remedy
from holdfast.protocol.kraft_records.definitions import KINDS
from holdfast.storage.checkpoints.meta_properties import id_text
from tests.pipeline.audit_damage import DamageTests, Files
from tests.pipeline.audit_plants import write_consumed
from tests.pipeline.audit_reference import Content
from tests.pipeline.kafka_estate import (
    ALONE,
    EXPIRED,
    KEPT,
    RECREATED,
    SETTINGS,
    UNCLEAN_ALL,
    UNCLEAN_ONE,
    Snapshot,
    Topic,
    make,
)
from tests.support.kafka_brokers import KafkaBrokers
from tests.support.spark import SMALL_OPTIONS
from tests.unit.storage.kafka import dump

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBrokers]:
    brokers = KafkaBrokers(tmp_path_factory.mktemp("kafka"), SETTINGS)
    try:
        brokers.start()
        yield brokers
    finally:
        brokers.close()


def holdfast(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def logs_of(kafka: KafkaBrokers) -> str:
    return ",".join(f"b{one}={kafka.log_dir(one)}" for one in kafka.ports)


def test_advice_is_asked_of_its_settings(kafka: KafkaBrokers, tmp_path: Path) -> None:
    topic = Topic(kafka, tmp_path, "asked", [1, 2])
    topic.create(min_insync_replicas="2", flush_messages="1")
    words = ("--topic", "asked", "--failures", "1", "--json")
    done = holdfast("advise", "-b", kafka.bootstrap.split(",", maxsplit=1)[0], *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["replicas"] == 2
    assert report["settings"]["min_insync_replicas"] == "2"
    assert report["settings"]["flush"] == "every-append"
    assert report["settings"]["unclean"] == "off"


def test_a_killed_broker_costs_nothing(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """With Spark, from the ingest to the verdict."""
    topic = Topic(kafka, tmp_path, "survived", [1, 2, 3])
    topic.create(min_insync_replicas="2")
    topic.wait_isr()
    producer = topic.producer(enable_idempotence="true")
    topic.send(0, 20_000, producer)
    leader = topic.leader()
    for number in range(20_000, 30_000):
        producer.produce(topic.name, f"record {number}".encode(), str(number % 7).encode())
    kafka.kill(leader)
    topic.send(30_000, 40_000, producer)
    kafka.run(leader)
    topic.wait_isr()
    table, spark = str(tmp_path / "table"), ("--master", "local[2]", *SMALL_OPTIONS)
    done = holdfast(
        *("ingest", "-b", kafka.bootstrap, "--topic", topic.name, "--table", table, *spark)
    )
    assert done.returncode == 0, done.stderr
    done = holdfast(
        *("audit", "run", "--ledger", str(topic.ledger), "--logs", logs_of(kafka)),
        *("--table", table, "--json", *spark),
    )
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    verdict = report["verdict"]
    assert (done.returncode, report["findings"], report["missing"]) == (Exit.GOOD, [], [])
    assert verdict["acked"] == verdict["in_table"] == 40_000
    assert verdict["found"] == {"b1": 40_000, "b2": 40_000, "b3": 40_000}


def test_a_live_cluster_is_no_fault(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Followers are behind by as much as is on its way, and the metadata log grows."""
    topic = Topic(kafka, tmp_path, "live", [1, 2, 3])
    topic.create(min_insync_replicas="2")
    topic.wait_isr()
    producer = topic.producer(acks="all")
    files = Files({f"b{one}": kafka.log_dir(one) for one in kafka.ports}, topic.ledger, "live")
    for first in range(0, 20_000, 2_000):
        for number in range(first, first + 2_000):
            producer.produce("live", f"record {number}".encode())
            producer.poll(0)
        audit = files.audit()
        assert (audit.verdict.exit_code, audit.findings, audit.missing) == (Exit.GOOD, (), ())
    assert producer.flush(120) == 0


# Planted in copies of what one run of kills has left.


@pytest.fixture(scope="module")
def snapshots(kafka: KafkaBrokers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Snapshot]:
    return make(kafka, tmp_path_factory.mktemp("snapshots"))


def files_of(snapshot: Snapshot, topic: str) -> Files:
    return Files(snapshot.logs, snapshot.ledger(topic), topic)


@pytest.fixture
def files(snapshots: dict[str, Snapshot], tmp_path: Path) -> Files:
    return files_of(snapshots["after"].copy(tmp_path / "copy", KEPT), KEPT)


class TestDamage(DamageTests):
    """One copy of Kafka's is spoiled."""

    def test_a_copy_that_is_older_than_the_isr_is_noted(self, files: Files) -> None:
        """Its own checkpoint is as old as the copy. Later it caught up and joined the ISR."""
        follower = files.followers[0]
        start = files.truncate(follower, 3)
        files.checkpoint(follower, start)
        audit = files.audit()
        assert (audit.verdict.exit_code, audit.findings, audit.missing) == (Exit.GOOD, (), ())
        [note] = audit.notes
        assert f"the log of {follower} ends at {start}" in note


@pytest.mark.parametrize("moment", ["down", "before", "after"])
@pytest.mark.parametrize("topic", [KEPT, EXPIRED])
def test_what_was_kept_is_clean_at_every_moment(
    snapshots: dict[str, Snapshot], moment: str, topic: str
) -> None:
    """A broker is down, or has just come back, or all are in sync."""
    audit = files_of(snapshots[moment], topic).audit()
    assert (audit.verdict.exit_code, audit.missing) == (Exit.GOOD, ())
    assert {one.kind for one in audit.findings} <= {"expired"}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("topic", [UNCLEAN_ALL, UNCLEAN_ONE])
def test_an_unclean_election_is_the_cause(
    snapshots: dict[str, Snapshot], moment: str, topic: str
) -> None:
    """Whatever acks was, and also after the old leader came back and truncated."""
    audit = files_of(snapshots[moment], topic).audit()
    assert (audit.verdict.exit_code, audit.verdict.lost) == (Exit.LOSS, 300)
    spans = sorted((one.offset, one.last_offset) for one in audit.findings)
    # Other records stand where the new leader has written since; after that its log ends.
    assert spans == {"before": [(1_000, 1_299)], "after": [(1_000, 1_099), (1_100, 1_299)]}[moment]
    for one in audit.findings:
        assert one.cause is not None
        assert one.cause.kind == UNCLEAN_ELECTION
        assert "b2 was elected for epoch 1" in one.cause.sentence
        assert "was not in sync; b1 was" in one.cause.sentence
        assert one.remedy == Remedy(setting="unclean.leader.election.enable", value="false")
        assert "__cluster_metadata-0" in one.evidence[0]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_clean_election_is_not_called_unclean(
    snapshots: dict[str, Snapshot], moment: str
) -> None:
    audit = files_of(snapshots[moment], ALONE).audit()
    assert audit.verdict.exit_code == Exit.LOSS
    [finding] = audit.findings
    assert finding.cause is not None
    assert finding.cause.kind == LEADER_ALONE
    assert "cleanly: in sync were b1 and b3" in finding.cause.sentence
    assert finding.remedy == Remedy(setting="acks", value="all")


@pytest.mark.parametrize("moment", ["down", "after"])
@pytest.mark.parametrize("knows", [True, False], ids=["metadata", "files"])
def test_a_topic_that_was_deleted_and_created_again(
    snapshots: dict[str, Snapshot], tmp_path: Path, moment: str, knows: bool
) -> None:
    """Broker 2 was down meanwhile, and still has the old topic's log at the first moment."""
    files = files_of(snapshots[moment].copy(tmp_path / "copy", RECREATED), RECREATED)
    if not knows:
        files.forget_metadata()
    audit = files.audit()
    assert (audit.verdict.exit_code, audit.verdict.lost, audit.missing) == (Exit.LOSS, 1_000, ())
    assert {one.kind for one in audit.findings} == {"lost"}
    for one in audit.findings:
        assert one.cause is not None
        assert one.cause.kind == RECREATED_CAUSE
        assert "deleted and created again" in one.cause.sentence


def test_what_retention_took_before_it_was_read(
    snapshots: dict[str, Snapshot], tmp_path: Path
) -> None:
    files = files_of(snapshots["after"], EXPIRED)
    rows: list[tuple[int, Content]] = [
        (offset, (str(offset % 7).encode(), f"record {offset}".encode()))
        for offset in range(500, 900)
    ]
    audit = files.audit(write_consumed(tmp_path / "consumed", EXPIRED, rows))
    assert (audit.verdict.exit_code, audit.missing) == (Exit.LOSS, ())
    [lost] = [one for one in audit.findings if one.kind == "lost"]
    assert (lost.place, lost.offset, lost.last_offset) == ("consumed", 0, 499)
    assert lost.cause is not None
    assert lost.cause.kind == RETENTION
    assert "Retention deleted everything below offset 500" in lost.cause.sentence
    assert lost.remedy is not None
    assert lost.remedy.setting == "retention.ms"


def test_the_metadata_log_is_read_as_kafka_reads_it(snapshots: dict[str, Snapshot]) -> None:
    folder = snapshots["after"].logs["b3"] / METADATA
    log = folder / f"{0:020}.log"
    theirs = [
        json.loads(line.partition("payload: ")[2])
        for line in dump([log], "--cluster-metadata-decoder").splitlines()
        if "payload: " in line
    ]
    names = {kind.__name__ for kind in KINDS.values()}
    wanted = [one for one in theirs if f"{one['type'].title().replace('_', '')}" in names]
    ours = [record for _, _, record in read_records(log, is_complete=False)]
    assert len(ours) == len(wanted) > 20
    for mine, other in zip(ours, wanted, strict=True):
        for name, value in other["data"].items():
            assert as_json(getattr(mine, to_snake(name))) == value, (name, mine)


def as_json(value: object) -> object:
    if isinstance(value, bytes):
        return id_text(UUID(bytes=value))
    return [as_json(one) for one in value] if isinstance(value, list | tuple) else value


def to_snake(name: str) -> str:
    return re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", name)
