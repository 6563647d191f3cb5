"""Faults planted in the files of copies, and what the audit must say: ours, and Apache Kafka's.

A module of tests gives a fixture `files`, a copy of a cluster's directories to spoil, and a class
that inherits `DamageTests`.
"""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest

from holdfast.model import TopicPartition
from holdfast.pipeline.audit import Audit, AuditInputs, Finding, run_here
from holdfast.pipeline.audit.controllers.coordination_store import find_store
from holdfast.pipeline.audit.controllers.kraft_metadata import METADATA
from holdfast.pipeline.audit.findings.findings import (
    DIFFER,
    INCONSISTENT,
    TOO_FEW,
    UNDECIDED,
    Exit,
)
from holdfast.pipeline.audit.replicas.replica_files import find_replicas
from holdfast.pipeline.audit.replicas.truth import Replica
from holdfast.protocol.records import RecordBatchHeader, batches
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import write_offsets
from holdfast.storage.file_names import HIGH_WATERMARKS, META_PROPERTIES, RECOVERY_POINTS

EPOCH_POSITION = 12
BYTES = {
    "offset, high": 0,
    "offset, low": 7,
    "length, high": 8,
    "length, low": 11,
    "epoch, high": 12,
    "epoch, low": 15,
    "magic": 16,
    "crc": 17,
    "attributes": 22,
    "last offset delta": 26,
    "max timestamp": 42,
    "record count": 60,
    "records": 75,
}
"""One byte of every field of a batch. The first three and the magic are covered by no CRC."""


