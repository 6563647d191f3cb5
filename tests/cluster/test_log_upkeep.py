"""What brokers do to their logs while they run: flushing, cleaning, copying, few descriptors.

Three brokers with default settings, but for what a test says of its topic. Each process may have
256 descriptors.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from holdfast.protocol.coordinator_records import partition_for
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import read_offsets
from holdfast.storage.file_names import CLEANED, CLEANER_OFFSETS, RECOVERY_POINTS, SWAP
from tests.support.brokers import QUIET, Brokers
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

DESCRIPTORS = 256
IDS = (1, 2, 3)
COUNT = 560
OFFSETS = "__consumer_offsets"
MIB = 1 << 20
LOOKS = 20_000
"""At a folder, one after the other: some tenths of a second."""
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(MIB),
    "min.cleanable.dirty.ratio": "0.1",
}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    made = Brokers(tmp_path_factory.mktemp("upkeep"), descriptors=DESCRIPTORS)
    made.start()
    yield made
    made.close()


def create(brokers: Brokers, opening: str, config: Mapping[str, str]) -> str:
    """A topic of one partition, led by broker 1, on all brokers."""
    name = brokers.new_name(opening)
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap, **QUIET})
    topic = NewTopic(name, 1, replica_assignment=[[*IDS]], config=dict(config))
    admin.create_topics([topic])[name].result()
    return name


def configure(brokers: Brokers, topic: str, name: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap, **QUIET})
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for done in admin.incremental_alter_configs([resource]).values():
        done.result()


class Sender:
    """A producer that knows what was acknowledged: the last value of every key."""

    def __init__(self, brokers: Brokers, **more: object) -> None:
        config = {"bootstrap.servers": brokers.bootstrap, "linger.ms": 5, **QUIET, **more}
        self._producer = Producer(config)
        self.newest: dict[bytes, bytes | None] = {}

    def send(self, topic: str, key: bytes, value: bytes | None) -> None:
        def delivered(error: object, _: object) -> None:
            assert error is None, error

        while True:
            try:
                self._producer.produce(topic, value, key, partition=0, on_delivery=delivered)
                break
            except BufferError:
                self._producer.poll(0.1)
        self.newest[key] = value
        self._producer.poll(0)

    def flush(self) -> None:
        assert not self._producer.flush(120.0)


def records(brokers: Brokers, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """All of partition 0, from its beginning, as a consumer sees them."""
    config = {"bootstrap.servers": brokers.bootstrap, "group.id": "reader", **QUIET}
    consumer = Consumer({**config, "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[tuple[bytes | None, bytes | None]] = []
    try:
        while True:
            for one in consumer.consume(10_000, 30.0):
                if (error := one.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    return found
                found.append((one.key(), one.value()))
    finally:
        consumer.close()


def checkpointed(brokers: Brokers, number: int, file: str, topic: str, partition: int = 0) -> int:
    offsets = read_offsets(RealDisk(brokers.log_dir(number), read_only=True), file)
    return offsets.get((topic, partition), 0)  # type: ignore[call-overload, no-any-return]


def has_passed(brokers: Brokers, number: int, topic: str, offset: int) -> bool:
    return checkpointed(brokers, number, RECOVERY_POINTS, topic) >= offset


def descriptors(brokers: Brokers, number: int) -> int:
    return len(list(Path(f"/proc/{brokers.pid(number)}/fd").iterdir()))


def segments(brokers: Brokers, number: int, topic: str, partition: int = 0) -> list[Path]:
    return sorted((brokers.log_dir(number) / f"{topic}-{partition}").glob("*.log"))


def test_sealed_segments_are_flushed_and_hold_no_descriptors(brokers: Brokers) -> None:
    config = {"segment.index.bytes": "8", "index.interval.bytes": "1"}
    topic = create(brokers, "many", config)
    sender = Sender(brokers, acks="all")
    for number in range(COUNT):  # One batch each, and two of them fill an index.
        sender.send(topic, b"%d" % number, b"value")
        sender.flush()
    for broker in IDS:
        bases = [int(path.stem) for path in segments(brokers, broker, topic)]
        assert len(bases) >= COUNT // 2
        is_flushed = partial(has_passed, brokers, broker, topic, bases[-1])
        wait_until(is_flushed, "the recovery point has followed the last roll")
    found = records(brokers, topic)
    assert [key for key, _ in found] == [b"%d" % number for number in range(COUNT)]
    for broker in IDS:
        assert descriptors(brokers, broker) < DESCRIPTORS // 2
        assert "offline" not in brokers.log(broker)


def commit_often(brokers: Brokers, group: str, topic: str, times: int) -> None:
    """Commits of some kilobytes each; the last one counts."""
    config = {"bootstrap.servers": brokers.bootstrap, "group.id": group, **QUIET}
    consumer = Consumer({**config, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    try:
        for number in range(times):
            offset = TopicPartition(topic, 0, number + 1, metadata="x" * 4000)
            consumer.commit(offsets=[offset], asynchronous=False)
    finally:
        consumer.close()


def committed(brokers: Brokers, group: str, topic: str) -> int:
    config = {"bootstrap.servers": brokers.bootstrap, "group.id": group, **QUIET}
    consumer = Consumer({**config, "enable.auto.commit": False})
    try:
        [found] = consumer.committed([TopicPartition(topic, 0)], 30.0)
        return int(found.offset)
    finally:
        consumer.close()


def cleaned(brokers: Brokers, topic: str, offset: int, partition: int = 0) -> bool:
    """Whether every broker's checkpoint says that its cleaner has come so far."""
    return all(
        checkpointed(brokers, broker, CLEANER_OFFSETS, topic, partition) >= offset for broker in IDS
    )


