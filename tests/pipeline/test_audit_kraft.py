"""KRaft's metadata log, written here record by record; test_apache_kafka.py reads Kafka's own."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from holdfast.pipeline.audit.controllers import kraft_log_reader
from holdfast.pipeline.audit.controllers.kraft_metadata import METADATA, Metadata, read_metadata
from holdfast.protocol.errors import MalformedMessage, UnsupportedVersionError
from holdfast.protocol.kraft_records import (
    RECOVERING,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_record,
)
from holdfast.protocol.kraft_records.definitions import KINDS
from holdfast.protocol.records import BatchOptions, NewRecord, build_batch
from holdfast.storage.segment.batch_scan import LARGE_BYTES

A, B = b"a" * 16, b"b" * 16
NUMBERS = {kind: key for key, kind in KINDS.items()}
NO_OP = bytes([1, 20, 0, 0])
NEWER = bytes([1, 3, 99, 0])


def framed(record: MetadataRecord) -> bytes:
    version = max(type(record).VERSIONS)
    return bytes([1, NUMBERS[type(record)], version]) + record.encode(version)


def partition(topic_id: bytes = A, **more: object) -> PartitionRecord:
    given = {"replicas": [1, 2, 3], "isr": [1, 2, 3], "leader": 1, "leader_epoch": 0, **more}
    return PartitionRecord(
        partition_id=0,
        topic_id=topic_id,
        partition_epoch=0,
        **{"removing_replicas": [], "adding_replicas": [], **given},  # type: ignore[arg-type]
    )


def change(**more: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=A, **more)  # type: ignore[arg-type]


def batch(offset: int, *records: MetadataRecord | bytes, epoch: int = 1) -> bytes:
    values = [one if isinstance(one, bytes) else framed(one) for one in records]
    made = [NewRecord(value, None, 1_000 + offset) for value in values]
    return bytes(build_batch(made, BatchOptions(base_offset=offset, leader_epoch=epoch)))


def write(root: Path, name: str, *made: bytes) -> Path:
    folder = root / METADATA
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(b"".join(made))
    return path


def read(*roots: Path) -> Metadata:
    witness = read_metadata(roots, ["t"])
    assert witness.metadata is not None, witness
    return witness.metadata


CREATED = (TopicRecord(name="t", topic_id=A), partition())


def elections(metadata: Metadata) -> list[tuple[int, int, bool]]:
    known = metadata.partition("t", 0)
    assert known is not None
    return [(one.leader, one.leader_epoch, one.is_unclean) for one in known.elections]


def test_every_record_is_read_as_it_was_written() -> None:
    for record in (*CREATED, change(isr=[2], leader=2), RemoveTopicRecord(topic_id=A)):
        assert decode_record(framed(record)) == record
    assert decode_record(NO_OP) is None, "nobody's business here"


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x00\x02\x00", b"\x01\x02\x00\x09"])
def test_what_is_no_record_is_refused(value: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_record(value)


@pytest.mark.parametrize("value", [NEWER, bytes([2, 3, 0, 0])], ids=["record", "frame"])
def test_a_newer_version_is_refused(value: bytes) -> None:
    with pytest.raises(UnsupportedVersionError):
        decode_record(value)


def test_a_newer_version_is_said_and_no_trouble(tmp_path: Path) -> None:
    write(tmp_path, f"{0:020}.log", batch(0, *CREATED), batch(2, NEWER))
    metadata, troubles, [note] = read_metadata([tmp_path], ["t"])
    assert (metadata, troubles) == (None, ())
    assert "PartitionRecord has no version 99" in note


def test_clean_and_unclean_elections_are_distinguished(tmp_path: Path) -> None:
    write(
        tmp_path,
        f"{0:020}.log",
        batch(0, NO_OP, *CREATED),
        batch(3, change(isr=[1, 2])),
        batch(4, change(isr=[1], eligible_leader_replicas=[2])),
        batch(5, change(leader=-1)),
        batch(6, change(leader=2, isr=[2], eligible_leader_replicas=[])),
        batch(7, change(leader=3, isr=[3], leader_recovery_state=RECOVERING)),
        batch(8, change(leader_recovery_state=0)),
    )
    metadata = read(tmp_path)
    assert elections(metadata) == [(1, 0, False), (-1, 1, False), (2, 2, False), (3, 3, True)]
    known = metadata.partition("t", 0)
    assert known is not None
    assert (known.isr, known.eligible, known.leader_epoch) == ((3,), (), 3)
    assert [one.isr for one in known.elections[1:]] == [(1,), (1,), (2,)]


def test_a_leader_that_was_neither_in_sync_nor_eligible_was_elected_uncleanly(
    tmp_path: Path,
) -> None:
    """Old controllers did not write that it recovers."""
    write(tmp_path, f"{0:020}.log", batch(0, *CREATED), batch(2, change(isr=[1]), change(leader=2)))
    assert elections(read(tmp_path))[-1] == (2, 1, True)


def test_a_leader_that_a_reassignment_brings_into_sync_was_elected_cleanly(tmp_path: Path) -> None:
    """Kafka's controller writes the new ISR, the new replicas and the new leader as one record."""
    write(
        tmp_path,
        f"{0:020}.log",
        batch(0, TopicRecord(name="t", topic_id=A), partition(replicas=[1], isr=[1])),
        batch(2, change(replicas=[2, 1], adding_replicas=[2], removing_replicas=[1])),
        batch(3, change(replicas=[2], isr=[2], leader=2, adding_replicas=[], removing_replicas=[])),
    )
    assert elections(read(tmp_path)) == [(1, 0, False), (2, 1, False)]


