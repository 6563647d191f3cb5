"""What the audit reads from the coordination store of Holdfast's brokers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.broker.metadata.store_nodes import (
    TopicNode,
    UncleanElection,
    decode_unclean,
    encode_state,
    encode_topic,
)
from holdfast.coordination import Create, EmbeddedStore, Store, ZooKeeperStore, paths
from holdfast.model import BrokerId, ControllerEpoch, LeaderEpoch, PartitionState
from holdfast.pipeline.audit.controllers.coordination_store import EMBEDDED, find_store, read_store
from holdfast.pipeline.errors import PipelineError
from tests.support.ports import held_port
from tests.support.zookeeper import ZooKeeperServer

ONE, TWO = BrokerId(1), BrokerId(2)
TOPIC = TopicNode(b"i" * 16, {0: (ONE, TWO), 1: (TWO,)}, {}, {})
STATE = PartitionState(replicas=(ONE, TWO), isr=(TWO,), leader=TWO, leader_epoch=LeaderEpoch(3))
UNCLEAN = UncleanElection(LeaderEpoch(3), TWO, 1_700_000_000_000, (ONE,))
PATH = paths.partition_state("t", 0)


@pytest.fixture(params=["embedded", pytest.param("zookeeper", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "embedded":
        where = str(tmp_path / EMBEDDED)
        asyncio.run(fill(EmbeddedStore(tmp_path / EMBEDDED)))
    else:
        server: ZooKeeperServer = request.getfixturevalue("zookeeper")
        where = f"{server.connect_string}/audited"
        asyncio.run(fill(ZooKeeperStore(where)))
    return where


async def fill(store: Store) -> None:
    await store.open()
    await store.ensure_path(paths.TOPICS)
    await store.commit(
        Create(paths.topic("t"), encode_topic(TOPIC)),
        Create(paths.partitions("t")),
        Create(paths.partition("t", 0)),
        Create(PATH, encode_state(STATE, ControllerEpoch(1), [UNCLEAN])),
    )
    await store.close()


def test_the_states_and_their_unclean_elections_are_read(store: str) -> None:
    metadata = read_store(store, ["t", "other"])
    known = metadata.partition("t", 0)
    assert known is not None
    assert (known.topic_id, known.replicas, known.isr) == (b"i" * 16, (1, 2), (2,))
    [election] = known.elections
    assert (election.leader, election.leader_epoch, election.isr) == (2, 3, (1,))
    assert (election.is_unclean, election.time_ms) == (True, 1_700_000_000_000)
    assert election.evidence == f"{store}: {PATH}"
    assert metadata.partition("t", 1) is None, "it is being created"
    assert metadata.incarnation("other") is None
    assert not metadata.is_whole


def test_a_store_that_is_not_there_is_named() -> None:
    with held_port() as port, pytest.raises(PipelineError, match=f"127.0.0.1:{port} cannot"):
        read_store(f"127.0.0.1:{port}", ["t"])


def test_the_store_of_a_cluster_is_found_by_its_directories(tmp_path: Path) -> None:
    logs = [tmp_path / "brokers" / str(one) / "log" for one in (1, 2)]
    assert find_store(logs) is None
    (tmp_path / EMBEDDED).touch()
    assert find_store(logs) == str(tmp_path.resolve() / EMBEDDED)
    assert find_store([*logs, tmp_path]) is None, "of another cluster"


@pytest.mark.parametrize("value", ["3", "[3]", "[{}]", '[{"leader_epoch":"x"}]', "null"])
def test_what_cannot_be_read_of_the_past_is_no_reason_to_stop(value: str) -> None:
    assert decode_unclean("/x", f'{{"unclean_elections":{value}}}'.encode()) == ()
