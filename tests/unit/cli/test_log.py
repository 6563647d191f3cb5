"""`holdfast log` on directories and files, good and damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.broker.log import log as command
from holdfast.storage import LogSettings, RealDisk
from tests.unit.storage.support import DIRECTORY, NOW, batch, fill, marker, open_, produced

SETTINGS = LogSettings(segment_bytes=1_000, index_interval_bytes=100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed log of several segments."""
    log = open_(RealDisk(tmp_path), SETTINGS)
    fill(log, 12, step_ms=10)
    log.append([batch(12, [b"value", None], keys=[b"key", b"gone"], epoch=3)], NOW)
    log.append([produced(14, 8, 0, is_transactional=True, epoch=3)], NOW)
    log.append([marker(15, 8, is_commit=False, epoch=3)], NOW)
    log.close(NOW)
    return tmp_path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def json_of(*arguments: str | Path) -> dict[str, Any]:
    done = run(*arguments, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_a_good_directory_is_verified(folder: Path) -> None:
    done = run("verify", folder, "--deep")
    assert (done.exit_code, done.stdout[0]) == (0, "✓")
    assert "offsets 0 to 16" in done.stdout
    report = json_of("verify", folder / DIRECTORY)
    assert report["schema"] == "holdfast-log-verify/1"
    assert report["is_good"]
    assert report["logs"][0]["records"] == 16


@pytest.mark.parametrize(
    ("name", "position"),
    [
        (f"{5:020d}.log", 400),
        (f"{5:020d}.index", 3),
        (f"{5:020d}.timeindex", 7),
        (f"{5:020d}.snapshot", 3),
        ("leader-epoch-checkpoint", 4),
        (f"{10:020d}.txnindex", 1),
    ],
)
def test_damage_is_named_with_file_position_and_offset(
    folder: Path, name: str, position: int
) -> None:
    flip(folder / DIRECTORY / name, position)
    done = run("verify", folder)
    assert done.exit_code == 1
    assert name in done.stdout
    [first, *_] = json_of("verify", folder)["logs"][0]["findings"]
    assert name in first["file"]
    if name.endswith(".log"):
        size = (folder / DIRECTORY / name).stat().st_size // 5
        assert (first["position"], first["offset"]) == (400 // size * size, 5 + 400 // size)


def test_nothing_is_changed_by_looking(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for verb in ("dump", "verify", "epochs", "index"):
        assert run(verb, folder).exit_code == 0
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_dump_shows_batches_and_deep_shows_records(folder: Path) -> None:
    [*files] = json_of("dump", folder)["files"]
    assert sum(len(part["batches"]) for part in files) == 15
    assert files[-1]["aborted"][0]["producer_id"] == 8
    deep = json_of("dump", folder, "--deep")["files"]
    records = [record for part in deep for one in part["batches"] for record in one["records"]]
    assert [record["offset"] for record in records] == list(range(16))
    assert (records[12]["key"], records[12]["value"], records[13]["value"]) == (
        "key",
        "value",
        None,
    )
    assert records[15]["control"] == "abort"
    table = run("dump", folder, "--deep").stdout
    assert "value" in table
    assert "abort" in table


def test_single_files_are_read(folder: Path) -> None:
    home = folder / DIRECTORY
    assert len(json_of("dump", home / f"{5:020d}.log")["files"][0]["batches"]) == 5
    assert (
        json_of("dump", home / f"{16:020d}.snapshot")["files"][0]["producers"][0]["producer_id"]
        == 8
    )
    index = json_of("index", home / f"{5:020d}.timeindex")["segments"][0]
    assert index["times"]
    assert "offsets" not in index
    assert json_of("index", home)["segments"][0]["offsets"]


def test_epochs_show_both_sources(folder: Path) -> None:
    [log] = json_of("epochs", folder)["logs"]
    assert [(row["epoch"], row["start_offset"], row["end_offset"]) for row in log["epochs"]] == [
        (0, 0, 12),
        (3, 12, 16),
    ]
    (folder / DIRECTORY / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert run("epochs", folder).exit_code == 1


def test_a_broker_s_folder_is_its_log_directory(folder: Path) -> None:
    """As `holdfast up` makes them: brokers/1 has log and server.properties."""
    broker = folder / "brokers" / "1"
    log = broker / "log"
    log.mkdir(parents=True)
    for one in [one for one in folder.iterdir() if one.name != "brokers"]:
        one.rename(log / one.name)
    (broker / "server.properties").write_text("node.id=1")
    assert json_of("dump", broker) == json_of("dump", broker / "log")
    assert json_of("dump", broker)["files"]
    second = broker / "other" / "u-0"
    second.mkdir(parents=True)
    (second / "00000000000000000000.log").touch()
    done = run("dump", broker)
    assert done.exit_code == 64
    assert "several log directories" in done.output


def test_a_path_without_a_log_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x")
    for path in (tmp_path, tmp_path / "x.txt"):
        done = run("dump", path)
        assert done.exit_code == 64
