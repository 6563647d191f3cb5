"""The driver is killed at random moments under load; no record is missing, none is there twice."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.cluster import Cluster
from tests.support import delta
from tests.support.spark import command, kill_all
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]

SEED = 6
KILLS = 3
PARTITIONS = 3
PATIENCE_S = 600.0
"""A start of Spark takes seconds on a free machine, and minutes on a very busy one."""


class Load:
    """Sends batches until stopped; every ninth value is bad."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ended = threading.Event()
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        """By (partition, offset)."""
        self._thread = threading.Thread(target=self._produce)

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self.end()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _produce(self) -> None:
        number = 0
        while not self._ended.wait(0.05):
            partition = number % PARTITIONS
            values = [self._value(number + place) for place in range(20)]
            base = self._cluster.produce("flights", values, partition=partition)
            self.acknowledged |= {(partition, base + place): v for place, v in enumerate(values)}
            number += len(values)

    @staticmethod
    def _value(number: int) -> bytes:
        return b"bad" if number % 9 == 0 else json.dumps({"number": number}).encode()


def test_killed_and_started_again_each_record_is_there_once(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    table = tmp_path / "lake"
    (tmp_path / "fields.ddl").write_text("number BIGINT")
    with Cluster(brokers=3) as cluster:
        cluster.create_topic("flights", partitions=PARTITIONS)
        args = ["ingest", "-b", cluster.bootstrap, "--topic", "flights", "--table", "lake"]
        args += ["--value-format", "json", "--schema", "fields.ddl"]
        load = Load(cluster)
        with load.running():
            for kill in range(KILLS):
                _killed([*args, "--continuous"], table, chance, is_whole=kill % 2 == 0)
            load.end()
            with command(*args, "--continuous", cwd=tmp_path) as process:
                wait_until(lambda: _count(table) >= len(load.acknowledged), "all is in", PATIENCE_S)
                process.send_signal(signal.SIGTERM)
                output, errors = process.communicate(timeout=PATIENCE_S)
            assert (process.returncode, "stopped" in output) == (0, True), errors
            assert "Traceback" not in errors
            assert "\tat " not in errors
        [*_, last] = sorted(
            (table / "_checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name)
        )
        last.unlink()
        with command(*args, "--once", cwd=tmp_path) as process:
            _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, errors
    _compare(table, load.acknowledged)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fields.ddl", "lake"]


def _killed(args: list[str], table: Path, chance: random.Random, *, is_whole: bool) -> None:
    """Started, and killed at some step of its first batches, or just after."""
    wanted = _steps(table) + chance.randrange(1, 7)
    with command(*args, cwd=table.parent) as process:

        def is_time() -> bool:
            assert process.poll() is None, process.communicate()[1]
            return _steps(table) >= wanted

        wait_until(is_time, f"{wanted} steps", PATIENCE_S)
        threading.Event().wait(chance.uniform(0, 0.3))
        if is_whole:
            kill_all(process)
        else:  # only Python; its Java finds out by itself
            process.kill()
            process.wait()
            wait_until(lambda: not _has_group(process.pid), "Java ended too", PATIENCE_S)


def _has_group(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


def _steps(table: Path) -> int:
    """A batch takes three or four: its offsets, a commit in each table, its end."""
    logs = (table / "_delta_log", table / "_quarantine" / "_delta_log")
    checkpoint = table / "_checkpoint"
    written = [path for log in logs for path in log.glob("*.json")]
    for name in ("offsets", "commits"):
        written += (checkpoint / name).glob("[0-9]*")
    return len(written)


def _count(table: Path) -> int:
    return delta.count(table) + delta.count(table / "_quarantine")


def _compare(table: Path, acknowledged: dict[tuple[int, int], bytes]) -> None:
    columns = ("partition", "offset", "value")
    good = delta.rows(table, columns)
    bad = delta.rows(table / "_quarantine", columns)
    assert len(good) + len(bad) == len(acknowledged)
    assert {(p, o): v for p, o, v in [*good, *bad]} == acknowledged
    assert all(value == b"bad" for _, _, value in bad)
    assert len(bad) == sum(value == b"bad" for value in acknowledged.values()) > 0


@pytest.mark.parametrize(
    ("number", "whom"), [(signal.SIGKILL, "java"), (signal.SIGTERM, "group")], ids=["java", "group"]
)
def test_a_java_that_dies_is_a_failure_with_its_reason(
    tmp_path: Path, number: signal.Signals, whom: str
) -> None:
    """A kill, the machine's out-of-memory killer; or a supervisor that ends the whole group."""
    table = tmp_path / "lake"
    with Cluster(brokers=1) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", ["a"])
        args = ["ingest", "-b", cluster.bootstrap, "--topic", "t", "--table", "lake"]
        with command(*args, "--continuous", cwd=tmp_path) as process:
            wait_until(lambda: delta.count(table) == 1, "it has begun", PATIENCE_S)
            if whom == "java":
                os.kill(_java_of(process.pid), number)
            else:
                os.killpg(process.pid, number)
            _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, errors
    assert f"Java was ended by {number.name}" in errors
    assert "a bug in Holdfast" not in errors
    assert "Traceback" not in errors


def _java_of(group: int) -> int:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_java = (process / "cmdline").read_bytes().split(b"\0")[0].endswith(b"java")
            if is_java and os.getpgid(int(process.name)) == group:
                return int(process.name)
        except OSError:
            continue  # it has ended
    raise AssertionError("there is no Java")
