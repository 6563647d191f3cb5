"""The same cluster with ZooKeeper as its coordination store."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cluster import Cluster
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow


@pytest.fixture
def holdfast_options(zookeeper: ZooKeeperServer) -> dict[str, Any]:
    return {"store": f"zookeeper:{zookeeper.connect_string}"}


@pytest.mark.parametrize("fault", ["kill", "isolate"])
def test_a_leader_is_replaced_and_comes_back(holdfast_cluster: Cluster, fault: str) -> None:
    cluster = holdfast_cluster
    cluster.create_topic("t")
    cluster.wait_isr("t")
    cluster.produce("t", ["before"])
    leader = cluster.leader("t")
    getattr(cluster, fault)(leader)
    cluster.wait_leader("t", not_broker=leader)
    cluster.produce("t", ["meanwhile"])
    if fault == "kill":
        cluster.restart(leader)
    else:
        cluster.heal()
    cluster.wait_isr("t")
    cluster.assert_no_acked_loss()
