"""Real brokers, broken in every way that there is a command for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cluster import Cluster, ClusterError, KafkaError
from holdfast.cluster.waiting import wait_for
from holdfast.lab import fold
from holdfast.model import ErrorCode, parse_trace

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(holdfast_cluster: Cluster) -> Cluster:
    """With a topic whose ISR is whole, and ten records in it."""
    holdfast_cluster.create_topic("t")
    holdfast_cluster.wait_isr("t")
    for number in range(10):
        holdfast_cluster.produce("t", [f"v{number}"])
    return holdfast_cluster


def other_than(cluster: Cluster, *brokers: int) -> int:
    return next(one for one in cluster.brokers if one not in brokers)


def test_a_replica_reports_its_numbers(cluster: Cluster) -> None:
    leader = cluster.leader("t")
    replica = cluster.replica("t", 0, leader)
    assert (replica.leo, replica.hw, replica.role, replica.in_isr, replica.log_start) == (
        10,
        10,
        "leader",
        True,
        0,
    )
    assert set(replica.isr) == set(cluster.brokers)
    assert cluster.consume("t") == [b"v%d" % number for number in range(10)]
    with pytest.raises(ClusterError, match="has no replica of nothing-0"):
        cluster.replica("nothing", 0, leader)


def test_a_killed_leader_is_replaced_and_comes_back(cluster: Cluster) -> None:
    leader = cluster.leader("t")
    cluster.kill(leader)
    assert not cluster.is_running(leader)
    assert cluster.wait_leader("t", not_broker=leader) != leader
    cluster.produce("t", ["after"])
    with pytest.raises(ClusterError, match="does not run"):
        cluster.kill(leader)
    cluster.restart(leader)
    cluster.wait_isr("t")
    cluster.assert_no_acked_loss()
    assert cluster.died() == {}


def test_a_stopped_leader_moves_its_leadership_first(cluster: Cluster) -> None:
    leader = cluster.leader("t")
    cluster.stop(leader)
    assert cluster.wait_leader("t", not_broker=leader) != leader
    cluster.restart(leader)
    cluster.wait_isr("t")
    cluster.assert_no_acked_loss()


def test_a_paused_leader_is_replaced_and_follows_when_it_goes_on(cluster: Cluster) -> None:
    leader = cluster.leader("t")
    cluster.pause(leader)
    assert leader not in cluster.running()
    new = cluster.wait_leader("t", not_broker=leader)
    cluster.produce("t", ["meanwhile"])
    cluster.resume(leader)
    cluster.wait_isr("t")
    assert cluster.leader("t") == new
    assert cluster.replica("t", 0, leader).role == "follower"
    cluster.assert_no_acked_loss()


def test_an_isolated_leader_is_replaced_and_nothing_reaches_it(cluster: Cluster) -> None:
    leader = cluster.leader("t")
    cluster.isolate(leader)
    status = cluster.status(leader)
    assert status["links"]["clients"]["cut"]
    new = cluster.wait_leader("t", not_broker=leader)
    cluster.produce("t", ["meanwhile"])
    assert cluster.replica("t", 0, leader).leo == 10
    assert cluster.replica("t", 0, new).leo == 11
    cluster.heal()
    cluster.wait_isr("t")
    cluster.assert_no_acked_loss()


def test_a_parted_follower_leaves_the_isr_and_rejoins(cluster: Cluster) -> None:
    # Not the controller: it would be parted from all who ask it for another ISR.
    leader = cluster.leader("t")
    follower = other_than(cluster, leader, cluster.controller())
    cluster.partition([follower])
    cluster.produce("t", ["meanwhile"])
    assert follower not in cluster.wait_isr("t", size=2)
    cluster.heal()
    cluster.wait_isr("t")
    cluster.assert_no_acked_loss()


@pytest.mark.holdfast(config={"replica.lag.time.max.ms": "8000"})
def test_a_send_waits_until_a_parted_follower_is_out(cluster: Cluster) -> None:
    """Longer than any broker should take for an answer that waits for nobody."""
    follower = other_than(cluster, cluster.leader("t"), cluster.controller())
    cluster.partition([follower])
    cluster.produce("t", ["meanwhile"])
    assert follower not in cluster.isr("t")


def test_slow_and_lossy_links_are_only_slow(cluster: Cluster) -> None:
    leader = cluster.leader("t")
    follower = other_than(cluster, leader)
    cluster.delay(follower, 0.2)
    cluster.produce("t", ["slow"])
    cluster.heal()
    cluster.drop(follower, 0.3)
    for number in range(5):
        cluster.produce("t", [f"lossy {number}"])
    cluster.heal()
    cluster.wait_isr("t")
    cluster.assert_no_acked_loss()


def test_an_expired_session_is_renewed(cluster: Cluster) -> None:
    leader = cluster.leader("t")
    epoch = cluster.status(leader)["epoch"]
    cluster.expire_session(leader)
    wait_for(
        lambda: cluster.status(leader)["epoch"] > epoch or None, 60, lambda: "no new registration"
    )
    cluster.wait_isr("t")
    cluster.produce("t", ["after"])
    cluster.assert_no_acked_loss()


@pytest.mark.parametrize("fault", ["disk_full", "io_error"])
def test_a_failing_disk_costs_its_own_partition_only(cluster: Cluster, fault: str) -> None:
    leader = cluster.leader("t")
    cluster.create_topic(
        "u", assignment={0: [leader, *(b for b in cluster.brokers if b != leader)]}
    )
    cluster.wait_isr("u")
    getattr(cluster, fault)(leader, "t-0")
    with pytest.raises(KafkaError):
        cluster.produce("t", ["refused"])
    assert cluster.wait_leader("t", not_broker=leader) != leader
    assert cluster.replica("t", 0, leader).role == "offline"
    cluster.produce("t", ["elsewhere"])
    assert cluster.leader("u") == leader
    cluster.produce("u", ["untouched"])
    cluster.restart(leader)
    cluster.wait_isr("t")
    cluster.assert_no_acked_loss()


def test_a_power_failure_takes_what_was_not_flushed(cluster: Cluster) -> None:
    cluster.flush()
    leader = cluster.leader("t")
    follower = other_than(cluster, leader)
    assert cluster.replica("t", 0, follower).flushed_offset == 10
    cluster.produce("t", ["not flushed"])
    log = cluster.files(follower).log / "t-0" / "00000000000000000000.log"
    size = log.stat().st_size
    [truncated] = cluster.power_loss(follower).values()
    before, after = truncated["t-0/00000000000000000000.log"]
    assert before == size
    assert log.stat().st_size == after < before
    cluster.restart(follower)
    cluster.wait_isr("t")
    cluster.assert_no_acked_loss()


@pytest.mark.holdfast(config={"unclean.leader.election.enable": "false"})
def test_when_all_lose_power_what_nobody_flushed_is_lost_and_the_ledger_says_so(
    cluster: Cluster,
) -> None:
    """loss-page-cache: min.insync.replicas copies are no help if none of them is on a disk."""
    cluster.flush()
    cluster.produce("t", ["only in page caches"])
    cluster.power_loss(*cluster.brokers)
    for broker in cluster.brokers:
        assert not cluster.is_running(broker)
    cluster.restart(*cluster.brokers)
    [finding] = cluster.acked_loss()
    assert (finding.kind, finding.acknowledgement.offset) == ("lost", 10)


@pytest.mark.holdfast(config={"log.flush.interval.messages": "1"})
def test_flushed_is_kept_when_all_lose_power(cluster: Cluster) -> None:
    cluster.power_loss(*cluster.brokers)
    cluster.restart(*cluster.brokers)
    cluster.assert_no_acked_loss()


def test_a_real_run_can_be_stepped_through(cluster: Cluster) -> None:
    leader = cluster.leader("t")
    cluster.kill(leader)
    new = cluster.wait_leader("t", not_broker=leader)
    cluster.produce("t", ["after"])
    cluster.wait_leader("t")
    path = cluster.timeline()
    assert path is not None
    events = list(parse_trace(path.read_text().splitlines()))
    kinds = {event.kind for event in events}
    assert {"registered", "became-leader", "became-follower", "appended", "crashed"} <= kinds
    frames = fold(events)
    views = {view.id: view for view in frames[-1].snapshot.replicas}
    assert not views[leader].alive
    assert views[new].role == "leader"


def test_a_timeline_has_everything_so_far(cluster: Cluster) -> None:
    for _ in range(10):
        offset = cluster.produce("t", ["one more"])
        path = cluster.timeline()
        assert path is not None
        events = parse_trace(path.read_text().splitlines())
        offsets = [event.numbers["offset"] for event in events if event.kind == "acknowledged"]
        assert offsets[-1] == offset


def test_a_refusal_has_kafka_s_own_code(holdfast_cluster: Cluster) -> None:
    with pytest.raises(KafkaError) as caught:
        holdfast_cluster.create_topic("t", 1, 4)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(KafkaError) as caught:
        holdfast_cluster.leader("nothing")
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_leader_is_elected_and_a_partition_moved_by_hand(holdfast_cluster: Cluster) -> None:
    cluster = holdfast_cluster
    cluster.create_topic("t", assignment={0: [1, 2]})
    cluster.wait_isr("t")
    cluster.kill(1)
    cluster.wait_leader("t", broker=2)
    cluster.restart(1)
    cluster.wait_isr("t")
    cluster.elect_leader("t")
    cluster.wait_leader("t", broker=1)
    cluster.reassign("t", 0, [3, 2])
    cluster.wait_isr("t", isr=[2, 3])


@pytest.mark.holdfast(brokers=1)
def test_one_broker_is_a_cluster_too(holdfast_cluster: Cluster, tmp_path: Path) -> None:
    holdfast_cluster.create_topic("t")
    holdfast_cluster.produce("t", ["one", "two"])
    assert holdfast_cluster.consume("t") == [b"one", b"two"]
    manifest = json.loads((holdfast_cluster.data_dir / "cluster.json").read_text())
    assert [entry["state"] for entry in manifest["brokers"]] == ["running"]


def test_a_confluent_producer_keeps_the_ledger(cluster: Cluster) -> None:
    pytest.importorskip("confluent_kafka")
    producer = cluster.producer({"message.timeout.ms": 30_000}, linger_ms=5)
    for number in range(100):
        producer.produce("t", b"r%d" % number, b"key")
    assert producer.flush() == 0
    assert len(cluster.ledger.acknowledgements) == 110
    cluster.kill(cluster.leader("t"))
    for number in range(100):
        producer.produce("t", b"s%d" % number)
    assert producer.flush() == 0
    cluster.assert_no_acked_loss()
