"""`holdfast log`: shows and verifies log files of Holdfast or Apache Kafka. Reads only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from holdfast.cli.broker.log_output import (
    batch_rows,
    entry_rows,
    epoch_rows,
    record_rows,
    show_rows,
    verdict_text,
)
from holdfast.cli.errors import BadInput
from holdfast.cli.options import json_option
from holdfast.storage import RealDisk, examine_log
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.file_names import LOG, SNAPSHOT, LogFileName, parse_file_name
from holdfast.storage.inspect.log_files import (
    LogFiles,
    checkpointed_epochs,
    find_logs,
    log_files,
    read_aborted,
    read_indexes,
    read_producers,
)
from holdfast.storage.inspect.segment_reader import read_segment
from holdfast.storage.segment.damage import Damage

CODES = "Exit codes: 0 good, 1 something is wrong, 64 bad input, 70 a bug in Holdfast."

path_argument = click.argument("path", type=click.Path(exists=True, path_type=Path))
deep_option = click.option("--deep", is_flag=True, help="Open the records, too.")


@click.group(epilog=CODES)
def log() -> None:
    """Look into log directories and files, of Holdfast or of Apache Kafka."""


class Asked(NamedTuple):
    """What a path on the command line stands for."""

    disk: RealDisk
    logs: list[LogFiles]
    only: LogFileName | None
    """Set if a single file was named."""


def _asked(path: Path) -> Asked:
    if path.is_dir():
        return _in_directory(path)
    name = parse_file_name(path.name)
    if name is None or name.state:
        raise BadInput(
            f"{path.name} is not a segment's file or a snapshot",
            hint="try a name such as 00000000000000000000.log",
        )
    disk = RealDisk(path.parent, read_only=True)
    here = log_files(disk, "")
    bases = [int(name.base_offset)] if int(name.base_offset) in here.bases else []
    snapshots = [int(name.base_offset)] if name.kind == SNAPSHOT else []
    return Asked(disk, [LogFiles("", bases, snapshots)], name)


def _in_directory(path: Path) -> Asked:
    """A log directory, one partition in it, or a broker's folder with one log directory."""
    found = _logs_in(path)
    if found is not None:
        return found
    below = [one for one in sorted(path.iterdir()) if one.is_dir()]
    several = [(folder, logs) for folder in below if (logs := _logs_in(folder)) is not None]
    if len(several) > 1:
        names = ", ".join(str(folder) for folder, _ in several)
        raise BadInput(f"{path} has several log directories", hint=f"name one: {names}")
    if not several:
        raise BadInput(f"no log in {path}", hint="try a log directory or one of its partitions")
    return several[0][1]


def _logs_in(path: Path) -> Asked | None:
    disk = RealDisk(path, read_only=True)
    logs = find_logs(disk)
    return Asked(disk, logs, None) if logs else None


def _print(data: dict[str, Any]) -> None:
    click.echo(json.dumps(data, ensure_ascii=False))


@log.command("dump", epilog=CODES)
@path_argument
@deep_option
@json_option
@click.pass_context
def dump_command(ctx: click.Context, path: Path, deep: bool, as_json: bool) -> None:
    """Every batch of a log (or record, with --deep); or a snapshot's producers."""
    asked = _asked(path)
    parts = [_producers(asked)] if asked.only and asked.only.kind == SNAPSHOT else []
    if not parts:
        parts = [part for files in asked.logs for part in _batches(asked.disk, files, deep=deep)]
    if as_json:
        _print({"schema": "holdfast-log-dump/1", "files": parts})
    else:
        for part in parts:
            _show_part(part, deep=deep)
    ctx.exit(1 if any(part["error"] for part in parts) else 0)


def _batches(disk: RealDisk, files: LogFiles, *, deep: bool) -> Iterator[dict[str, Any]]:
    for base in files.bases:
        path = files.path(base, LOG)
        part: dict[str, Any] = {"file": path, "batches": [], "aborted": [], "error": None}
        try:
            part["aborted"] = [one._asdict() for one in read_aborted(disk, files, base)]
            for found in read_segment(disk, files, base):
                if isinstance(found, Damage):
                    part["error"] = {"position": found.position, "problem": found.reason}
                    break
                part["batches"] += [batch_rows(one, deep=deep) for one in found.each()]
        except DamagedFileError as error:
            part["error"] = {"position": None, "problem": str(error)}
        yield part


