"""Clusters that scenarios share: a start takes longer than most scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cluster import Cluster
from holdfast.cluster.pytest_plugin import CLUSTER
from tests.real.disks import assert_agreed
from tests.real.load import Load
from tests.real.scenarios import EMBEDDED, NEAREST, ZOOKEEPER, Play
from tests.real.stage import FETCH_WAIT_MS, LAG_MS, Stage, repair
from tests.support.zookeeper import ZooKeeperServer, why_missing

SESSION_MS = 6000
CONFIG = {
    "broker.session.timeout.ms": str(SESSION_MS),
    # ZooKeeper knows of a dead process only when its session has run out.
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": str(LAG_MS),
    "replica.fetch.wait.max.ms": str(FETCH_WAIT_MS),
    # One batch a fetch: with a slow link a follower can be made to copy step by step.
    "replica.fetch.max.bytes": "1",
    "auto.leader.rebalance.enable": "false",
}
SELECTOR = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
OWN_SETTINGS = (
    "broker.session.timeout.ms",
    "zookeeper.session.timeout.ms",
    "replica.lag.time.max.ms",
    "auto.leader.rebalance.enable",
)
BROKERS = 4
"""Three replicas, and a controller that scenarios do not break by accident."""


class Clusters:
    """One cluster per store and set of settings, started at its first use."""

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
        """Discard a cluster that could not be repaired."""
        self._clusters.pop((store, flavour)).close(clean=False)

    def close(self) -> None:
        for cluster in self._clusters.values():
            cluster.close(clean=False)
            assert not any(map(cluster.is_running, cluster.brokers)), "a process is left"


class Store:
    """The coordination store of a separate cluster: the test can disconnect and reconnect it."""

    def __init__(self, cluster: Cluster, server: ZooKeeperServer | None) -> None:
        self._cluster = cluster
        self._server = server

    def take_away(self) -> None:
        """Embedded: no broker reaches the file. ZooKeeper: its only server dies."""
        if self._server is not None:
            self._server.kill()
            return
        for broker in self._cluster.running():
            self._cluster.ask(broker, "store", do="cut")

    def give_back(self) -> None:
        if self._server is not None:
            self._server.start()
            return
        for broker in self._cluster.running():
            self._cluster.ask(broker, "store", do="heal")


STORES = [
    pytest.param(EMBEDDED, marks=pytest.mark.slow),
    pytest.param(ZOOKEEPER, marks=[pytest.mark.slow, pytest.mark.long]),
]


@pytest.fixture(params=STORES)
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ZooKeeperServer | None]:
    """A ZooKeeper for one test; None with the embedded store."""
    if request.param == EMBEDDED:
        yield None
        return
    if reason := why_missing():
        pytest.skip(reason)
    server = ZooKeeperServer(tmp_path / "zookeeper")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own(request: pytest.FixtureRequest, own_server: ZooKeeperServer | None) -> Iterator[Cluster]:
    """Three brokers for one test; afterwards checks that logs are equal and nothing is lost."""
    store = None if own_server is None else f"zookeeper:{own_server.connect_string}/own"
    config = {name: CONFIG[name] for name in OWN_SETTINGS}
    cluster = Cluster(brokers=3, config=config, store=store, trace=True)
    request.node.stash[CLUSTER] = cluster
    try:
        cluster.start()
        yield cluster
        died = cluster.died()
        repair(cluster)
        assert_agreed(cluster)
        cluster.assert_no_acked_loss()
    finally:
        cluster.close(clean=False)
    assert not any(map(cluster.is_running, cluster.brokers)), "a process is left"
    assert not died, f"brokers exited unexpectedly: {died}"


@pytest.fixture
def store(own: Cluster, own_server: ZooKeeperServer | None) -> Store:
    """The coordination store of the test's own cluster."""
    return Store(own, own_server)


@pytest.fixture
def load(own: Cluster) -> Iterator[Load]:
    """A producer that writes continuously, with acks=all and retries."""
    running = Load(own)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def clusters(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    """Shared by all scenarios of this run."""
    found = Clusters(request)
    yield found
    found.close()


@pytest.fixture
def stage(request: pytest.FixtureRequest, clusters: Clusters) -> Iterator[Stage]:
    """A cluster for the scenario of the test's mark, repaired afterwards."""
    play: Play = request.param
    cluster = clusters.get(play.store, play.flavour)
    request.node.stash[CLUSTER] = cluster
    stage = Stage(cluster, play.scenario, play.variant)
    try:
        stage.cast()
        yield stage
        died = cluster.died()
        repair(cluster)
        stage.close()
    except BaseException:
        clusters.discard(play.store, play.flavour)
        raise
    assert not died, f"brokers exited unexpectedly: {died}"