class Files:
    """The directories of a cluster that has ended, and the ledger of one topic of one partition."""

    def __init__(self, logs: dict[str, Path], ledger: Path, topic: str) -> None:
        self.logs, self.ledger, self.topic = logs, ledger, topic

    def audit(self, consumed: Path | None = None) -> Audit:
        inputs = AuditInputs(
            ledger=self.ledger,
            logs=self.logs,
            topics=(self.topic,),
            consumed=consumed,
            is_consumed_whole=consumed is not None,
        )
        return run_here(inputs)

    def replicas(self) -> tuple[Replica, ...]:
        return find_replicas(self.logs, [self.topic]).partitions[self.topic, 0]

    @property
    def truth(self) -> str:
        return self.replicas()[0].broker

    @property
    def followers(self) -> list[str]:
        return [one.broker for one in self.replicas()[1:]]

    @property
    def committed(self) -> int:
        """Everything below the leader's high watermark must be in all copies."""
        high_watermark = self.replicas()[0].high_watermark
        assert high_watermark
        return high_watermark

    def folder(self, broker: str) -> Path:
        return self.logs[broker] / f"{self.topic}-0"

    def log(self, broker: str) -> Path:
        """Its last file."""
        return max(self.folder(broker).glob("*.log"))

    def batches(self, broker: str) -> list[tuple[int, RecordBatchHeader]]:
        content = self.log(broker).read_bytes()
        return [(one.position, one.header) for one in batches(content)]

    def middle(self, broker: str) -> tuple[int, RecordBatchHeader]:
        found = self.batches(broker)
        return found[len(found) // 2]

    def truncate(self, broker: str, batches: int) -> int:
        """Remove batches from the end of a log; returns the offset where it ends now."""
        position, header = self.batches(broker)[-batches]
        with self.log(broker).open("r+b") as file:
            file.truncate(position)
        return int(header.base_offset)

    def flip(self, broker: str, position: int, mask: int = 0x40) -> None:
        content = bytearray(self.log(broker).read_bytes())
        content[position] ^= mask
        self.log(broker).write_bytes(content)

    def set_epoch(self, broker: str, position: int, epoch: int) -> None:
        content = bytearray(self.log(broker).read_bytes())
        struct.pack_into(">i", content, position + EPOCH_POSITION, epoch)
        self.log(broker).write_bytes(content)

    def forget_metadata(self) -> None:
        """Remove KRaft's log and the embedded store."""
        for root in self.logs.values():
            shutil.rmtree(root / METADATA, ignore_errors=True)
        store = find_store(self.logs.values())
        if store is not None:
            Path(store).unlink()

    def checkpoint(self, broker: str, high_watermark: int) -> None:
        """Nothing flushed, and this high watermark."""
        disk, name = RealDisk(self.logs[broker]), TopicPartition(self.topic, 0)
        write_offsets(disk, HIGH_WATERMARKS, {name: high_watermark})
        write_offsets(disk, RECOVERY_POINTS, {name: 0})

    def forget_checkpoints(self, broker: str) -> None:
        """Checkpoints without the partition, as old as a file can be."""
        for file in (HIGH_WATERMARKS, RECOVERY_POINTS):
            write_offsets(RealDisk(self.logs[broker]), file, {})
        self.age(broker)

    def age(self, broker: str) -> None:
        """As `cp -p` from an old backup leaves it, or a broker that died long ago."""
        os.utime(self.logs[broker] / HIGH_WATERMARKS, (0, 0))


def the_only(audit: Audit, kind: str) -> Finding:
    assert audit.verdict.exit_code == Exit.WRONG, (audit.missing, audit.findings)
    assert not audit.missing
    [finding] = audit.findings
    assert finding.kind == kind
    return finding


def offsets(finding: Finding) -> tuple[int | None, int | None]:
    return finding.offset, finding.last_offset


def span(header: RecordBatchHeader) -> tuple[int, int]:
    return header.base_offset, header.base_offset + header.last_offset_delta


class DamageTests:
    """One copy is spoiled; the others show it."""

    @pytest.fixture(params=["with metadata", "without"])
    def known(self, files: Files, request: pytest.FixtureRequest) -> Files:
        if request.param == "without":
            files.forget_metadata()
        return files

    def test_nothing_is_found_where_nothing_is_wrong(self, known: Files) -> None:
        audit = known.audit()
        assert (audit.verdict.exit_code, audit.findings, audit.missing) == (Exit.GOOD, (), ())

    def test_a_second_directory_of_a_broker_is_not_missed_in(
        self, known: Files, tmp_path: Path
    ) -> None:
        first, second = known.logs[known.truth], tmp_path / "second"
        second.mkdir()
        shutil.copy(first / META_PROPERTIES, second)
        known.logs["second"] = second
        assert known.audit().verdict.exit_code == Exit.GOOD

    def test_a_tail_truncated_from_one_copy(self, known: Files) -> None:
        for broker in (known.followers[0], known.truth):
            whole, end = known.log(broker).read_bytes(), known.replicas()[0].end
            start = known.truncate(broker, 3)
            finding = the_only(known.audit(), DIFFER)
            assert (offsets(finding), finding.lacks) == ((start, end - 1), (broker,))
            assert finding.cause is not None
            assert str(known.folder(broker)) in finding.evidence
            known.log(broker).write_bytes(whole)

    def test_an_emptied_log(self, known: Files) -> None:
        follower, end = known.followers[0], known.replicas()[0].end
        for path in known.folder(follower).iterdir():
            path.write_bytes(b"")
        finding = the_only(known.audit(), DIFFER)
        assert (offsets(finding), finding.lacks) == ((0, end - 1), (follower,))

    def test_a_folder_that_is_gone(self, known: Files) -> None:
        follower, end = known.followers[0], known.replicas()[0].end
        shutil.rmtree(known.folder(follower))
        finding = the_only(known.audit(), DIFFER)
        assert (offsets(finding), finding.lacks) == ((0, end - 1), (follower,))
        assert "folder is not there" in finding.detail

    def test_a_copy_that_is_behind_and_never_said_more_is_no_fault(self, files: Files) -> None:
        follower = files.followers[0]
        files.forget_metadata()
        files.checkpoint(follower, files.truncate(follower, 3))
        assert files.audit().verdict.exit_code == Exit.GOOD

    @pytest.mark.parametrize("old", [2, 1, 0])
    def test_records_that_only_the_leader_has_are_never_good(self, known: Files, old: int) -> None:
        """The time of a copy is no proof that the copy is older than the acknowledgements."""
        end, followers = known.replicas()[0].end, known.followers
        starts = [known.truncate(one, 3) for one in followers]
        for follower, start in zip(followers, starts, strict=True):
            known.checkpoint(follower, start)
        for follower in followers[:old]:
            known.age(follower)
        audit = known.audit()
        [finding] = audit.findings
        assert (offsets(finding), {*finding.lacks}) == ((max(starts), end - 1), {*followers})
        if not old:
            assert (audit.verdict.exit_code, finding.kind) == (Exit.WRONG, TOO_FEW)
            return
        assert (audit.verdict.exit_code, finding.kind) == (Exit.UNDECIDED, UNDECIDED)
        [missing] = audit.missing
        for text in (finding.detail, missing):
            assert "may be older than the acknowledgement" in text
            assert "audit copies of stopped brokers" in text

    def test_folders_that_are_gone_are_no_older_copies(self, files: Files) -> None:
        end, followers = files.replicas()[0].end, files.followers
        for follower in followers:
            shutil.rmtree(files.folder(follower))
            files.forget_checkpoints(follower)
        audit = files.audit()
        assert (audit.verdict.exit_code, audit.missing) == (Exit.WRONG, ())
        found = [(one.kind, offsets(one), one.lacks) for one in audit.findings]
        few = (TOO_FEW, (0, end - 1), tuple(sorted(followers)))
        differ = [(DIFFER, (0, files.committed - 1), (one,)) for one in followers]
        assert sorted(found) == sorted([few, *differ])

    def test_a_copy_that_is_gone_with_its_checkpoints(self, files: Files) -> None:
        """The folder, or all records in it: the cluster's metadata names the replica."""
        follower, end = files.followers[0], files.committed
        files.forget_checkpoints(follower)
        for path in files.folder(follower).iterdir():
            path.write_bytes(b"")
        for reason in ("is empty", "folder is not there"):
            audit = files.audit()
            finding = the_only(audit, DIFFER)
            assert (offsets(finding), finding.lacks) == ((0, end - 1), (follower,))
            assert reason in finding.detail
            assert not audit.notes
            shutil.rmtree(files.folder(follower), ignore_errors=True)

    def test_a_directory_that_is_empty(self, files: Files) -> None:
        follower, end = files.followers[0], files.committed
        shutil.rmtree(files.logs[follower])
        files.logs[follower].mkdir()
        finding = the_only(files.audit(), DIFFER)
        assert (offsets(finding), finding.lacks) == ((0, end - 1), (follower,))
        files.logs["unnumbered"] = files.logs.pop(follower)
        text = f"the log directory of unnumbered is empty: {files.logs['unnumbered']}"
        for _ in ("with metadata", "without"):
            audit = files.audit()
            assert (audit.verdict.exit_code, audit.findings) == (Exit.UNDECIDED, ())
            assert audit.missing == (text,)
            files.forget_metadata()

    def test_another_leader_epoch_in_the_middle(self, known: Files) -> None:
        for broker in (known.followers[0], known.truth):
            whole = known.log(broker).read_bytes()
            position, header = known.middle(broker)
            for epoch in (header.leader_epoch + 1, 1 << 30, -5):
                known.set_epoch(broker, position, epoch)
                finding = the_only(known.audit(), INCONSISTENT)
                assert (offsets(finding), finding.lacks) == (span(header), (broker,))
                assert "leader epoch" in finding.detail
            known.log(broker).write_bytes(whole)

    def test_a_short_copy_with_a_damaged_epoch_is_not_the_truth(self, known: Files) -> None:
        follower, end = known.followers[0], known.replicas()[0].end
        start = known.truncate(follower, 3)
        position, header = known.batches(follower)[-1]
        known.set_epoch(follower, position, header.leader_epoch + 7)
        assert known.truth != follower
        audit = known.audit()
        assert audit.verdict.exit_code == Exit.WRONG
        by_kind = {one.kind: one for one in audit.findings}
        assert offsets(by_kind[DIFFER]) == (start, end - 1)
        assert offsets(by_kind[INCONSISTENT]) == span(header)
        assert len(audit.findings) == 2

    def test_any_byte_of_a_batch(self, files: Files) -> None:
        """In a follower, or in the leader: the other copies have the records."""
        for broker in (files.followers[0], files.truth):
            whole = files.log(broker).read_bytes()
            for nth in (len(files.batches(broker)) // 2, -1):
                position, header = files.batches(broker)[nth]
                for name, byte in BYTES.items():
                    files.flip(broker, position + byte)
                    audit = files.audit()
                    case = (broker, nth, name, audit.findings, audit.missing)
                    assert audit.verdict.exit_code == Exit.WRONG, case
                    assert all(one.lacks == (broker,) for one in audit.findings), case
                    firsts = [one.offset for one in audit.findings]
                    assert header.base_offset in firsts, case
                    files.log(broker).write_bytes(whole)

    def test_a_flipped_byte_is_named_with_its_file_and_offset(self, files: Files) -> None:
        follower = files.followers[0]
        position, header = files.middle(follower)
        files.flip(follower, position + 75)
        finding = the_only(files.audit(), DIFFER)
        assert (offsets(finding), finding.lacks) == (span(header), (follower,))
        assert sorted(finding.has) == sorted({*files.logs} - {follower})
        assert finding.evidence[0] == f"{files.log(follower)}:{position}"
        assert "the CRC does not match" in finding.detail

    def test_a_batch_that_no_copy_can_give(self, files: Files) -> None:
        position, header = files.middle(files.truth)
        for broker in files.logs:
            files.flip(broker, position + 75)
        audit = files.audit()
        assert (audit.verdict.exit_code, audit.missing) == (Exit.LOSS, ())
        [finding] = audit.findings
        assert (finding.kind, offsets(finding)) == ("lost", span(header))
        assert "no readable copy is left" in finding.detail
        places = {f"{files.log(broker)}:{position}" for broker in files.logs}
        assert set(finding.evidence[:3]) == places
        assert finding.cause is not None
        assert "damaged in 3 files" in finding.cause.sentence
