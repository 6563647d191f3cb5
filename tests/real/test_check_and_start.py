"""`server check` and `server start` accept and refuse the same files, with the same messages."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient

from holdfast.cli.exit_codes import BAD_INPUT
from holdfast.storage.checkpoints.meta_properties import (
    MetaProperties,
    id_text,
    write_meta_properties,
)
from holdfast.storage.real_disk import RealDisk
from tests.support.ending import ended
from tests.support.namespaces import why_missing
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

DEADLINE_S = 120


def server(verb: str, file: Path, *before: str) -> list[str]:
    return [*before, sys.executable, "-m", "holdfast", "server", verb, str(file)]


def written(folder: Path, text: str) -> Path:
    """A server.properties of broker 1; `@` stands for the folder."""
    file = folder / "server.properties"
    base = "node.id=1\nholdfast.store=@/store.sqlite\n"
    lines = base if "holdfast.store" not in text and "zookeeper" not in text else "node.id=1\n"
    file.write_text((lines + text).replace("@", str(folder)), encoding="utf-8")
    return file


def said(command: list[str]) -> tuple[int, list[str]]:
    """The exit code, and every line that is not from the broker's log."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    lines = [one for one in done.stderr.splitlines() if one.startswith(("holdfast:", "warning:"))]
    return done.returncode, lines


def owned(folder: Path, name: str, cluster: str, node: int, identity: int) -> None:
    (folder / name).mkdir()
    meta = MetaProperties(cluster, node, id_text(uuid.UUID(int=identity)))
    write_meta_properties(RealDisk(folder / name), meta)


def same_clusters(folder: Path) -> None:
    owned(folder, "a", "one", 1, 1)
    owned(folder, "b", "one", 1, 1)


def two_clusters(folder: Path) -> None:
    owned(folder, "a", "one", 1, 1)
    owned(folder, "b", "two", 1, 2)


def another_broker(folder: Path) -> None:
    owned(folder, "a", "one", 7, 1)


def one_log_twice(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name / "t-0").mkdir(parents=True)
        (folder / name / "t-0" / "00000000000000000000.log").write_bytes(b"x")


def a_file(folder: Path) -> None:
    (folder / "a").write_text("not a directory")


def no_database(folder: Path) -> None:
    (folder / "s").write_text("not a database, but long enough to be looked at" * 100)


def nothing(_: Path) -> None:
    pass


