"""The metrics of real brokers: what they show when records flow and when brokers fail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.broker.metrics.page import METRICS
from holdfast.cluster import Cluster
from holdfast.cluster.settings_for_tests import TEST_CONFIG
from tests.support.metrics import Scraped, text_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).resolve().parents[2]
MANUAL: Final = ROOT / "docs" / "metrics.md"
DASHBOARD: Final = ROOT / "dashboards" / "holdfast.json"
TRAFFIC: Final = "kafka_server_brokertopicmetrics_"
MANAGER: Final = "kafka_server_replicamanager_"
REQUESTS: Final = "kafka_network_requestmetrics_"
CONTROLLER: Final = "kafka_controller_kafkacontroller_"
GROUPS: Final = "kafka_coordinator_group_groupmetadatamanager_"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    one_batch = {"replica.fetch.max.bytes": "1", "replica.fetch.response.max.bytes": "1"}
    config = {**TEST_CONFIG, **one_batch, "min.insync.replicas": "2"}
    with Cluster(brokers=3, metrics=True, config=config) as cluster:
        # Traffic has samples only once there is a topic with records.
        cluster.create_topic("first")
        cluster.produce("first", ["one"])
        yield cluster


def address(cluster: Cluster, broker: int) -> str:
    return f"127.0.0.1:{cluster.entry(broker).metrics_port}"


def scrape(cluster: Cluster, broker: int) -> Scraped:
    return Scraped(address(cluster, broker))


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
        assert page.value(f"{REQUESTS}totaltimems_sum", request=request) > 0


def test_one_broker_is_the_controller(cluster: Cluster) -> None:
    cluster.create_topic("elected")
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


def test_a_follower_that_cannot_fetch_leaves_the_isr_and_returns(cluster: Cluster) -> None:
    shrinks, expands = f"{MANAGER}isrshrinks_total", f"{MANAGER}isrexpands_total"
    cluster.create_topic("separated")
    leader, controller = cluster.leader("separated", 0), cluster.controller()
    # The leader must receive the controller's answer to its proposal.
    follower = next(one for one in cluster.brokers if one not in (leader, controller))
    before = scrape(cluster, leader)
    cluster.cut(follower, to=[leader])
    cluster.produce("separated", ["one"], acks=1)
    cluster.wait_isr("separated", 0, size=2)
    wait_until(
        lambda: scrape(cluster, leader).value(shrinks) > before.value(shrinks), "it is counted"
    )
    cluster.heal()
    cluster.wait_isr("separated", 0)
    wait_until(
        lambda: scrape(cluster, leader).value(expands) > before.value(expands), "it is counted"
    )


def test_a_follower_that_catches_up_shows_its_lag_itself(cluster: Cluster) -> None:
    """It was away for many batches, gets one with each fetch, and its link is slow."""
    name, batches = "kafka_server_fetcherlagmetrics_consumerlag", 30
    cluster.create_topic("copied")
    leader = cluster.leader("copied", 0)
    follower = next(one for one in cluster.brokers if one != leader)
    labels = {"clientId": f"ReplicaFetcherThread-0-{leader}", **at("copied")}
    cluster.stop(follower)
    for number in range(batches):
        cluster.produce("copied", [f"batch {number}"])
    cluster.delay(leader, 0.1, to=[follower])
    cluster.restart(follower, wait=False)

    def lag() -> float:
        try:
            page = scrape(cluster, follower)
        except OSError:
            return -1  # It starts.
        return page.value(name, **labels) if labels in page.labels(name) else -1

    wait_until(lambda: 0 < lag() < batches, "it shows how far it is behind")
    cluster.heal()
    cluster.wait_isr("copied", 0)
    wait_until(lambda: lag() == 0, "it has caught up")
    assert labels not in scrape(cluster, leader).labels(name)


def test_the_labels_are_bounded_by_what_the_cluster_has(cluster: Cluster) -> None:
    """Any client may choose its id, and names of topics that do not exist."""
    leader = cluster.brokers[0]
    for number in range(3):
        producer = cluster.producer({"client.id": f"stranger-{number}"})
        producer.produce("first", b"value")
        producer.flush()
    assert "stranger" not in text_of(address(cluster, leader))


def test_the_page_of_the_manual_lists_every_metric(cluster: Cluster) -> None:
    """docs/metrics.md: name, type, labels and meaning, as a broker exports them."""
    text = text_of(address(cluster, cluster.brokers[0]))
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    kinds = dict(re.findall(r"^# TYPE (\S+) (.*)$", text, re.MULTILINE))
    labels = {metric.name: metric.labels for metric in METRICS}
    exported = {
        name: (kinds[name], ", ".join(labels.get(name, ())), meaning)
        for name, meaning in helps.items()
    }
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| (.*) \|$", MANUAL.read_text("utf-8"), re.MULTILINE
    )
    assert {name: tuple(map(str.strip, cells)) for name, *cells in rows} == exported


def test_every_metric_has_the_labels_that_it_declares(cluster: Cluster) -> None:
    """So that the manual and the dashboard may rely on them."""
    declared = {metric.name.removesuffix("_total"): metric.labels for metric in METRICS}
    for broker in cluster.brokers:
        for family in scrape(cluster, broker).families:
            wanted = declared.get(family.name, ())
            for sample in family.samples:
                found = [name for name in sample.labels if name != "le"]
                assert sorted(found) in (sorted(wanted), []), sample


def test_the_dashboard_shows_only_what_exists(cluster: Cluster) -> None:
    """Each query names metrics that a broker exports, and labels that these have."""
    cluster.create_topic("drawn")  # A new controller has no elections to show.
    known: dict[str, set[str]] = {}
    for broker in cluster.brokers:
        for family in scrape(cluster, broker).families:
            for sample in family.samples:
                known.setdefault(sample.name, {"instance", "job"}).update(sample.labels)
    expressions = list(_expressions(json.loads(DASHBOARD.read_text("utf-8"))))
    assert len(expressions) > 50
    for expression in expressions:
        bare = re.sub(r'"[^"]*"', '""', expression)
        named = re.findall(r"\b(?:kafka|holdfast|process)_\w+", bare)
        assert named, expression
        assert not set(named) - known.keys(), expression
        groups = re.findall(r"\b(?:by|on) \(([^)]*)\)", bare)
        used = {label.strip() for group in groups for label in group.split(",")}
        used.update(re.findall(r"(\w+)\s*(?:=~|!=|=|!~)\s*\"", bare))
        labels = set.union(*(known[name] for name in named))
        assert used <= labels, expression
        assert bare.count("(") == bare.count(")"), expression


def _expressions(node: Any) -> Iterator[str]:
    """All queries, also those of the variables, without the function around them."""
    if isinstance(node, list):
        for one in node:
            yield from _expressions(one)
    elif isinstance(node, dict):
        yield from (node[key] for key in ("expr",) if key in node)
        if str(node.get("query", "")).startswith("label_values("):
            yield re.sub(r"label_values\((\w+), (\w+)\)", r"count by (\2) (\1)", node["query"])
        for one in node.values():
            yield from _expressions(one)
