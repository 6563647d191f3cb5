"""`holdfast server check` and `config`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast.cli import main


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    text = "node.id=3\nlog.dirs=@/d/one\nlog.retention.hours=2\nssl.key.password=geheim\n"
    path.write_text(text.replace("@", str(tmp_path)))
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["server", *map(str, arguments)])


def settings_of(*arguments: str | Path) -> dict[str, dict[str, Any]]:
    output = json.loads(run("config", *arguments, "--json").stdout)
    assert output["schema"] == "holdfast-server-config/1"
    return {row["name"]: row for row in output["settings"]}


def test_a_good_file_is_confirmed_in_one_line(file: Path) -> None:
    done = run("check", file)
    assert done.exit_code == 0
    assert done.stdout == (
        f"✓ {file}: broker 3 listens on 127.0.0.1:9092, keeps its data in {file.parent}/d/one "
        f"and uses the store {file.parent}/d/holdfast-store.sqlite\n"
    )
    assert done.stderr.startswith(f"warning: {file}:4: ssl.key.password is known")
    done = run("check", file, "--config", "zookeeper.connect=z:2181")
    assert "uses the store ZooKeeper at z:2181" in done.stdout


def test_every_problem_is_a_line(file: Path) -> None:
    file.write_text("node.id=x\nnum.partitons=3\n")
    done = run("check", file, "--config", "log.roll.hours=0")
    assert (done.exit_code, done.stdout) == (64, "")
    assert done.stderr.splitlines() == [
        f"holdfast: {file}:1: node.id=x: Not a number of type INT",
        f"holdfast: {file}:2: num.partitons is not a setting; did you mean num.partitions?",
        "holdfast: --config log.roll.hours=0: log.roll.hours=0: Value must be at least 1",
    ]


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    done = run("check", tmp_path / "none")
    assert done.exit_code == 64
    assert "does not exist" in done.stderr


def test_settings_are_looked_up_by_name_and_by_pattern() -> None:
    found = settings_of("num.partitions", "replica.fetch.*")
    assert next(iter(found)) == "num.partitions"
    assert len(found) == 6
    assert found["num.partitions"] == {
        "name": "num.partitions",
        "type": "int",
        "default": "1",
        "allowed": "1..",
        "change": "read-only",
        "acts": True,
        "meaning": "partitions of auto-created topics",
    }
    assert "retention.ms" in settings_of("--topic")
    assert "partitions of auto-created topics" in run("config", "num.partitions").stdout


def test_with_a_file_every_value_says_where_it_comes_from(file: Path) -> None:
    found = settings_of("--file", file, "log.*", "ssl.key.password")
    assert found["log.dirs"]["value"] == f"{file.parent}/d/one"
    assert found["log.dirs"]["from"] == f"{file}:2"
    assert found["log.roll.hours"]["from"] == "default"
    assert found["ssl.key.password"]["value"] == "[hidden]"
    found = settings_of("--topic", "--file", file, "retention.ms")
    assert found["retention.ms"]["value"] == "7200000"
    assert found["retention.ms"]["from"] == f"{file}:3 (log.retention.hours)"
    found = settings_of("--file", file, "--config", "num.partitions=5", "num.partitions")
    assert found["num.partitions"]["from"] == "--config num.partitions=5"


def test_what_cannot_be_looked_up_is_bad_input(file: Path) -> None:
    done = run("config", "num.partitons")
    assert (done.exit_code, done.stderr) == (
        64,
        "holdfast: no setting 'num.partitons' (did you mean num.partitions?)\n",
    )
    assert run("config", "qwertz").stderr == "holdfast: no setting 'qwertz'\n"
    assert run("config", "--config", "a=b").exit_code == 64
    file.write_text("node.id=x\nnum.partitons=3\n")
    done = run("config", "--file", file)
    assert done.exit_code == 64
    assert "(and 1 more) (try 'holdfast server check')" in done.stderr
