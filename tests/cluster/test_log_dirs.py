"""Brokers with two log directories each: one that fails takes its own partitions offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cluster import Cluster
from holdfast.cluster.waiting import wait_for
from holdfast.model import ErrorCode
from holdfast.protocol.messages.cluster import DescribeLogDirsRequest, DescribeLogDirsResponse
from holdfast.storage.power_loss.unflushed_bytes import unflushed_of

pytestmark = [pytest.mark.slow, pytest.mark.holdfast(log_dirs=2)]

PARTITIONS = range(4)


@pytest.fixture
def cluster(holdfast_cluster: Cluster) -> Cluster:
    """With a topic of four partitions, two in each directory of each broker, and some records."""
    holdfast_cluster.create_topic("t", len(PARTITIONS))
    for partition in PARTITIONS:
        holdfast_cluster.wait_isr("t", partition)
    produce(holdfast_cluster, "first")
    return holdfast_cluster


def produce(cluster: Cluster, value: str) -> None:
    for partition in PARTITIONS:
        cluster.produce("t", [value], partition=partition)


def kept_in(folder: Path, topic: str = "t") -> list[int]:
    return sorted(int(one.name.rpartition("-")[2]) for one in folder.glob(f"{topic}-[0-9]*"))


def offline_on(cluster: Cluster, broker: int) -> list[int]:
    partitions = cluster.status(broker)["partitions"]
    return [
        one
        for one in PARTITIONS
        if partitions.get(f"t-{one}", {"role": "offline"})["role"] == "offline"
    ]


def wait_offline(cluster: Cluster, broker: int, partitions: list[int]) -> None:
    wait_for(
        lambda: offline_on(cluster, broker) == partitions or None,
        120,
        lambda: f"offline are {offline_on(cluster, broker)}, not {partitions}",
    )


def described(cluster: Cluster, broker: int) -> dict[str, tuple[int, list[int]]]:
    """The error of each directory and its partitions of t, as DescribeLogDirs returns them."""
    with cluster.client() as client:
        answer = client.ask(broker, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return {
        one.log_dir: (
            one.error_code,
            sorted(
                found.partition_index
                for topic in one.topics
                if topic.name == "t"
                for found in topic.partitions
            ),
        )
        for one in answer.results
    }


def test_a_directory_that_fails_takes_its_own_partitions_offline(cluster: Cluster) -> None:
    victim = cluster.leader("t", 0)
    good, bad = cluster.files(victim).logs
    if 0 in kept_in(good):
        good, bad = bad, good
    assert len(kept_in(good)) == len(kept_in(bad)) == 2
    assert described(cluster, victim) == {
        str(good): (ErrorCode.NONE, kept_in(good)),
        str(bad): (ErrorCode.NONE, kept_in(bad)),
    }
    led = [one for one in kept_in(good) if cluster.leader("t", one) == victim]

    cluster.io_error(victim, directory=str(bad))
    wait_offline(cluster, victim, kept_in(bad))
    for partition in kept_in(bad):
        assert cluster.wait_leader("t", partition, not_broker=victim) != victim
    produce(cluster, "while it is away")
    assert [one for one in kept_in(good) if cluster.leader("t", one) == victim] == led
    assert described(cluster, victim)[str(bad)] == (ErrorCode.KAFKA_STORAGE_ERROR, [])

    cluster.create_topic("new", 2)
    for partition in range(2):
        cluster.wait_isr("new", partition)
    assert kept_in(good, "new") == [0, 1]

    cluster.restart(victim)
    for partition in PARTITIONS:
        cluster.wait_isr("t", partition)
    cluster.assert_no_acked_loss()


def test_a_directory_that_is_bad_at_the_start_is_left_alone(cluster: Cluster) -> None:
    """Its partitions must not begin empty in another one: they could be elected."""
    victim = cluster.brokers[0]
    good, bad = cluster.files(victim).logs
    lost = kept_in(bad)
    cluster.stop(victim)
    away = bad.with_name("away")
    bad.rename(away)
    bad.write_text("a disk that is not there")
    cluster.restart(victim)
    wait_offline(cluster, victim, lost)
    produce(cluster, "while it is away")
    assert kept_in(good) == [one for one in PARTITIONS if one not in lost]
    assert described(cluster, victim)[str(bad)] == (ErrorCode.KAFKA_STORAGE_ERROR, [])
    cluster.stop(victim)
    bad.unlink()
    away.rename(bad)
    cluster.restart(victim)
    for partition in PARTITIONS:
        cluster.wait_isr("t", partition)
    assert offline_on(cluster, victim) == []
    cluster.assert_no_acked_loss()


def test_a_power_failure_takes_what_was_not_flushed_from_every_directory(cluster: Cluster) -> None:
    victim = cluster.brokers[0]
    cluster.flush()
    produce(cluster, "not flushed")
    [truncated] = cluster.power_loss(victim).values()
    for log in cluster.files(victim).logs:
        assert unflushed_of(log).is_dir()
        for partition in kept_in(log):
            before, after = truncated[f"{log.name}/t-{partition}/00000000000000000000.log"]
            assert before > after > 0
    cluster.restart(victim)
    for partition in PARTITIONS:
        cluster.wait_isr("t", partition)
    cluster.assert_no_acked_loss()


def test_a_broker_without_a_directory_ends(tmp_path: Path) -> None:
    with Cluster(tmp_path / "c", brokers=1, log_dirs=2) as cluster:
        cluster.io_error(1)
        wait_for(lambda: not cluster.is_running(1) or None, 120, lambda: "it still runs")
        assert cluster.died()[1].startswith("exit code 1: ")
        output = cluster.files(1).output.read_text(encoding="utf-8")
        assert output.splitlines()[-1].startswith("holdfast: cannot use ")
        cluster.restart(1)
