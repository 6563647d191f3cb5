"""`holdfast audit run` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.cluster import Cluster
from holdfast.ledger import LedgerProducer
from tests.ledger.writing import write_ledger
from tests.support.spark import SMALL_OPTIONS, SPARKS_SOCKETS, command

pytestmark = [pytest.mark.slow, *SPARKS_SOCKETS]
TOPIC = "t"
RECORDS = 3000
PARTITIONS = 3


def audit(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["audit", "run", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_spark_that_does_not_start_decides_nothing(tmp_path: Path) -> None:
    """1 would be a verdict."""
    write_ledger(tmp_path / "ledger", 3)
    arguments = ("--ledger", "ledger", "--logs", "b1=.", "--master", "nowhere://x")
    with command("audit", "run", *arguments, cwd=tmp_path) as process:
        _, errors = process.communicate(timeout=600)
    assert (process.returncode, "Spark did not start" in errors) == (4, True), errors


def test_safe_settings_under_kills_find_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(tmp_path / "cluster", brokers=3) as cluster:
        cluster.create_topic(TOPIC, partitions=PARTITIONS)
        config = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0}
        producer = LedgerProducer(config | {"enable.idempotence": True}, ledger=tmp_path / "ledger")
        victim = 0
        for number in range(RECORDS):
            if number in (1000, 2000):
                victim = cluster.leader(TOPIC, 0)
                cluster.kill(victim)
            if number in (1500, 2500):
                cluster.wait_leader(TOPIC, 0, not_broker=victim)
                cluster.restart(victim)
            producer.produce(TOPIC, b"value %d" % number, key=b"%d" % (number % 11))
            producer.poll(0)
        assert producer.flush(60) == 0
        del producer
        for partition in range(PARTITIONS):
            cluster.wait_isr(TOPIC, partition)
        logs = [f"b{one}={cluster.files(one).log}" for one in cluster.brokers]
    page, every = tmp_path / "page.html", tmp_path / "findings.parquet"
    code = audit(
        *("--ledger", str(tmp_path / "ledger"), "--logs", ",".join(logs), "--json"),
        *("--master", "local[2]", *SMALL_OPTIONS),
        *("--html", str(page), "--findings", str(every)),
    )
    report = json.loads(capsys.readouterr().out)
    assert not report["findings"]
    assert not report["missing"]
    assert report["schema"] == "holdfast-audit/1"
    assert report["verdict"]["acked"] == report["verdict"]["in_truth"] == RECORDS
    assert report["verdict"]["found"] == dict.fromkeys(("b1", "b2", "b3"), RECORDS)
    assert code == 0
    assert "<html" in page.read_text()
    assert every.exists()


@pytest.mark.parametrize(
    ("logs", "message"),
    [
        ("b1", "'b1' is not NAME=DIR"),
        ("b1=x,b1=y", "b1 is named twice"),
        ("=x", "'=x' is not NAME=DIR"),
    ],
)
def test_bad_logs_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], logs: str, message: str
) -> None:
    assert audit("--ledger", str(tmp_path), "--logs", logs) == 64
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["logs", "ledger", "consumed", "table"])
def test_a_folder_that_is_not_there_is_named_before_spark_starts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
) -> None:
    def start(*_: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("holdfast.cli.pipeline.audit.spark_session", start)
    given = {name: tmp_path / name for name in ("ledger", "logs", "consumed", "table")}
    for name, folder in given.items():
        if name != missing:
            folder.mkdir()
            (folder / "t-00000.arrows").touch()
    code = audit(
        *("--ledger", str(given["ledger"]), "--logs", f"b1={given['logs']}"),
        *("--consumed", str(given["consumed"]), "--table", str(given["table"])),
    )
    assert code == 64
    # Click breaks long lines.
    assert str(given[missing]) in capsys.readouterr().err.replace("\n", "")


def test_a_folder_without_a_ledger_is_named_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit("--ledger", str(tmp_path), "--logs", f"b1={tmp_path}") == 64
    assert "there is no ledger in" in capsys.readouterr().err
