"""Brokers change the files while an audit reads them: what that looks like is no finding."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from holdfast.cluster import Cluster
from holdfast.ledger import LedgerProducer
from holdfast.model import EpochEntry, LeaderEpoch, Offset
from holdfast.pipeline.audit import Audit, AuditInputs, run_here
from holdfast.pipeline.audit.audit import Run
from holdfast.pipeline.audit.controllers.coordination_store import EMBEDDED
from holdfast.pipeline.audit.findings.findings import Exit
from holdfast.pipeline.audit.jobs.backends import Here
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import (
    read_epochs,
    read_offsets,
    write_epochs,
    write_offsets,
)
from holdfast.storage.file_names import (
    CLEANER_OFFSETS,
    EPOCH_CHECKPOINT,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
)
from tests.pipeline.audit_plants import RECORDS, Estate, make_estate, value
from tests.pipeline.audit_reference import Line
from tests.pipeline.audit_world import NAME, TOPIC, batches
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow
HALF = RECORDS // 2


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return make_estate(tmp_path_factory.mktemp("estate") / "original")


@pytest.fixture
def estate(original: Estate, tmp_path: Path) -> Estate:
    """With two segments."""
    estate = original.copy(tmp_path / "copy")
    for broker in estate.logs:
        line, folder = estate.line(broker), estate.log(broker).parent
        for index in folder.glob("*index"):
            index.unlink()
        _write(folder, 0, {at: line[at] for at in range(HALF)})
        _write(folder, HALF, {at: line[at] for at in range(HALF, RECORDS)})
    return estate


def _write(folder: Path, base: int, line: Line) -> None:
    """As another file, as the cleaner does."""
    path = folder / f"{base:020}.log"
    path.with_suffix(".tmp").write_bytes(b"".join(batches(line)))
    path.with_suffix(".tmp").rename(path)


def _folders(estate: Estate) -> list[Path]:
    return [estate.log(broker).parent for broker in estate.logs]


def audited(estate: Estate, meanwhile: Callable[[Estate], None]) -> Audit:
    """Something happens after the audit has looked at the directories."""
    run = Run(Here(), AuditInputs(ledger=estate.ledger, logs=estate.logs))
    meanwhile(estate)
    return run.audit()


def _retention(estate: Estate) -> None:
    for folder in _folders(estate):
        segment = folder / f"{0:020}.log"
        segment.rename(f"{segment}.deleted")


def _cleaner(estate: Estate) -> None:
    """Of every key the last record stays; there are seven."""
    for broker, root in estate.logs.items():
        folder = estate.log(broker).parent
        line = estate.line(broker)
        _write(folder, 0, {at: line[at] for at in range(HALF - 7, HALF)})
        write_offsets(RealDisk(root), CLEANER_OFFSETS, {NAME: HALF})


def _election(estate: Estate) -> None:
    """Followers replace what was not committed by what the next leader wrote."""
    for folder in _folders(estate):
        path = folder / f"{HALF:020}.log"
        content = bytearray(path.read_bytes())
        at = content.index((RECORDS - 2).to_bytes(8, "big"))
        epoch = int.from_bytes(content[at + 12 : at + 16], "big") + 5
        content[at + 12 : at + 16] = epoch.to_bytes(4, "big")
        path.write_bytes(content)
        disk = RealDisk(folder)
        begun = EpochEntry(LeaderEpoch(epoch), Offset(RECORDS - 2))
        known = [one for one in read_epochs(disk, EPOCH_CHECKPOINT) or () if one < begun]
        before = [one for one in known if one.start_offset < begun.start_offset]
        write_epochs(disk, EPOCH_CHECKPOINT, [*before, begun])


@pytest.mark.parametrize("meanwhile", [_retention, _cleaner, _election])
def test_what_brokers_do_while_the_audit_reads_is_no_loss(
    estate: Estate, meanwhile: Callable[[Estate], None]
) -> None:
    for root in estate.logs.values():
        write_offsets(RealDisk(root), HIGH_WATERMARKS, {NAME: HALF})
    done = audited(estate, meanwhile)
    assert set(done.verdict.counts) == {"undecided"}
    assert done.verdict.exit_code == 4
    assert "while they were read" in done.findings[0].detail


def test_records_that_producers_add_while_the_audit_reads_are_not_lost(estate: Estate) -> None:
    """The ledger, which is read after the directories, has them; the log had not."""
    whole = {path: path.read_bytes() for one in _folders(estate) for path in one.glob("*.log")}
    for folder in _folders(estate):
        line = estate.line()
        assert set(line) == set(range(HALF))
        path = folder / f"{HALF:020}.log"
        path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2])
    for root in estate.logs.values():
        write_offsets(RealDisk(root), HIGH_WATERMARKS, {NAME: HALF})

    def produce(_: Estate) -> None:
        for path, content in whole.items():
            path.write_bytes(content)

    assert audited(estate, produce).verdict.exit_code == 4


def test_elsewhere_a_loss_is_a_loss_whatever_changes(estate: Estate) -> None:
    for folder in _folders(estate):
        line = {at: one for at, one in estate.line().items() if at != 3}
        _write(folder, 0, line)

    def remove(estate: Estate) -> None:
        for folder in _folders(estate):
            (folder / f"{HALF:020}.log").rename(folder / f"{HALF:020}.log.deleted")

    done = audited(estate, remove)
    assert done.verdict.lost == 1
    assert done.verdict.exit_code == 2


def test_a_cleaner_that_died_before_its_checkpoint_is_no_loss(estate: Estate) -> None:
    """What it replaced is still there beside it."""
    for folder in _folders(estate):
        line = estate.line()
        path = folder / f"{0:020}.log"
        path.rename(f"{path}.deleted")
        _write(folder, 0, {at: line[at] for at in range(HALF - 7, HALF)})
    done = audited(estate, lambda _: None)
    assert done.verdict.exit_code == 4


def test_copies_of_different_moments_are_no_fault(tmp_path: Path) -> None:
    """The followers are copied, producers go on, and then the leader and the store are copied.

    One copy alone has the newest records. The same files are left if both followers lost them, so
    the audit cannot decide; but it claims no error.
    """
    live, copied = tmp_path / "live", Estate(tmp_path / "copied")
    with Cluster(live / "cluster", brokers=3) as cluster:
        cluster.create_topic(TOPIC, partitions=1)
        leader = cluster.leader(TOPIC)
        config = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0}
        producer = LedgerProducer(config, ledger=copied.ledger)
        for first, brokers in ((0, {1, 2, 3} - {leader}), (HALF, {leader})):
            for number in range(first, first + HALF):
                producer.produce(TOPIC, value(number), partition=0)
            assert producer.flush(30) == 0
            roots = {one: Estate(live).logs[f"b{one}"] for one in brokers}
            for broker, root in roots.items():
                wait_until(partial(_is_checkpointed, root, first + HALF), "a checkpoint", 60)
                shutil.copytree(root, copied.logs[f"b{broker}"])
        for file in filter(Path.is_file, (live / "cluster").glob(f"{EMBEDDED}*")):
            shutil.copy(file, copied.root / "cluster")
    del producer
    audit = run_here(AuditInputs(ledger=copied.ledger, logs=copied.logs))
    assert audit.verdict.exit_code == Exit.UNDECIDED
    [finding] = audit.findings
    assert (finding.kind, finding.offset, finding.last_offset) == ("undecided", HALF, RECORDS - 1)
    assert "may be older than the acknowledgement" in finding.detail
    noted = [f"ends at {HALF}, before the high watermark {RECORDS}" in one for one in audit.notes]
    assert noted == [True, True]


def test_one_copy_of_an_earlier_moment_leaves_enough_others(estate: Estate) -> None:
    """Two of three have every record."""
    follower = estate.followers[0]
    (estate.log(follower).parent / f"{HALF:020}.log").unlink()
    for file in (HIGH_WATERMARKS, RECOVERY_POINTS):
        write_offsets(RealDisk(estate.logs[follower]), file, {NAME: HALF})
    done = run_here(AuditInputs(ledger=estate.ledger, logs=estate.logs))
    assert (done.verdict.exit_code, done.findings, done.missing) == (Exit.GOOD, (), ())


def _is_checkpointed(root: Path, offset: int) -> bool:
    return read_offsets(RealDisk(root, read_only=True), HIGH_WATERMARKS).get(NAME) == offset
