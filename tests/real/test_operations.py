"""Operations on a cluster under continuous load lose no acknowledged record."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from holdfast.cluster import Cluster, ClusterError
from holdfast.cluster.waiting import wait_for
from tests.real import wire
from tests.real.cast import WAIT_S
from tests.real.load import Load

TOPIC = "events"


def controller_of(cluster: Cluster) -> int | None:
    """None while there is none."""
    for broker in cluster.running():
        try:
            if cluster.status(broker)["is_controller"]:
                return broker
        except ClusterError:
            continue
    return None


def wait_controller(cluster: Cluster, not_broker: int | None = None) -> int:
    def look() -> int | None:
        found = controller_of(cluster)
        return found if found != not_broker else None

    return wait_for(look, WAIT_S, lambda: "there is no other controller")


def wait_whole(cluster: Cluster, partitions: int) -> None:
    for partition in range(partitions):
        cluster.wait_isr(TOPIC, partition)


def test_a_rolling_restart_under_load(own: Cluster, load: Load) -> None:
    own.create_topic(TOPIC, partitions=6)
    load.start(TOPIC)
    for broker in own.brokers:
        load.during(lambda broker=broker: own.restart(broker))  # type: ignore[misc]
        wait_whole(own, 6)
    load.stop()


def test_every_broker_is_killed_under_load(own: Cluster, load: Load) -> None:
    own.create_topic(TOPIC, partitions=3)
    load.start(TOPIC)
    for broker in own.brokers:
        load.during(lambda broker=broker: own.kill(broker))  # type: ignore[misc]
        own.restart(broker)
        wait_whole(own, 3)
    load.stop()


def test_the_controller_is_killed_in_the_middle_of_elections(own: Cluster, load: Load) -> None:
    own.create_topic(TOPIC, partitions=20)
    load.start(TOPIC)
    controller = wait_controller(own)
    leader = next(one for one in own.brokers if one != controller)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(own.kill, (leader, controller)))
    survivor = wait_controller(own, not_broker=controller)
    for partition in range(20):
        own.wait_leader(TOPIC, partition, broker=survivor)
    own.restart(leader)  # two are needed
    load.wait_more(20)
    own.restart(controller)
    wait_whole(own, 20)
    load.stop()


def test_the_session_of_a_live_leader_expires(own: Cluster, load: Load) -> None:
    own.create_topic(TOPIC, partitions=3)
    load.start(TOPIC)
    for broker in own.brokers:
        before = own.status(broker)["epoch"]
        load.during(lambda broker=broker: own.expire_session(broker))  # type: ignore[misc]
        wait_for(
            lambda broker=broker, before=before: (  # type: ignore[misc]
                True if own.status(broker)["epoch"] > before else None
            ),
            WAIT_S,
            lambda: "it does not register again",
        )
        wait_whole(own, 3)
    assert own.running() == own.brokers
    load.stop()


def test_a_reassignment_under_load_with_a_kill_in_the_middle(own: Cluster, load: Load) -> None:
    two = wait_controller(own)
    one, three = (broker for broker in own.brokers if broker != two)
    own.create_topic(TOPIC, assignment={0: [one, two]})
    load.start(TOPIC)
    own.pause(three)  # so that the move is under way for long enough
    own.reassign(TOPIC, 0, [three, two])
    load.wait_more(20)
    own.kill(one)
    own.resume(three)
    own.restart(one)

    def is_moved() -> bool | None:
        with own.client() as client:
            found = client.partition(TOPIC, 0)
        return True if set(found.replica_nodes) == {two, three} else None

    wait_for(is_moved, WAIT_S, lambda: "the move does not end")
    own.wait_isr(TOPIC, isr=[two, three])
    load.wait_more(20)
    load.stop()


def test_a_lowered_minimum_lets_writes_go_on(own: Cluster) -> None:
    own.create_topic(TOPIC, config={"min.insync.replicas": "3"})
    own.produce(TOPIC, ["before"])
    own.kill(own.brokers[0])
    leader = own.wait_leader(TOPIC, not_broker=own.brokers[0])
    own.wait_isr(TOPIC, size=2)

    def is_refused() -> bool | None:
        try:
            own.produce(TOPIC, ["too few"])
        except ClusterError as error:
            return True if "NOT_ENOUGH_REPLICAS" in error.message else None
        return None

    wait_for(is_refused, WAIT_S, lambda: "acknowledged by too few")
    with own.client() as client:
        wire.alter_topic(client, TOPIC, "min.insync.replicas", "2")

    def is_accepted() -> bool | None:
        try:
            own.produce(TOPIC, ["after"])
        except ClusterError:
            return None
        return True

    wait_for(is_accepted, WAIT_S, lambda: "still refused")
    assert own.leader(TOPIC) == leader
