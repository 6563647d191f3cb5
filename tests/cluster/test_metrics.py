"""The metrics of real brokers: what they show when records flow and when brokers fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from holdfast.cluster import Cluster
from holdfast.cluster.settings_for_tests import TEST_CONFIG
from tests.support.metrics import Scraped, text_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

TRAFFIC: Final = "kafka_server_brokertopicmetrics_"
MANAGER: Final = "kafka_server_replicamanager_"
REQUESTS: Final = "kafka_network_requestmetrics_"
CONTROLLER: Final = "kafka_controller_kafkacontroller_"
GROUPS: Final = "kafka_coordinator_group_groupmetadatamanager_"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {**TEST_CONFIG, "min.insync.replicas": "2"}
    with Cluster(brokers=3, metrics=True, config=config) as cluster:
        yield cluster


def scrape(cluster: Cluster, broker: int) -> Scraped:
    return Scraped(f"127.0.0.1:{cluster.entry(broker).metrics_port}")


def at(topic: str, partition: int = 0) -> dict[str, str]:
    return {"topic": topic, "partition": str(partition)}


def test_produced_records_are_counted_where_they_go(cluster: Cluster) -> None:
    """Ten records: counted at the leader, copied by the followers, read by a consumer."""
    cluster.create_topic("counted")
    leader = cluster.leader("counted", 0)
    follower = next(one for one in cluster.brokers if one != leader)
    before = scrape(cluster, leader).value(f"{TRAFFIC}messagesin_total")
    cluster.produce("counted", [f"value {number}" for number in range(10)])
    cluster.consume("counted")
    led = scrape(cluster, leader)
    sent = led.value(f"{TRAFFIC}bytesin_total", topic="counted")
    assert led.value(f"{TRAFFIC}messagesin_total", topic="counted") == 10
    assert led.value(f"{TRAFFIC}messagesin_total") == before + 10
    assert led.value(f"{TRAFFIC}bytesout_total", topic="counted") >= sent > 0
    assert led.value(f"{TRAFFIC}totalproducerequests_total", topic="counted") > 0
    assert led.value(f"{TRAFFIC}failedproducerequests_total", topic="counted") == 0
    wait_until(
        lambda: (
            scrape(cluster, leader).value(f"{TRAFFIC}replicationbytesout_total", topic="counted")
            == 2 * sent
        ),
        "both followers have the records",
    )
    followed = scrape(cluster, follower)
    assert followed.value(f"{TRAFFIC}replicationbytesin_total", topic="counted") == sent
    assert followed.value(f"{TRAFFIC}messagesin_total", topic="counted") == 0
    assert led.value("kafka_log_log_logendoffset", **at("counted")) == 10
    assert led.value("kafka_log_log_size", **at("counted")) == sent
    assert led.value("holdfast_replica_unflushed_bytes", **at("counted")) == sent
    assert led.value("holdfast_replica_is_leader", **at("counted")) == 1
    assert followed.value("holdfast_replica_is_leader", **at("counted")) == 0
    assert followed.value("holdfast_replica_is_in_sync", **at("counted")) == 1


def test_a_flush_leaves_nothing_unflushed(cluster: Cluster) -> None:
    cluster.create_topic("flushed", config={"flush.messages": "1"})
    cluster.produce("flushed", ["safe"])
    page = scrape(cluster, cluster.leader("flushed", 0))
    assert page.value("holdfast_replica_unflushed_bytes", **at("flushed")) == 0
    assert page.value("holdfast_flush_seconds_count") > 0
    times = "kafka_log_logflushstats_logflushrateandtimems"
    assert page.value(f"{times}_sum") > 0


def test_requests_are_counted_with_their_times_and_sizes(cluster: Cluster) -> None:
    """The fetches of followers apart from those of consumers."""
    cluster.create_topic("requested")
    cluster.produce("requested", ["one"])
    cluster.consume("requested")
    page = scrape(cluster, cluster.leader("requested", 0))
    for request in ("Produce", "FetchConsumer", "FetchFollower", "Metadata"):
        versions = [
            labels
            for labels in page.labels(f"{REQUESTS}requests_total")
            if labels["request"] == request
        ]
        counted = sum(page.value(f"{REQUESTS}requests_total", **labels) for labels in versions)
        assert counted > 0, request
        assert page.value("holdfast_request_seconds_count", request=request) == counted
        assert page.value(f"{REQUESTS}totaltimems_count", request=request) == counted
        assert page.value(f"{REQUESTS}requestbytes_sum", request=request) > 0
        assert page.value("holdfast_response_bytes_sum", request=request) > 0
    # A follower's fetch waits for records, its handler does not.
    total = page.value(f"{REQUESTS}totaltimems_sum", request="FetchFollower")
    assert total > page.value(f"{REQUESTS}localtimems_sum", request="FetchFollower") > 0


def test_one_broker_is_the_controller(cluster: Cluster) -> None:
    pages = [scrape(cluster, broker) for broker in cluster.brokers]
    active = [page.value(f"{CONTROLLER}activecontrollercount") for page in pages]
    assert sorted(active) == [0, 0, 1]
    page = pages[active.index(1)]
    assert page.value(f"{CONTROLLER}activebrokercount") == 3
    assert page.value("holdfast_store_session", state="connected") == 1
    assert page.value("holdfast_controller_elections_total", rule="created") > 0


def test_a_killed_follower_is_seen_at_the_leader(cluster: Cluster) -> None:
    """Under-replicated, at the minimum, out of the ISR, and further behind with each record."""
    cluster.create_topic("lagging")
    cluster.produce("lagging", ["before"])
    leader = cluster.leader("lagging", 0)
    follower = next(one for one in cluster.brokers if one != leader)
    whole = scrape(cluster, leader)
    assert whole.value("kafka_cluster_partition_underreplicated", **at("lagging")) == 0
    cluster.kill(follower)
    wait_until(
        lambda: (
            scrape(cluster, leader).value(
                "holdfast_follower_is_in_sync", **at("lagging"), follower=str(follower)
            )
            == 0
        ),
        "the follower has left the ISR",
    )
    cluster.produce("lagging", ["while it is away"] * 5)
    page = scrape(cluster, leader)
    assert page.value(f"{MANAGER}underreplicatedpartitions") > 0
    assert page.value(f"{MANAGER}atminisrpartitioncount") > 0
    assert page.value(f"{MANAGER}underminisrpartitioncount") == 0
    assert page.value("kafka_cluster_partition_insyncreplicascount", **at("lagging")) == 2
    behind = page.value("holdfast_follower_lag", **at("lagging"), follower=str(follower))
    assert behind == 5
    cluster.restart(follower)
    cluster.wait_isr("lagging", 0, size=3)
    back = scrape(cluster, leader)
    assert back.value("holdfast_follower_lag", **at("lagging"), follower=str(follower)) == 0
    assert back.value("kafka_cluster_partition_underreplicated", **at("lagging")) == 0


def test_a_lagging_follower_shows_its_lag_itself(cluster: Cluster) -> None:
    """Its leader is gone: what it has not copied stays in consumerlag."""
    name = "kafka_server_fetcherlagmetrics_consumerlag"
    cluster.create_topic("copied")
    cluster.produce("copied", ["one", "two"])
    leader = cluster.leader("copied", 0)
    follower = next(one for one in cluster.brokers if one != leader)
    labels = {"clientId": f"ReplicaFetcherThread-0-{leader}", **at("copied")}
    wait_until(
        lambda: scrape(cluster, follower).value(name, **labels) == 0, "the follower has caught up"
    )
    assert labels not in scrape(cluster, leader).labels(name)


def test_the_labels_are_bounded_by_what_the_cluster_has(cluster: Cluster) -> None:
    """Any client may choose its id, and names of topics that do not exist."""
    leader = cluster.brokers[0]
    for number in range(3):
        producer = cluster.producer({"client.id": f"stranger-{number}"})
        producer.produce("counted", b"value")
        producer.flush()
    text = text_of(f"127.0.0.1:{cluster.entry(leader).metrics_port}")
    assert "stranger" not in text