def test_a_replica_that_a_reassignment_adds_need_not_have_records(tmp_path: Path) -> None:
    created = TopicRecord(name="t", topic_id=A), partition(replicas=[1, 2], isr=[1])
    steps = (
        change(replicas=[3, 1, 2], adding_replicas=[3], removing_replicas=[1]),
        change(isr=[1, 3]),
        change(replicas=[3, 2], adding_replicas=[], removing_replicas=[], isr=[3]),
    )
    held = []
    for nth in range(len(steps) + 1):
        made = [batch(2 + at, step) for at, step in enumerate(steps[:nth])]
        write(tmp_path, f"{0:020}.log", batch(0, *created), *made)
        known = read(tmp_path).partition("t", 0)
        assert known is not None
        held.append(known.holders)
    assert held == [{1, 2}, {1, 2}, {1, 2, 3}, {2, 3}]


def test_topics_of_one_name_are_distinguished(tmp_path: Path) -> None:
    write(
        tmp_path,
        f"{0:020}.log",
        batch(0, *CREATED, TopicRecord(name="other", topic_id=b"o" * 16)),
        batch(3, RemoveTopicRecord(topic_id=A)),
        batch(4, TopicRecord(name="t", topic_id=B), partition(B, replicas=[3], isr=[3])),
    )
    metadata = read(tmp_path)
    incarnations = [
        (one.topic_id, one.created_ms, one.removed_ms) for one in metadata.incarnations["t"]
    ]
    assert incarnations == [(A, 1_000, 1_003), (B, 1_004, None)]
    known = metadata.partition("t", 0)
    assert known is not None
    assert known.replicas == (3,)


def test_a_deleted_topic_is_none(tmp_path: Path) -> None:
    write(tmp_path, f"{0:020}.log", batch(0, *CREATED), batch(2, RemoveTopicRecord(topic_id=A)))
    assert read(tmp_path).partition("t", 0) is None


def test_a_log_that_begins_later_goes_on_from_its_oldest_snapshot(tmp_path: Path) -> None:
    write(tmp_path, f"{100:020}-{2:010}.checkpoint", batch(0, *CREATED))
    write(tmp_path, f"{103:020}-{2:010}.checkpoint", batch(0, *CREATED))
    write(
        tmp_path,
        f"{98:020}.log",
        batch(98, change(leader=3)),
        batch(100, change(leader=2, isr=[2, 3])),
    )
    metadata = read(tmp_path)
    assert elections(metadata) == [(1, 0, False), (2, 1, False)]
    assert metadata.incarnations["t"][0].created_ms is None, "a snapshot does not say"


def test_the_newest_log_is_read(tmp_path: Path) -> None:
    old, new, torn = (tmp_path / name for name in ("old", "new", "torn"))
    write(old, f"{0:020}.log", batch(0, *CREATED), batch(2, change(leader=3), change(leader=2)))
    write(new, f"{0:020}.log", batch(0, *CREATED), batch(2, change(leader=2), epoch=2))
    assert elections(read(old, new))[1:] == [(2, 1, False)]
    path = write(torn, f"{0:020}.log", batch(0, *CREATED), batch(2, change(leader=2), epoch=3))
    path.write_bytes(path.read_bytes() + batch(3, change(leader=3), epoch=3)[:-5])
    assert elections(read(old, new, torn))[1:] == [(2, 1, False)], "a controller is writing"


