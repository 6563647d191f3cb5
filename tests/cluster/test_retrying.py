"""The small client while the cluster changes: it refreshes and asks again until a deadline."""

from __future__ import annotations

import socket
import threading

import pytest

from holdfast.cluster import Client, Cluster, ClusterError, ClusterTimeoutError, KafkaError
from holdfast.cluster.client.client import Address, Connection, UnansweredError, UnreachableError
from holdfast.cluster.client.retries import MOVED, retried
from holdfast.model import ErrorCode
from holdfast.protocol.messages.topics import CreateTopicsRequest
from tests.support.waiting import wait_until


def answering(failures: list[Exception]) -> str:
    if failures:
        raise failures.pop(0)
    return "answer"


@pytest.mark.parametrize(
    "failure",
    [
        UnreachableError("connection refused"),
        UnansweredError("hung up"),
        KafkaError("t-0", ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_what_the_next_attempt_may_mend_is_retried(failure: Exception) -> None:
    left = [failure]
    assert retried(lambda: answering(left), 60.0, codes=MOVED) == "answer"


@pytest.mark.parametrize(
    "failure",
    [
        UnansweredError("hung up"),  # it may have been appended
        KafkaError("t-0", ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
    ],
)
def test_what_may_have_been_appended_is_not_sent_again(failure: Exception) -> None:
    left = [failure]
    with pytest.raises(type(failure)):
        retried(lambda: answering(left), 60.0, codes=MOVED, repeatable=False)


def test_the_last_failure_is_named_at_the_deadline() -> None:
    def refused() -> str:
        raise UnreachableError("there is no live broker 1")

    with pytest.raises(ClusterTimeoutError, match="there is no live broker 1"):
        retried(refused, 0.0)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\4abcd", b""])
def test_what_is_no_broker_is_reported_quickly(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with (
            Client([listener.getsockname()]) as client,
            pytest.raises(
                UnreachableError, match=r"is gone|does not answer as a Kafka broker"
            ) as caught,
        ):
            client.metadata([])
        thread.join()
    assert not isinstance(caught.value, UnansweredError), "a question carries out nothing"


def test_a_broker_that_dies_before_it_is_asked_has_carried_out_nothing() -> None:
    """Else a topic that was there before would count as created by the lost request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(Address(*listener.getsockname()), 60.0)
        listener.accept()[0].close()
        with pytest.raises(UnreachableError) as caught:
            connection.version_of(CreateTopicsRequest)
    assert type(caught.value) is UnreachableError


@pytest.mark.slow
@pytest.mark.holdfast(brokers=3, config={"min.insync.replicas": "1"})
def test_a_dead_leader_in_the_metadata_is_waited_out(holdfast_cluster: Cluster) -> None:
    """The controller is paused: until its session ends every broker names the dead leader."""
    cluster = holdfast_cluster
    controller = cluster.controller()
    leader, third = (one for one in cluster.brokers if one != controller)
    cluster.create_topic("t", assignment={0: [leader, third, controller]})
    cluster.produce("t", ["one", "two"])
    cluster.pause(controller)
    cluster.kill(leader)
    assert cluster.leader("t") == leader  # by the metadata of the only broker left
    cluster.assert_no_acked_loss()
    assert cluster.consume("t") == [b"one", b"two"]
    assert cluster.wait_leader("t") == third


@pytest.mark.slow
@pytest.mark.holdfast(brokers=3)
def test_topics_are_made_and_removed_while_the_controller_moves(holdfast_cluster: Cluster) -> None:
    cluster = holdfast_cluster
    cluster.pause(cluster.controller())
    left = cluster.reachable()
    cluster.create_topic("t", assignment={0: left})
    cluster.produce("t", ["one"])
    cluster.delete_topic("t")


@pytest.mark.slow
@pytest.mark.holdfast(brokers=1)
def test_a_cluster_without_any_broker_says_so_and_does_not_wait(holdfast_cluster: Cluster) -> None:
    holdfast_cluster.create_topic("t")
    holdfast_cluster.kill(1)
    with pytest.raises(ClusterError, match="no broker can be reached: 1 is killed"):
        holdfast_cluster.produce("t", ["one"])


def test_a_connection_that_the_broker_closed_while_idle_is_replaced() -> None:
    """A request on the old one would get no answer, and might have been carried out."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        Client([listener.getsockname()]) as client,
    ):
        address = Address(*listener.getsockname())
        first = client.connection(address)
        theirs, _ = listener.accept()
        assert client.connection(address) is first
        theirs.close()
        wait_until(lambda: not first.is_open, "the client sees the end")
        assert client.connection(address) is not first
