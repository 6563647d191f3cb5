"""Finding a cluster again: its file, its processes, its ports."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cluster import Cluster, ClusterError
from holdfast.cluster.processes import manifest
from holdfast.cluster.processes.manifest import BrokerEntry, Manifest
from holdfast.cluster.processes.ports import Port
from holdfast.cluster.processes.processes import ProcessId, identify


def test_what_is_saved_is_found(tmp_path: Path) -> None:
    saved = Manifest(
        store="zookeeper:h:1/x",
        config={"a": "b"},
        trace=True,
        brokers=[BrokerEntry(1, 9092, manifest.KILLED, 7, "then")],
        started_ms=5,
        owner_pid=8,
        owner_began="now",
    )
    saved.save(tmp_path)
    assert manifest.load(tmp_path) == saved


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"schema": "holdfast-cluster/2", "brokers": []}',
        '{"schema": "holdfast-cluster/1"}',
        '{"schema": "holdfast-cluster/1", "brokers": [{"id": "1", "port": 2}]}',
        '{"schema": "holdfast-cluster/1", "brokers": [{"id": 1, "port": 2, "state": "odd"}]}',
        '{"schema": "holdfast-cluster/1", "brokers": [{"id": 1, "port": 2, "more": 3}]}',
        '{"schema": "holdfast-cluster/1", "brokers": [], "config": 3}',
    ],
)
def test_a_damaged_file_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / manifest.FILE).write_text(content)
    with pytest.raises(ClusterError, match="is not a cluster's file"):
        manifest.load(tmp_path)


def test_a_missing_cluster_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="there is no cluster in"):
        manifest.load(tmp_path)


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ClusterError, match="holds no cluster"):
        Cluster(tmp_path)


def test_another_number_of_brokers_is_refused(tmp_path: Path) -> None:
    Manifest(brokers=[BrokerEntry(1, 9092)]).save(tmp_path)
    with pytest.raises(ClusterError, match="has 1 brokers, not 3"):
        Cluster(tmp_path, brokers=3)
    with pytest.raises(ClusterError, match="uses the store embedded"):
        Cluster(tmp_path, store="zookeeper:h:1")
    assert Cluster(tmp_path).brokers == (1,)


@pytest.mark.parametrize("brokers", [0, -1, 100])
def test_an_odd_number_of_brokers_is_refused(brokers: int) -> None:
    with pytest.raises(ClusterError, match="cannot be started"):
        Cluster(brokers=brokers)


def test_what_each_broker_has_of_its_own_cannot_be_set(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="every broker gets its own"):
        Cluster(tmp_path / "new", config={"log.dirs": "/tmp"})


def test_impossible_settings_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with pytest.raises(ClusterError, match=r"min\.insync\.replica"):
        Cluster(folder, config={"min.insync.replica": "2"}).start()
    assert not folder.exists()


# Processes.


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_a_process_is_known_until_it_ends(child: subprocess.Popen[bytes]) -> None:
    known = identify(child.pid)
    assert known is not None
    assert known.is_alive()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not known.is_alive(), "a zombie is not alive"


def test_a_number_that_is_used_again_is_not_taken_for_the_old_process(
    child: subprocess.Popen[bytes],
) -> None:
    stranger = ProcessId(child.pid, "long ago")
    assert not stranger.is_alive()
    assert not stranger.is_paused()
    assert not stranger.signal(signal.SIGKILL)
    assert child.poll() is None


def test_a_number_of_nobody(tmp_path: Path) -> None:
    assert identify(2**22 + 1) is None
    assert not ProcessId(2**22 + 1, "").is_alive()


def test_standing_still_is_seen(child: subprocess.Popen[bytes]) -> None:
    known = identify(child.pid)
    assert known is not None
    assert not known.is_paused()
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert known.is_paused()
    assert known.is_alive()
    child.send_signal(signal.SIGCONT)


# Ports.


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere ports are not held")
def test_a_held_port_goes_only_to_a_program_that_asks_for_it() -> None:
    port = Port()
    try:
        with socket.create_server(("127.0.0.1", port.number)) as broker:
            assert broker.getsockname()[1] == port.number
        others = [socket.create_server(("127.0.0.1", 0)) for _ in range(200)]
        assert port.number not in [other.getsockname()[1] for other in others]
        for other in others:
            other.close()
    finally:
        port.release()


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=f"port {number} cannot be used"):
            Port(number)
