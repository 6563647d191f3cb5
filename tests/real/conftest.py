"""Clusters that stories share: starting one costs more than most stories do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.cluster import Cluster
from holdfast.cluster.pytest_plugin import CLUSTER
from tests.real.stage import FETCH_WAIT_MS, LAG_MS, Stage, mend
from tests.real.stories import EMBEDDED, NEAREST, Play

CONFIG = {
    "broker.session.timeout.ms": "3000",
    # ZooKeeper knows of a dead process only when its session has run out.
    "zookeeper.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": str(LAG_MS),
    "replica.fetch.wait.max.ms": str(FETCH_WAIT_MS),
    # One batch a fetch: with a slow link a follower can be made to copy step by step.
    "replica.fetch.max.bytes": "1",
    "auto.leader.rebalance.enable": "false",
}
SELECTOR = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
BROKERS = 4
"""Three replicas, and a controller that stories do not break by accident."""


class Clusters:
    """One cluster a store and set of settings, started when it is first wanted."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._clusters: dict[tuple[str, str], Cluster] = {}

    def get(self, store: str, flavour: str) -> Cluster:
        found = self._clusters.get((store, flavour))
        if found is None:
            found = self._start(store, flavour)
            self._clusters[store, flavour] = found
        return found

    def _start(self, store: str, flavour: str) -> Cluster:
        where = store
        if store != EMBEDDED:
            server = self._request.getfixturevalue("zookeeper")
            where = f"zookeeper:{server.connect_string}/real-{flavour}"
        config = CONFIG | (SELECTOR if flavour == NEAREST else {})
        cluster = Cluster(brokers=BROKERS, config=config, store=where, trace=True)
        cluster.start()
        return cluster

    def discard(self, store: str, flavour: str) -> None:
        """A cluster that could not be mended is of no use to the next story."""
        self._clusters.pop((store, flavour)).close(clean=False)

    def close(self) -> None:
        for cluster in self._clusters.values():
            cluster.close(clean=False)


@pytest.fixture(scope="session")
def clusters(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    """Shared by all stories of this run."""
    found = Clusters(request)
    yield found
    found.close()


@pytest.fixture
def stage(request: pytest.FixtureRequest, clusters: Clusters) -> Iterator[Stage]:
    """A cluster for the story that the test is marked with, mended afterwards."""
    play: Play = request.param
    cluster = clusters.get(play.store, play.flavour)
    request.node.stash[CLUSTER] = cluster
    stage = Stage(cluster, play.story, play.variant)
    try:
        stage.cast()
        yield stage
        died = cluster.died()
        mend(cluster)
        stage.close()
    except BaseException:
        clusters.discard(play.store, play.flavour)
        raise
    assert not died, f"brokers died by themselves: {died}"
