"""`holdfast testserver`, used as from another language."""

from __future__ import annotations

import base64
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cluster.processes import manifest
from holdfast.cluster.waiting import wait_for

pytestmark = pytest.mark.slow


class Talk:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.lines = self.socket.makefile("rwb")

    def ask(self, call: str, **fields: Any) -> Any:
        self.lines.write(json.dumps({"call": call, **fields}).encode() + b"\n")
        self.lines.flush()
        return json.loads(self.lines.readline())

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


@pytest.fixture
def server() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "holdfast", "testserver", "--until-stdin-closes"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.communicate(timeout=600)
    assert process.returncode == 0


def where(server: subprocess.Popen[str]) -> int:
    assert server.stdout is not None
    return int(json.loads(server.stdout.readline())["port"])


def test_a_whole_session(server: subprocess.Popen[str]) -> None:
    talk = Talk(where(server))
    started = talk.ask("start-cluster", brokers=3)["answer"]
    assert len(started["bootstrap"].split(",")) == 3
    assert talk.ask("create-topic", topic="t") == {"answer": None}
    talk.ask("wait-isr", topic="t")
    values = [base64.b64encode(b"one").decode()]
    assert talk.ask("produce", topic="t", values=values) == {"answer": 0}
    leader = talk.ask("leader", topic="t")["answer"]
    assert talk.ask("kill", brokers=[leader]) == {"answer": None}
    new = talk.ask("wait-leader", topic="t", not_broker=leader)["answer"]
    assert new != leader
    assert talk.ask("replica", topic="t", broker=new)["answer"]["leo"] == 1
    assert talk.ask("consume", topic="t") == {"answer": values}
    assert talk.ask("acked-loss")["answer"] == {"acknowledged": 1, "refused": 0, "lost": []}
    assert "hint" in talk.ask("kill", brokers=[leader])
    assert talk.ask("restart", brokers=[leader]) == {"answer": None}
    states = [broker["state"] for broker in talk.ask("status")["answer"]["brokers"]]
    assert states == ["running"] * 3
    assert Path(talk.ask("timeline")["answer"]).exists()
    assert talk.ask("stop-cluster") == {"answer": None}
    assert not Path(started["data_dir"]).exists()
    talk.close()


def test_two_clusters_at_once_end_with_their_connection(server: subprocess.Popen[str]) -> None:
    talk = Talk(where(server))
    one = talk.ask("start-cluster", brokers=1)["answer"]
    two = talk.ask("start-cluster", brokers=1)["answer"]
    assert one["bootstrap"] != two["bootstrap"]
    assert "error" in talk.ask("info")
    assert talk.ask("info", cluster=two["cluster"])["answer"]["data_dir"] == two["data_dir"]
    folders = [Path(one["data_dir"]), Path(two["data_dir"])]
    brokers = [manifest.load(folder).brokers[0].process for folder in folders]
    talk.close()
    wait_for(
        lambda: True if not any(folder.exists() for folder in folders) else None,
        60,
        lambda: "files are left",
    )
    assert not any(broker is not None and broker.is_alive() for broker in brokers)


def test_it_ends_when_its_stdin_closes(server: subprocess.Popen[str]) -> None:
    talk = Talk(where(server))
    started = talk.ask("start-cluster", brokers=1)["answer"]
    assert server.stdin is not None
    server.stdin.close()
    server.stdin = None
    assert server.wait(60) == 0
    assert not Path(started["data_dir"]).exists()
    talk.close()