def _producers(asked: Asked) -> dict[str, Any]:
    files = asked.logs[0]
    assert asked.only is not None
    part: dict[str, Any] = {"file": files.path(asked.only.base_offset, SNAPSHOT), "error": None}
    try:
        entries = read_producers(asked.disk, files, asked.only.base_offset)
        part["producers"] = [entry._asdict() for entry in entries]
    except DamagedFileError as error:
        part["producers"] = []
        part["error"] = {"position": None, "problem": error.reason}
    return part


def _show_part(part: dict[str, Any], *, deep: bool) -> None:
    click.echo(part["file"])
    if "producers" in part:
        show_rows(part["producers"])
    elif deep:
        show_rows(record_rows(part["batches"]))
    else:
        show_rows(part["batches"])
    for one in part.get("aborted", ()):
        click.echo(
            f"  aborted: producer {one['producer_id']}, offsets {one['first_offset']} to "
            f"{one['last_offset']}"
        )
    if part["error"]:
        where = "" if part["error"]["position"] is None else f"byte {part['error']['position']}: "
        click.echo(f"  ✗ {where}{part['error']['problem']}")
    click.echo()


@log.command("verify", epilog=CODES)
@path_argument
@deep_option
@json_option
@click.pass_context
def verify_command(ctx: click.Context, path: Path, deep: bool, as_json: bool) -> None:
    """Check every byte; names file, position and offset of anything wrong, and exits 1."""
    asked = _asked(path)
    logs = [examine_log(asked.disk, files, deep=deep) for files in asked.logs if files.bases]
    if not logs:
        raise BadInput(f"no log beside {path}", hint="try the directory")
    is_good = not any(one.findings for one in logs)
    if as_json:
        described = [
            {
                "directory": one.directory,
                "segments": one.segments,
                "batches": one.batches,
                "records": one.records,
                "bytes": one.size,
                "gaps": one.gaps,
                "start_offset": one.start_offset,
                "end_offset": one.end_offset,
                "findings": [finding._asdict() for finding in one.findings],
                "notes": one.notes,
            }
            for one in logs
        ]
        _print({"schema": "holdfast-log-verify/1", "is_good": is_good, "logs": described})
    else:
        click.echo(verdict_text(logs))
    ctx.exit(0 if is_good else 1)


@log.command("epochs", epilog=CODES)
@path_argument
@json_option
@click.pass_context
def epochs_command(ctx: click.Context, path: Path, as_json: bool) -> None:
    """Leader epochs: the checkpoint's entries beside those of the batches."""
    asked = _asked(path)
    described: list[dict[str, Any]] = []
    for files in asked.logs:
        if not files.bases:
            raise BadInput(f"no log beside {path}", hint="try the directory")
        examined = examine_log(asked.disk, files)
        try:
            entries, error = checkpointed_epochs(asked.disk, files), None
        except DamagedFileError as damaged:
            entries, error = None, damaged.reason
        rows = epoch_rows(entries or [], examined.epochs, examined.end_offset)
        described.append({"directory": examined.directory, "epochs": rows, "error": error})
    if as_json:
        _print({"schema": "holdfast-log-epochs/1", "logs": described})
    else:
        for one in described:
            click.echo(one["directory"])
            show_rows(one["epochs"])
            if one["error"]:
                click.echo(f"  ✗ leader-epoch-checkpoint: {one['error']}")
            click.echo()
    agrees = all(row["agrees"] for one in described for row in one["epochs"])
    ctx.exit(0 if agrees and not any(one["error"] for one in described) else 1)


@log.command("index", epilog=CODES)
@path_argument
@json_option
@click.pass_context
def index_command(ctx: click.Context, path: Path, as_json: bool) -> None:
    """The entries of the offset and time indexes."""
    asked = _asked(path)
    parts: list[dict[str, Any]] = []
    for files in asked.logs:
        for base in files.bases or ([int(asked.only.base_offset)] if asked.only else []):
            part: dict[str, Any] = {"file": files.path(base, ""), "error": None}
            try:
                indexes = read_indexes(asked.disk, files, base)
                part.update(entry_rows(indexes, asked.only.kind if asked.only else ""))
            except DamagedFileError as error:
                part["error"] = str(error)
            parts.append(part)
    if as_json:
        _print({"schema": "holdfast-log-index/1", "segments": parts})
    else:
        for part in parts:
            for kind in ("offsets", "times"):
                if kind in part:
                    click.echo(f"{part['file']} {kind}")
                    show_rows(part[kind])
            if part["error"]:
                click.echo(f"  ✗ {part['error']}")
    ctx.exit(1 if any(part["error"] for part in parts) else 0)