HERE = "listeners=PLAINTEXT://127.0.0.1:0\n"
BAD: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "unknown": (HERE + "log.dirs=@/a\nnum.partitons=1", nothing, "did you mean num.partitions"),
    "two problems": (
        HERE + "log.dirs=@/a\nnum.partitions=0\nlog.roll.ms=x",
        nothing,
        "log.roll.ms",
    ),
    "a file": (HERE + "log.dirs=@/a", a_file, "cannot use @/a (Not a directory): fix log.dirs"),
    "no room for it": (HERE + "log.dirs=/proc/none/a", nothing, "cannot use /proc/none/a"),
    "twice": (HERE + "log.dirs=@/a,@/b/../a", nothing, "are the same directory"),
    "of another broker": (HERE + "log.dirs=@/a", another_broker, "belongs to broker 7"),
    "of two clusters": (HERE + "log.dirs=@/a,@/b", two_clusters, "@/b belongs to cluster two"),
    "a copy": (HERE + "log.dirs=@/a,@/b", same_clusters, "have the same directory.id"),
    "one log in two": (HERE + "log.dirs=@/a,@/b", one_log_twice, "the log of t-0 is in @/a and in"),
    "no such host": ("log.dirs=@/a\nlisteners=PLAINTEXT://no.such.invalid:0", nothing, "listen on"),
    "not our host": (
        "log.dirs=@/a\nlisteners=PLAINTEXT://192.0.2.1:0",
        nothing,
        "cannot listen on",
    ),
    "all addresses": (
        "log.dirs=@/a\nlisteners=PLAINTEXT://0.0.0.0:0",
        nothing,
        "cannot connect to",
    ),
    "trace": (HERE + "log.dirs=@/a\nholdfast.trace=@/n/t", nothing, "no directory @/n"),
    "control": (HERE + "log.dirs=@/a\nholdfast.control=@/n/c", nothing, "no directory @/n"),
    "store": (HERE + "log.dirs=@/a\nholdfast.store=@/n/s", nothing, "the store @/n/s cannot be"),
    "other store": (HERE + "log.dirs=@/a\nholdfast.store=@/s", no_database, "the store @/s"),
    "zookeeper": (
        HERE + "log.dirs=@/a\nzookeeper.connect=:::",
        nothing,
        "is not a ZooKeeper address",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_one_refuses_the_other_refuses_too(tmp_path: Path, case: str) -> None:
    text, prepare, expected = BAD[case]
    prepare(tmp_path)
    file = written(tmp_path, text)
    code, lines = said(server("check", file))
    assert code == BAD_INPUT
    assert any(expected.replace("@", str(tmp_path)) in one for one in lines), lines
    assert said(server("start", file)) == (code, lines)


GOOD: dict[str, tuple[str, Callable[[Path], None]]] = {
    "one directory": (HERE + "log.dirs=@/a", nothing),
    "several directories": (HERE + "log.dirs=@/a,@/b,@/deep/c", nothing),
    "one of two is bad": (HERE + "log.dirs=@/a,@/b", a_file),
    "an empty host": ("listeners=PLAINTEXT://:0\nlog.dirs=@/a", nothing),
    "files beside new directories": (HERE + "log.dirs=@/n/a\nholdfast.trace=@/n/t", nothing),
}


@contextlib.contextmanager
def running(file: Path, *before: str) -> Iterator[str]:
    """Run a broker; yields its output up to its start."""
    with (file.parent / "output").open("wb") as output:
        process = subprocess.Popen(server("start", file, *before), stderr=output)
        try:
            wait_until(
                lambda: process.poll() is not None or "event=started" in said_so_far(file),
                "the broker has started",
                DEADLINE_S,
            )
            assert process.poll() is None, said_so_far(file)
            yield said_so_far(file)
            process.send_signal(signal.SIGTERM)
        finally:
            ended(process, "the broker")
        assert process.returncode == 0, said_so_far(file)


def said_so_far(file: Path) -> str:
    return (file.parent / "output").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", GOOD)
def test_what_one_accepts_the_other_accepts_too(tmp_path: Path, case: str) -> None:
    text, prepare = GOOD[case]
    prepare(tmp_path)
    file = written(tmp_path, text)
    before = sorted(tmp_path.rglob("*"))
    code, warnings = said(server("check", file))
    assert code == 0
    assert sorted(tmp_path.rglob("*")) == before, "looking changes nothing"
    with running(file) as output:
        assert [one for one in output.splitlines() if one.startswith("warning:")] == warnings


def there_and_back(address: str) -> None:
    """Produce and read a record with a real client, at the address in Metadata."""
    known = AdminClient({"bootstrap.servers": address}).list_topics(timeout=30)
    assert [one.host for one in known.brokers.values()] != [""]
    assert list(known.brokers) == [1]
    producer = Producer({"bootstrap.servers": address, "message.timeout.ms": 60_000})
    errors: list[KafkaError | None] = []
    producer.produce("t", b"here", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    assert errors == [None]
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    try:
        found = consumer.poll(60)
        assert found is not None
        assert found.value() == b"here"
    finally:
        consumer.close()


MORE = "log.dirs=@/a\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n"


def test_an_empty_host_advertises_the_name_of_this_machine(tmp_path: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    file = written(tmp_path, f"listeners=PLAINTEXT://:{port}\n{MORE}")
    with running(file) as output:
        assert f"host={socket.getfqdn()}" in output
        there_and_back(f"127.0.0.1:{port}")


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network namespace with only loopback, where port 9092 is free."""
    missing = why_missing()
    if missing is not None:
        pytest.skip(missing)
    name = f"holdfast-{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def test_without_listeners_clients_of_this_machine_are_served(
    tmp_path: Path, namespace: str
) -> None:
    file = written(tmp_path, MORE)
    inside = ("ip", "netns", "exec", namespace)
    with running(file, *inside) as output:
        assert "host=127.0.0.1 port=9092" in output
        assert "listeners is not set" in output
        sockets = subprocess.run(
            [*inside, "ss", "-Hltn"] if shutil.which("ss") else [*inside, "cat", "/proc/net/tcp"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert "127.0.0.1:9092" in sockets or "0100007F:2384" in sockets
        program = "from tests.real.test_check_and_start import there_and_back as go; go(ADDRESS)"
        command = [*inside, sys.executable, "-c", program.replace("ADDRESS", "'127.0.0.1:9092'")]
        subprocess.run(command, check=True, timeout=DEADLINE_S)