def test_compacted_topics_are_compacted(brokers: Brokers) -> None:
    """A user's topic with deletions, and the offsets of groups; the cleaner's defaults."""
    topic = create(brokers, "compacted", {**COMPACTED, "delete.retention.ms": "0"})
    sender = Sender(brokers, acks="all")
    keys = [b"%d" % number for number in range(100)]
    for number in range(6_000):
        sender.send(topic, keys[number % 100], b"%0200d" % number)
    for key in keys[:50]:
        sender.send(topic, key, None)

    def send_others(count: int) -> None:
        for number in range(count):  # A segment takes less than 5,000 of them.
            sender.send(topic, keys[50 + number % 50], b"%0200d" % number)
        sender.flush()

    send_others(10_000)
    group = brokers.new_name("group")
    commit_often(brokers, group, topic, 1)
    configure(brokers, OFFSETS, "segment.bytes", str(MIB))
    commit_often(brokers, group, topic, 600)
    place = partition_for(group, 4)
    wait_until(lambda: cleaned(brokers, topic, 10_000), "the topic is cleaned")
    wait_until(lambda: cleaned(brokers, OFFSETS, 250, place), "the offsets are cleaned")
    send_others(12_000)  # Tombstones go with the run after the one that has seen them.
    wait_until(lambda: cleaned(brokers, topic, 20_000), "the topic is cleaned again")
    found = records(brokers, topic)
    assert len(found) < 9_000, "of 28,050"
    assert not [key for key, value in found if value is None], "tombstones are gone"
    assert dict(found) == {key: value for key, value in sender.newest.items() if value is not None}
    sizes = [path.stat().st_size for path in segments(brokers, 1, OFFSETS, place)]
    assert sum(sizes[:-1]) < MIB // 2, "of 2.4 MB of commits the last one is left"
    assert committed(brokers, group, topic) == 600


def killed_beside(brokers: Brokers, number: int, folder: Path, state: str) -> bool:
    """Kill a broker while a file of this state is there; False if there was none for a while.

    It stands still while we look again, so what we see is what its successor finds.
    """

    def is_there() -> bool:
        return any(folder.glob(f"*{state}"))

    for _ in range(LOOKS):
        if is_there():
            process = brokers.pid(number)
            os.kill(process, signal.SIGSTOP)
            if is_there():
                brokers.kill(number)
                return True
            os.kill(process, signal.SIGCONT)
    return False


def test_a_kill_while_cleaning_changes_no_key(brokers: Brokers) -> None:
    """In the middle of a new segment, and while one takes the place of old ones."""
    topic = create(brokers, "killed", COMPACTED)
    sender = Sender(brokers, acks="all")
    folder = brokers.log_dir(3) / f"{topic}-0"
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for number in range(sent, sent + count):
            # Every tenth key is sent once: compaction must keep it wherever it is.
            key = b"%d" % (number % 1000 if number % 10 else number)
            sender.send(topic, key, b"%0200d" % number)
        sender.flush()
        sent += count

    def is_killed(state: str) -> bool:
        if checkpointed(brokers, 3, CLEANER_OFFSETS, topic) > sent - 6_000:
            send(10_000)  # It has missed the moment; a segment takes less than 5,000.
        return killed_beside(brokers, 3, folder, state)

    send(30_000)
    for state in (CLEANED, SWAP):
        wait_until(partial(is_killed, state), f"broker 3 is killed beside a file {state}")
        brokers.start(3)
    wait_until(lambda: cleaned(brokers, topic, 25_000), "all have cleaned")
    for broker in (1, 2):
        brokers.kill(broker)
    brokers.start(1, 2)
    assert dict(records(brokers, topic)) == sender.newest


def test_a_batch_larger_than_a_segment_is_copied(brokers: Brokers) -> None:
    """And a partition that cannot be copied is the only one that is not."""
    large = create(brokers, "large", {"max.message.bytes": str(4 * MIB)})
    other = create(brokers, "other", {})
    for broker in (2, 3):
        brokers.kill(broker)
    sender = Sender(brokers, acks="1", **{"message.max.bytes": 4 * MIB})
    sender.send(large, b"large", os.urandom(3 * MIB))
    sender.flush()
    configure(brokers, large, "segment.bytes", str(MIB))
    brokers.start(2, 3)
    sure = Sender(brokers, acks="all")
    sure.send(other, b"other", b"value")
    sure.flush()
    sure.send(large, b"small", b"value")
    sure.flush()
    for broker in (2, 3):
        sizes = [path.stat().st_size for path in segments(brokers, broker, large)]
        assert sizes[0] > 3 * MIB, "a segment of its own"
        assert len(sizes) == 2
