"""Bad input to a broker gives one clear line and exit code 64, and changes nothing."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.exit_codes import BAD_INPUT
from holdfast.cluster import Cluster
from tests.support.ports import held_port

pytestmark = pytest.mark.slow

DEADLINE_S = 60


def properties(folder: Path, **settings: str) -> Path:
    """A server.properties in a folder; settings with _ for the dots."""
    folder.mkdir(parents=True, exist_ok=True)
    given = {
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder / "log"),
        "holdfast.store": str(folder / "store.sqlite"),
        "broker.session.timeout.ms": "1000",
    } | {name.replace("_", "."): value for name, value in settings.items()}
    if "zookeeper.connect" in given:
        del given["holdfast.store"]
    path = folder / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in given.items()), encoding="utf-8")
    return path


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def refusal(path: Path) -> str:
    """The error of a broker that cannot start: its only line that is not a warning."""
    command = [sys.executable, "-m", "holdfast", "server", "start", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    lines = [one for one in done.stderr.splitlines() if not one.startswith("warning:")]
    errors = [one for one in lines if one.startswith("holdfast: ")]
    assert done.returncode == BAD_INPUT, done.stderr
    assert len(errors) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return errors[0]


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """The folder of a cluster of one broker that has run and was stopped."""
    folder = tmp_path / "used"
    cluster = Cluster(folder, brokers=1)
    cluster.start()
    cluster.create_topic("events")
    cluster.produce("events", ["one"])
    cluster.close()
    return folder


def again(used: Path, **settings: str) -> Path:
    """A server.properties like that of the used broker, with some settings changed."""
    log, store = str(used / "brokers" / "1" / "log"), str(used / "store.sqlite")
    return properties(
        used.parent / "other", **{"log_dirs": log, "holdfast_store": store} | settings
    )


def test_an_unknown_setting(tmp_path: Path) -> None:
    path = properties(tmp_path, min_insync_replica="2")
    message = refusal(path)
    assert "min.insync.replica" in message
    assert "did you mean min.insync.replicas" in message
    assert set(files_below(tmp_path)) == {"server.properties"}, "nothing is touched"


def test_an_impossible_setting(tmp_path: Path) -> None:
    message = refusal(properties(tmp_path, num_partitions="0"))
    assert "num.partitions" in message
    assert set(files_below(tmp_path)) == {"server.properties"}


def test_a_port_in_use(tmp_path: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        message = refusal(properties(tmp_path, listeners=f"PLAINTEXT://127.0.0.1:{port}"))
    assert f"127.0.0.1:{port}" in message
    assert "listeners" in message
    assert not (tmp_path / "store.sqlite").exists()
    assert not (tmp_path / "log" / "meta.properties").exists()


def test_a_directory_of_another_broker(used: Path) -> None:
    before = files_below(used)
    message = refusal(again(used, node_id="7"))
    assert "broker 1" in message
    assert "broker 7" in message
    assert "node.id" in message
    assert logs(files_below(used)) == logs(before)


def logs(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without the store, which other brokers use too, and locks."""
    return {
        name: content
        for name, content in files.items()
        if not name.startswith("store.sqlite") and not name.endswith("lock")
    }


def test_a_directory_of_another_cluster(used: Path, tmp_path: Path) -> None:
    other = Cluster(tmp_path / "second", brokers=1)
    other.start()
    other.close()
    before = logs(files_below(used))
    message = refusal(again(used, holdfast_store=str(tmp_path / "second" / "store.sqlite")))
    assert "belongs to cluster" in message
    assert logs(files_below(used)) == before


def test_a_store_that_is_empty(used: Path, tmp_path: Path) -> None:
    before = logs(files_below(used))
    message = refusal(again(used, holdfast_store=str(tmp_path / "new.sqlite")))
    assert "belongs to cluster" in message
    assert logs(files_below(used)) == before


def test_a_directory_of_another_version(used: Path) -> None:
    meta = used / "brokers" / "1" / "log" / "meta.properties"
    text = meta.read_text(encoding="utf-8")
    assert "version=1" in text
    meta.write_text(text.replace("version=1", "version=9"), encoding="utf-8")
    before = logs(files_below(used))
    message = refusal(again(used))
    assert "meta.properties" in message
    assert "version" in message
    assert logs(files_below(used)) == before


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"version=1\nnode.id=one\n", b"#\n"])
def test_a_damaged_meta_properties(used: Path, content: bytes) -> None:
    meta = used / "brokers" / "1" / "log" / "meta.properties"
    meta.write_bytes(content)
    before = logs(files_below(used))
    message = refusal(again(used))
    assert str(meta) in message
    assert logs(files_below(used)) == before


def test_a_second_broker_with_the_same_directory(tmp_path: Path) -> None:
    with Cluster(tmp_path / "first", brokers=1) as cluster:
        message = refusal(again(tmp_path / "first"))
        assert "another broker uses this directory" in message
        cluster.create_topic("events")
        cluster.produce("events", ["one"])
        cluster.assert_no_acked_loss()


def test_a_second_broker_with_the_same_id(tmp_path: Path) -> None:
    with Cluster(tmp_path / "first", brokers=1) as cluster:
        folder = tmp_path / "other"
        message = refusal(again(tmp_path / "first", log_dirs=str(folder / "log")))
        assert "broker 1 is registered already" in message
        assert "node.id" in message
        cluster.create_topic("events")
        cluster.produce("events", ["one"])
        cluster.assert_no_acked_loss()


def test_a_store_that_cannot_be_reached(tmp_path: Path) -> None:
    with held_port() as port:
        path = properties(
            tmp_path, zookeeper_connect=f"127.0.0.1:{port}", zookeeper_connection_timeout_ms="2000"
        )
        message = refusal(path)
    assert f"127.0.0.1:{port}" in message
    assert not (tmp_path / "log" / "meta.properties").exists()


def test_a_store_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("not a database", encoding="utf-8")
    message = refusal(properties(tmp_path))
    assert "store.sqlite" in message
    assert (tmp_path / "store.sqlite").read_text(encoding="utf-8") == "not a database"
    shutil.rmtree(tmp_path / "log", ignore_errors=True)
