"""Ingest on a real Spark cluster: a master and two workers of the pip package."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cluster import Cluster
from tests.support import delta
from tests.support.spark import command
from tests.support.spark_cluster import DRIVER, standalone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_workers_get_the_jars_and_write_the_table(tmp_path: Path) -> None:
    with standalone(tmp_path) as master, Cluster(brokers=1) as cluster:
        cluster.create_topic("flights", partitions=2)
        for partition in range(2):
            cluster.produce("flights", [f"{partition}-{n}" for n in range(50)], partition)
        args = ["ingest", "-b", cluster.bootstrap, "--topic", "flights", "--table", "lake"]
        args += ["--master", master]
        for name, value in DRIVER.items():
            args += ["--conf", f"{name}={value}"]
        with command(*args, cwd=tmp_path) as process:
            output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        assert output.startswith("100 rows in 1 batches")
    found = delta.rows(tmp_path / "lake", ("partition", "offset", "value"))
    assert sorted(found) == [(p, n, f"{p}-{n}".encode()) for p in range(2) for n in range(50)]
    used = {path.parent.name for path in (tmp_path / "work").glob("app-*/*/stderr")}
    assert len(used) == 2, "both workers had an executor"
