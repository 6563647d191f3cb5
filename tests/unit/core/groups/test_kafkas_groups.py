"""Our coordinator loads the groups that a real Apache Kafka wrote to its log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from holdfast.core.groups import Groups, GroupSettings, GroupState
from holdfast.model import TopicPartition as Partition
from holdfast.protocol.coordinator_records import (
    Skipped,
    decode_record,
    subscribed_topics,
)
from holdfast.protocol.records import batches, read_records
from tests.unit.storage import kafka

pytestmark = pytest.mark.slow


def write_groups(bootstrap: str, copy: Path, node: kafka.Node, data: Path) -> None:
    """A group with a static member, an emptied one, and a simple consumer's offset."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic("t", 2, 1)]).values():
        future.result(30)
    settings = {"bootstrap.servers": bootstrap, "enable.auto.commit": False}
    living = Consumer({**settings, "group.id": "living", "group.instance.id": "i"})
    left = Consumer({**settings, "group.id": "emptied"})
    for consumer in (living, left):
        consumer.subscribe(["t"])
        for _ in range(60):
            consumer.poll(0.5)
            if len(consumer.assignment()) == 2:
                break
        consumer.commit(offsets=[TopicPartition("t", 1, 7, "note")], asynchronous=False)
    left.close()
    simple = Consumer({**settings, "group.id": "simple"})
    simple.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
    simple.close()
    node.copy(data, copy)
    living.close()


def stored(folder: Path) -> Iterator[tuple[bytes | None, bytes | None]]:
    for path in sorted((folder / "__consumer_offsets-0").glob("*.log")):
        for batch in batches(path.read_bytes()):
            if not batch.header.is_control:
                for record in read_records(batch):
                    key = None if record.key is None else bytes(record.key)
                    yield key, None if record.value is None else bytes(record.value)


def test_we_take_over_kafkas_groups(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with kafka.node(tmp_path) as node:
        write_groups(node.bootstrap, copy, node, tmp_path / "data")
    groups = Groups(GroupSettings(), subscribed_topics)
    for key, value in stored(copy):
        record = decode_record(key, value)
        assert not isinstance(record, Skipped), record
        assert groups.replay(record) is None
    assert groups.loaded(0) == ()
    shutil.rmtree(copy)
    states = {each.group_id: each.state for each in groups.list_groups()}
    empty = GroupState.EMPTY
    assert states == {"living": GroupState.STABLE, "emptied": empty, "simple": empty}
    [member] = groups.describe("living").members
    assert member.group_instance_id == "i"
    assert subscribed_topics(member.metadata) == ("t",)
    assert b"\0\1t\0\0\0\2\0\0\0\0\0\0\0\1" in member.assignment
    for group_id in ("living", "emptied"):
        committed = groups.fetch_offsets(group_id).offsets[Partition("t", 1)]
        assert committed.offset == 7
        # This client counts the zero byte after its text as part of it.
        assert committed.metadata.rstrip("\0") == "note"
    assert groups.fetch_offsets("simple").offsets[Partition("t", 0)].offset == 3
