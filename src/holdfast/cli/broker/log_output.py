"""Output of `holdfast log`: rows with stable names, as JSON or as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from holdfast.model import EpochEntry
from holdfast.protocol.records import MalformedBatchError, Record, control_type, read_records
from holdfast.storage import Examined
from holdfast.storage.file_names import OFFSET_INDEX, TIME_INDEX
from holdfast.storage.inspect.log_files import Indexes, batch_facts
from holdfast.storage.segment.batch_scan import FoundBatch

MOST_SHOWN = 60
"""Characters of a key or value in a table; JSON has all of it."""
_HIDDEN = ("records", "crc", "timestamp_type", "error")
_CONTROL = {0: "abort", 1: "commit"}


def batch_rows(found: FoundBatch, *, deep: bool) -> dict[str, Any]:
    """A batch, with its records if asked for."""
    facts: dict[str, Any] = batch_facts(found)
    if deep:
        facts["records"] = []
        facts["error"] = None
        try:
            for record in read_records(found.batch()):
                facts["records"].append(_record(record, is_control=found.header.is_control))
        except MalformedBatchError as error:
            facts["error"] = error.reason
    return facts


def _record(record: Record, *, is_control: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "sequence": record.sequence,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[header.key, _text(header.value)] for header in record.headers],
    }
    if is_control:
        kind = control_type(record)
        row["control"] = _CONTROL.get(kind, str(kind))
        row["key"] = row["value"] = None
    return row


def _text(data: memoryview | bytes | None) -> str | None:
    """Bytes as text; what is not UTF-8 or not printable is escaped."""
    if data is None:
        return None
    return bytes(data).decode("utf-8", "backslashreplace")


def record_rows(batches: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All records of some batches."""
    return [
        {**record, "control": record.get("control", "")}
        for batch in batches
        for record in batch["records"]
    ]


def epoch_rows(
    checkpoint: Sequence[EpochEntry], batches: Sequence[EpochEntry], end_offset: int
) -> list[dict[str, Any]]:
    """One row per leader epoch; an epoch that wrote nothing is only in the checkpoint, rightly."""
    said, found = dict(checkpoint), dict(batches)
    epochs = sorted({*said, *found})
    starts = {epoch: said.get(epoch, found.get(epoch)) for epoch in epochs}
    ends = [*(starts[epoch] for epoch in epochs[1:]), end_offset]
    return [
        {
            "epoch": epoch,
            "start_offset": starts[epoch],
            "end_offset": end,
            "in_checkpoint": epoch in said,
            "first_batch": found.get(epoch),
            "agrees": epoch in said and (epoch not in found or found[epoch] >= said[epoch]),
        }
        for epoch, end in zip(epochs, ends, strict=True)
    ]


def entry_rows(indexes: Indexes, kind: str) -> dict[str, list[dict[str, Any]]]:
    """Both indexes, or the one whose file was named."""
    rows: dict[str, list[dict[str, Any]]] = {}
    if indexes.offsets is not None and kind != TIME_INDEX:
        rows["offsets"] = [entry._asdict() for entry in indexes.offsets.entries()]
    if indexes.times is not None and kind != OFFSET_INDEX:
        rows["times"] = [entry._asdict() for entry in indexes.times.entries()]
    return rows


def show_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """A table: numbers right-aligned, text left-aligned, one line per row."""
    if not rows:
        click.echo("  nothing")
        return
    names = [name for name in rows[0] if name not in _HIDDEN]
    cells = [[_cell(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(row[at]) for row in cells)) for at, name in enumerate(names)]
    is_number = [isinstance(rows[0][name], int) for name in names]
    for line in (names, *cells):
        parts = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, is_number, strict=True)
        ]
        click.echo(f"  {'  '.join(parts).rstrip()}")


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list():
            text = ", ".join(f"{key}={data}" for key, data in value)
        case _:
            text = str(value)
    shown = "".join(char if char.isprintable() else "·" for char in text)
    return shown if len(shown) <= MOST_SHOWN else f"{shown[: MOST_SHOWN - 1]}…"


def verdict_text(logs: Sequence[Examined]) -> str:
    """One line per log, and one line per problem."""
    lines = []
    for one in logs:
        sign = "✗" if one.findings else "✓"
        lines.append(
            f"{sign} {one.directory}: offsets {one.start_offset} to {one.end_offset}, "
            f"{one.records} records in {one.batches} batches, {one.segments} segments, "
            f"{one.size} bytes" + (f", {one.gaps} gaps" if one.gaps else "")
        )
        for file, position, offset, problem in one.findings:
            where = "" if position is None else f" byte {position}"
            which = "" if offset is None else f" offset {offset}"
            lines.append(f"    {file}:{where}{which}: {problem}")
        lines += [f"    note: {note}" for note in one.notes]
    return "\n".join(lines)
