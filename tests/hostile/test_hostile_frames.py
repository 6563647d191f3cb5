"""With any input, brokers keep running and serving, keep acknowledged records, and stay small."""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from collections.abc import Iterable, Iterator
from random import Random

import pytest

from holdfast.cluster import Cluster
from holdfast.protocol.messages.control import (
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from holdfast.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.hostile.frames import TOPIC, batches, bombs, mutated, nonsense, requests
from tests.hostile.town import MIB, Town, is_answer, is_answered, wire

pytestmark = pytest.mark.slow

SEED = 20261115
OPEN_AT_ONCE = 50
BATCH_VERSION = 9


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    with Cluster(brokers=3) as cluster:
        cluster.create_topic(TOPIC, 3)
        yield Town(cluster)


def attack(town: Town, streams: Iterable[bytes]) -> None:
    """Send each over its own connection, some of them open at a time, and read no answer."""
    opened: deque[socket.socket] = deque()
    for place, stream in enumerate(streams):
        connection = town.connect(1 + place % 3)
        opened.append(connection)
        with contextlib.suppress(ConnectionError):
            connection.sendall(stream)
        if len(opened) > OPEN_AT_ONCE:
            opened.popleft().close()
    for connection in opened:
        connection.close()


def test_mutated_requests_of_every_api_and_version(town: Town) -> None:
    rng = Random(SEED)
    with town.memory_within(100 * MIB):
        attack(town, (mutated(frame, rng) for frame in requests(rng, 6)))
        town.check()


def test_well_formed_requests_with_random_content(town: Town) -> None:
    rng = Random(SEED + 1)
    with town.memory_within(100 * MIB):
        attack(town, requests(rng, 4))
        town.check()


def test_nonsense_before_between_and_after_requests(town: Town) -> None:
    rng = Random(SEED + 2)

    def streams() -> Iterator[bytes]:
        good = list(requests(rng, 1))
        for _ in range(500):
            some = [rng.choice(good) for _ in range(rng.randint(0, 20))]
            some.insert(rng.randint(0, len(some)), nonsense(rng))
            yield b"".join(some)

    with town.memory_within(100 * MIB):
        attack(town, streams())
        town.check()


def test_commands_from_a_client_that_is_not_the_controller(town: Town) -> None:
    """A higher epoch than the controller's does not fence it; no client is disconnected."""
    epoch = 2**31 - 1
    commands = [
        wire(LeaderAndIsrRequest(controller_id=1, controller_epoch=epoch, live_leaders=[]), 7),
        wire(
            UpdateMetadataRequest(controller_id=1, controller_epoch=epoch, live_brokers=[]),
            8,
        ),
        wire(StopReplicaRequest(controller_id=1, controller_epoch=epoch), 4),
        *(
            wire(ControlledShutdownRequest(broker_id=broker), version)
            for broker in (1, 2, 3)
            for version in (1, 2, 3)
        ),
    ]
    for broker in (1, 2, 3):
        with town.connect(broker) as connection:
            for command in commands:
                connection.sendall(command)
            for _ in commands:
                assert is_answer(connection)
    town.cluster.create_topic("after-commands", 3, 3)
    assert {town.cluster.leader("after-commands", number) for number in range(3)} == {1, 2, 3}
    town.check()


def test_invalid_batches(town: Town) -> None:
    """Wrong checksum, length, count, offsets, codec, or expanded size."""
    rng = Random(SEED + 3)

    def produced(records: bytes, acks: int) -> bytes:
        data = PartitionProduceData(index=0, records=records)
        topic = TopicProduceData(name=TOPIC, partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])
        return wire(request, BATCH_VERSION)

    asked = ListOffsetsPartition(partition_index=0, timestamp=1)
    by_time = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])]
    )
    lies = (*bombs(), *batches(rng))
    with town.memory_within(200 * MIB):
        for broker in (1, 2, 3):
            for lie in lies:  # Its only answer is that the connection closes.
                with town.connect(broker) as connection:
                    connection.sendall(produced(lie, 0))
            connection = town.connect(broker)
            for stream in (produced(lie, acks) for lie in lies for acks in (-1, 1)):
                connection.sendall(stream)
            assert is_answered(connection), "bad batches cost no connection"
            # A look-up by timestamp opens the accepted batches.
            connection.sendall(wire(by_time, 4))
            connection.close()
        town.check()
