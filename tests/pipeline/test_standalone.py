"""Ingest and audit on a real Spark cluster: a master and two workers of the pip package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cluster import Cluster
from holdfast.ledger import LedgerProducer
from tests.support import delta
from tests.support.spark import command
from tests.support.spark_cluster import DRIVER, standalone

pytestmark = pytest.mark.slow


def run(folder: Path, *args: str) -> str:
    conf = [word for name, value in DRIVER.items() for word in ("--conf", f"{name}={value}")]
    with command(*args, *conf, cwd=folder) as process:
        output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return output


def test_workers_write_the_table_and_judge_the_logs(tmp_path: Path) -> None:
    with standalone(tmp_path) as master, Cluster(tmp_path / "cluster", brokers=1) as cluster:
        cluster.create_topic("flights", partitions=2)
        config = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
        producer = LedgerProducer(config, ledger=tmp_path / "ledger")
        for partition in range(2):
            for number in range(50):
                producer.produce("flights", f"{partition}-{number}".encode(), partition=partition)
        assert producer.flush(60) == 0
        del producer
        output = run(
            tmp_path,
            *("ingest", "-b", cluster.bootstrap, "--topic", "flights", "--table", "lake"),
            *("--master", master),
        )
        assert output.startswith("100 rows in 1 batches")
        judged = run(
            tmp_path,
            *("audit", "run", "--ledger", "ledger", "--logs", f"b1={cluster.files(1).log}"),
            *("--table", "lake", "--json", "--master", master),
        )
    found = delta.rows(tmp_path / "lake", ("partition", "offset", "value"))
    assert sorted(found) == [(p, n, f"{p}-{n}".encode()) for p in range(2) for n in range(50)]
    verdict = json.loads(judged)["verdict"]
    assert (verdict["acked"], verdict["in_truth"], verdict["in_table"]) == (100, 100, 100)
    applications = list((tmp_path / "work").glob("app-*"))
    assert len(applications) == 2
    for each in applications:
        assert len(list(each.glob("*/stderr"))) == 2, "both workers had an executor"