def test_of_a_damaged_log_the_next_best_is_read(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    write(good, f"{0:020}.log", batch(0, *CREATED))
    content = bytearray(batch(0, *CREATED))
    content[-5] ^= 1
    write(bad, f"{0:020}.log", bytes(content), batch(2, change(leader=3), epoch=2))
    assert elections(read(good, bad)) == [(1, 0, False)]
    metadata, [trouble], _ = read_metadata([bad], ["t"])
    assert metadata is None
    assert str(bad) in trouble


UNCLEAN = change(leader=3, isr=[3], leader_recovery_state=RECOVERING)


@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed segment", "last segment"])
def test_a_damaged_length_is_no_write_in_progress(tmp_path: Path, is_sealed: bool) -> None:
    """It reaches beyond the end of the file, as the length of an incomplete batch does."""
    bad, good = tmp_path / "bad", tmp_path / "good"
    made = [batch(0, *CREATED), batch(2, change(isr=[1])), batch(3, UNCLEAN), batch(4, NO_OP)]
    for root in (bad, good):
        write(root, f"{0:020}.log", *made)
        if is_sealed:
            write(root, f"{5:020}.log", batch(5, NO_OP))
    content = bytearray(b"".join(made))
    content[len(made[0]) + 9] ^= 0x10  # 1 MiB more.
    path = write(bad, f"{0:020}.log", bytes(content))
    metadata, [trouble], _ = read_metadata([bad], ["t"])
    assert metadata is None
    assert str(path.parent) in trouble
    metadata, troubles, notes = read_metadata([bad, good], ["t"])
    assert metadata is not None
    assert elections(metadata) == [(1, 0, False), (3, 1, True)]
    assert not troubles
    # A damaged last segment ends earlier than the good one, which is read first then.
    assert notes == ((trouble,) if is_sealed else ())


def test_the_end_of_a_sealed_segment_is_not_left_out(tmp_path: Path) -> None:
    """Only into the last one a controller may be writing."""
    write(tmp_path, f"{0:020}.log", batch(0, *CREATED), batch(2, UNCLEAN)[:-5])
    write(tmp_path, f"{3:020}.log", batch(3, NO_OP))
    metadata, [trouble], _ = read_metadata([tmp_path], ["t"])
    assert metadata is None
    assert "cannot be read" in trouble


def test_an_incomplete_snapshot_is_refused(tmp_path: Path) -> None:
    """It would lack topics, and no word of a log would bring them back."""
    whole = batch(0, *CREATED)
    write(tmp_path, f"{100:020}-{2:010}.checkpoint", whole, whole[:-10])
    metadata, [trouble], _ = read_metadata([tmp_path], ["t"])
    assert metadata is None
    assert "cannot be read" in trouble


def test_a_file_that_is_no_segment_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, f"{0:020}.log", batch(0, *CREATED))
    write(tmp_path, "notes.log", b"not Kafka's")
    assert elections(read(tmp_path)) == [(1, 0, False)]


def test_no_metadata_log_is_no_trouble(tmp_path: Path) -> None:
    assert read_metadata([tmp_path], ["t"]) == (None, (), ())


def no_ops(first: int, count: int) -> bytes:
    """A batch each, as a controller writes them. No CRC covers the offset."""
    one = batch(0, NO_OP)[8:]
    return b"".join((first + nth).to_bytes(8, "big") + one for nth in range(count))


@pytest.mark.parametrize("piece", [61, 100, 150, 1000])
def test_a_file_is_read_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """A batch may lie across the edge of a piece, or be larger than one."""
    monkeypatch.setattr(kraft_log_reader, "PIECE_BYTES", piece)
    path = write(
        tmp_path,
        f"{0:020}.log",
        batch(0, *CREATED),
        no_ops(2, 20),
        batch(22, change(leader=2), change(leader=3)),
        batch(24, change(leader=1))[:-5],
    )
    assert elections(read(tmp_path)) == [(1, 0, False), (2, 1, False), (3, 2, False)]
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    content += batch(24, change(leader=1))[-5:]
    path.write_bytes(content)
    _, [trouble], _ = read_metadata([tmp_path], ["t"])
    assert "the CRC says" in trouble


def test_a_length_that_no_batch_has_is_refused(tmp_path: Path) -> None:
    """It is not read into memory first."""
    path = write(tmp_path, f"{0:020}.log", batch(0, *CREATED))
    with path.open("r+b") as file:
        file.truncate(LARGE_BYTES + 1_000)  # Nothing is allocated.
        file.seek(8)
        file.write(LARGE_BYTES.to_bytes(4, "big"))
    _, [trouble], _ = read_metadata([tmp_path], ["t"])
    assert "a batch cannot be" in trouble


def test_memory_does_not_grow_with_a_file(tmp_path: Path) -> None:
    peaks = []
    for count in (30_000, 120_000):
        path = write(tmp_path, f"{0:020}.log", batch(0, *CREATED), no_ops(2, count))
        tracemalloc.start()
        try:
            assert len(list(kraft_log_reader.read_records(path, is_complete=False))) == 2
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
