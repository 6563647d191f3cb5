"""Calls over a socket: every field is checked before anything is done."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.cluster import Cluster
from holdfast.cluster.testserver.operations import OPERATIONS
from holdfast.cluster.testserver.server import Session, TestSession, answer


class Recording(Cluster):
    """A cluster that only records calls."""

    def __init__(self) -> None:
        super().__init__("/nowhere/at/all")
        self.done: list[object] = []

    def is_running(self, broker: int) -> bool:
        return broker != 3

    def kill(self, broker: int) -> None:
        self.done.append(("kill", broker))

    def partition(self, *groups: Any) -> None:
        self.done.append(("partition", groups))

    def delay(self, broker: int, seconds: float, to: Any = None) -> None:
        self.done.append(("delay", broker, seconds, to))

    def ask(self, broker: int, call: str, timeout_s: float = 0.0, **fields: Any) -> None:
        self.done.append((call, broker, fields))

    def produce(self, topic: str, values: Any, partition: int = 0, **more: Any) -> int:
        self.done.append(("produce", topic, values, partition, more))
        return 7


def ask(cluster: Cluster | None, request: object) -> dict[str, Any]:
    line = request if isinstance(request, bytes) else json.dumps(request).encode()
    return answer(Session(cluster), line)


def test_calls_are_carried_out() -> None:
    cluster = Recording()
    assert ask(cluster, {"call": "kill", "brokers": [1, 2]}) == {"answer": None}
    ask(cluster, {"call": "partition", "groups": [[1], [2, 3]]})
    ask(cluster, {"call": "delay", "brokers": [1], "seconds": 0.5, "to": [2, "clients"]})
    response = ask(cluster, {"call": "produce", "topic": "t", "values": ["aGk="], "acks": 1})
    assert response == {"answer": 7}
    assert cluster.done == [
        ("kill", 1),
        ("kill", 2),
        ("partition", ([1], [2, 3])),
        ("delay", 1, 0.5, [2, "clients"]),
        ("produce", "t", [b"hi"], 0, {"acks": 1}),
    ]


@pytest.mark.parametrize(
    ("call", "fault"),
    [("disk-full", "full"), ("io-error", "io-error"), ("slow-flush", "slow-flush")],
)
def test_a_disk_fault_may_be_of_one_partition_or_directory(call: str, fault: str) -> None:
    cluster = Recording()
    place = {"partition": "t-0", "directory": "/logs"}
    assert ask(cluster, {"call": call, "brokers": [1], **place}) == {"answer": None}
    assert cluster.done == [("disk", 1, {"do": fault, **place})]


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (b"{", "one line of JSON"),
        (b"3", "a JSON object"),
        ({}, "call is text"),
        ({"call": 3}, "call is text"),
        ({"call": "explode"}, "there is no call 'explode'"),
        ({"call": "kill"}, "brokers is a list of broker ids"),
        ({"call": "kill", "brokers": 1}, "brokers is a list of broker ids"),
        ({"call": "kill", "brokers": [True]}, "brokers is a list of broker ids"),
        ({"call": "kill", "brokers": [9]}, "there is no broker 9"),
        ({"call": "kill", "brokers": [2, 2]}, "broker 2 is named twice"),
        ({"call": "kill", "brokers": [1, 3]}, "broker 3 does not run"),
        ({"call": "power-loss", "brokers": [1, 3]}, "broker 3 does not run"),
        ({"call": "restart", "brokers": [1, 9]}, "there is no broker 9"),
        ({"call": "kill", "brokers": [1], "hard": True}, "kill has no field hard"),
        ({"call": "partition", "groups": []}, "a list of lists"),
        ({"call": "delay", "brokers": [1]}, "seconds is a number"),
        ({"call": "delay", "brokers": [1], "seconds": -1}, "seconds is a number"),
        ({"call": "delay", "brokers": [1], "seconds": 1, "to": ["x"]}, "to is a list"),
        ({"call": "produce", "topic": "t", "values": ["!"]}, "values are base64"),
        ({"call": "create-topic", "topic": 1}, "topic is text"),
        ({"call": "create-topic", "topic": "t", "config": {"a": 1}}, "an object of texts"),
    ],
)
def test_bad_requests_are_refused_and_nothing_is_done(request_: object, complaint: str) -> None:
    cluster = Recording()
    assert complaint in ask(cluster, request_)["error"]
    assert cluster.done == []


def test_without_a_cluster_there_is_nothing_to_ask() -> None:
    assert ask(None, {"call": "info"})["error"] == "there is no cluster"
    session = TestSession()
    response = answer(session, b'{"call":"info"}')
    assert response["error"] == "there is no cluster None here"
    assert "has no field colour" in answer(session, b'{"call":"start-cluster","colour":1}')["error"]


def test_every_call_is_in_the_manual() -> None:
    from tests.tidy.test_tidy import ROOT

    manual = (ROOT / "docs" / "testserver.md").read_text(encoding="utf-8")
    missing = [call for call in OPERATIONS if f"`{call}`" not in manual]
    assert missing == []
