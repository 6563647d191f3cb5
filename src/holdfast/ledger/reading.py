"""Reads ledgers as Arrow batches with the columns that the audit joins on.

A last block that is shorter than its header says was being appended when its writer died. None of
its rows were in use, and the reader omits it. Any other inconsistency is an error that names the
file, the byte and what to do: a ledger is evidence, so the reader does not guess.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.ledger.columns import COMMITTED, CONSUMED, FORMAT, KINDS, SENT, VERSION, Kind
from holdfast.ledger.errors import LedgerError
from holdfast.ledger.logical import facts_of, logical_batch

_PREFIX: Final = struct.Struct("<4si")
"""Before each Arrow message: a mark, and the length of the message's metadata."""
_MARK: Final = b"\xff\xff\xff\xff"
_DESCRIPTION_LIMIT: Final = 1 << 20
_BODY_LIMIT: Final = 1 << 30
_BODY_LENGTH_SLOT: Final = 10
"""The vtable slot, in a flatbuffers Message, of its fourth field: the body length."""
_ACKS: Final = ("-1", "0", "1")
_PARQUET_ROWS: Final = 1 << 16


def read_ledger(
    folder: str | os.PathLike[str],
    topic: str | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[Any]:
    """The records sent and their answers, one row per send, file by file."""
    return _read(folder, SENT, topic, columns)


def read_consumed(
    folder: str | os.PathLike[str],
    topic: str | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[Any]:
    """The messages delivered to consumers, and whether they processed them; one row each."""
    return _read(folder, CONSUMED, topic, columns)


def read_committed(
    folder: str | os.PathLike[str],
    topic: str | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[Any]:
    """Answers to consumers' commits, one row per partition and commit."""
    return _read(folder, COMMITTED, topic, columns)


def files(
    folder: str | os.PathLike[str], topic: str | None = None, kind: Kind = SENT
) -> list[Path]:
    """The files with such rows, in a stable order; each can be read by itself."""
    root = Path(folder)
    if not root.is_dir():
        raise LedgerError(
            f"there is no ledger folder {root}",
            hint="name the folder that was given to LedgerProducer or LedgerConsumer",
        )
    found = (path for path in root.rglob("*") if path.suffix in (".arrows", ".parquet"))
    return [path for path in sorted(found) if _holds(path, kind, topic)]


def runs(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The content of every run.json, each written by a producer or consumer."""
    found = []
    for path in sorted(Path(folder).rglob("run.json")):
        try:
            about = json.loads(path.read_text(encoding="utf-8") or "{}")
        except ValueError as error:
            raise LedgerError(
                f"{path} is not a line of JSON: {error}", hint="restore it, or remove the file"
            ) from None
        found.append(about)
    return found


def read_file(
    path: Path,
    kind: Kind = SENT,
    topic: str | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[Any]:
    """The rows of one file."""
    wanted = _wanted(kind, columns)
    if path.suffix == ".parquet":
        yield from _parquet(path, kind, topic, wanted)
        return
    content = _mapped(path)
    schema, position = _schema(path, content)
    if schema is None or not _is_about(path, schema, kind, topic):
        return
    facts = _facts(path, schema)
    for batch, at in _blocks(path, content, schema, position):
        yield logical_batch(path, at, batch, kind, wanted, facts)


def _read(
    folder: str | os.PathLike[str], kind: Kind, topic: str | None, columns: Sequence[str] | None
) -> Iterator[Any]:
    for path in files(folder, topic, kind):
        yield from read_file(path, kind, topic, columns)


def _wanted(kind: Kind, columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        return list(kind.logical.names)
    for name in columns:
        if name not in kind.logical.names:
            raise LedgerError(
                f"the {kind.name} table of a ledger has no column {name!r}",
                hint=f"it has {', '.join(kind.logical.names)}",
            )
    return list(columns)


# Arrow streams.


def _mapped(path: Path) -> Any:
    """All bytes of the file, not copied."""
    if path.stat().st_size == 0:  # An empty file cannot be mapped.
        return pa.py_buffer(b"")
    with pa.memory_map(str(path)) as file:
        return file.read_buffer()


def _schema(path: Path, content: Any) -> tuple[Any, int]:
    """The file's schema and the start of its blocks; no schema if its writer died before it."""
    size: int = content.size
    end = _message_end(path, content, 0)
    if end is None or end > size:
        return None, size
    if end == 0:
        _damaged(path, 0, "it does not begin with an Arrow schema")
    try:
        schema = pa.ipc.read_schema(content[:end])
        _ = schema.names  # which must be text
    except (pa.ArrowException, OSError, ValueError) as error:
        _damaged(path, 0, f"it does not begin with an Arrow schema ({error})")
    return schema, end


def _message_end(path: Path, content: Any, position: int) -> int | None:
    """The end of the message at `position`; None if the file ends before its length."""
    left: int = content.size - position
    if left < _PREFIX.size:
        if bytes(content[position : position + 4]) != _MARK[:left]:
            _damaged(path, position, "these bytes are not an Arrow message")
        return None
    mark, described = _PREFIX.unpack_from(content, position)
    if mark != _MARK or not 0 <= described <= _DESCRIPTION_LIMIT:
        _damaged(path, position, "these bytes are not an Arrow message")
    if described == 0:  # The end of the stream, which is optional.
        return position
    if left < _PREFIX.size + described:
        return None
    start = position + _PREFIX.size
    body: int = _body_length(path, position, bytes(content[start : start + described]))
    end: int = start + described + body
    return end


def _body_length(path: Path, position: int, table: bytes) -> int:
    try:
        (root,) = struct.unpack_from("<I", table)
        (back,) = struct.unpack_from("<i", table, root)
        (length,) = struct.unpack_from("<H", table, root - back)
        if length <= _BODY_LENGTH_SLOT:
            return 0
        (at,) = struct.unpack_from("<H", table, root - back + _BODY_LENGTH_SLOT)
        body: int = struct.unpack_from("<q", table, root + at)[0] if at else 0
    except struct.error:
        _damaged(path, position, "the metadata of an Arrow message is damaged")
    if not 0 <= body <= _BODY_LIMIT:
        _damaged(path, position, f"an Arrow message claims {body} bytes")
    return body


def _blocks(path: Path, content: Any, schema: Any, position: int) -> Iterator[tuple[Any, int]]:
    size = content.size
    while position < size:
        end = _message_end(path, content, position)
        if end is None or end > size:
            return
        if end == position:
            if size > position + _PREFIX.size:
                _damaged(path, position, "the stream ends here, and bytes follow")
            return
        try:
            message = pa.ipc.read_message(content[position:end])
            batch = pa.ipc.read_record_batch(message, schema)
            batch.validate()
        except (pa.ArrowException, OSError, ValueError, NotImplementedError) as error:
            _damaged(path, position, f"a block cannot be read ({error})")
        yield batch, position
        position = end


def _holds(path: Path, kind: Kind, topic: str | None) -> bool:
    if path.suffix == ".parquet":
        return kind.mark in _parquet_file(path).schema_arrow.names
    schema, _ = _schema(path, _mapped(path))
    return schema is not None and _is_about(path, schema, kind, topic)


def _facts(path: Path, schema: Any) -> dict[str, str]:
    try:
        return {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    except UnicodeDecodeError:
        _damaged(path, 0, "the facts in its schema are not text")


def _is_about(path: Path, schema: Any, kind: Kind, topic: str | None) -> bool:
    """Whether the file has rows of this kind and topic; refuses a file that is not a ledger."""
    facts = _facts(path, schema)
    if facts.get("format") != FORMAT:
        _damaged(path, 0, "it is an Arrow file, but not a ledger", hint="move it out of the folder")
    if facts.get("version") != VERSION:
        hint = "read it with the version of Holdfast that wrote it"
        _damaged(path, 0, f"it is a ledger of version {facts.get('version')}", hint=hint)
    found = KINDS.get(facts.get("kind", ""))
    if found is None:
        _damaged(path, 0, f"it is a ledger of an unknown kind, {facts.get('kind')!r}")
    for name in facts_of(found):
        if name not in facts or (name == "acks" and facts[name] not in _ACKS):
            _damaged(path, 0, f"its schema lacks {name}, or has an invalid value")
    if found is not kind or topic not in (None, facts["topic"]):
        return False
    for field in kind.cells:
        place = schema.get_field_index(field.name)
        if place < 0 or schema.field(place) != field:
            _damaged(path, 0, f"it lacks the column {field}, or has it twice")
    return True


# Parquet.


def _parquet_file(path: Path) -> Any:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        hint = "restore it, or move it out of the folder: its rows cannot be read"
        _damaged(path, 0, f"it is not a readable Parquet file ({error})", hint=hint)


def _parquet(path: Path, kind: Kind, topic: str | None, columns: list[str]) -> Iterator[Any]:
    file = _parquet_file(path)
    for name in kind.logical.names:
        if name not in file.schema_arrow.names:
            _damaged(path, 0, f"it has no column {name}", hint="see docs/ledger.md")
    needed = columns if topic is None or "topic" in columns else [*columns, "topic"]
    schema = pa.schema([kind.logical.field(name) for name in columns])
    try:
        for batch in file.iter_batches(_PARQUET_ROWS, columns=needed):
            rows = batch
            if topic is not None:
                rows = batch.filter(pa.compute.equal(batch["topic"].cast(pa.string()), topic))
            yield rows.select(columns).cast(schema)
    except (pa.ArrowException, OSError) as error:
        _damaged(path, 0, f"it cannot be read ({error})", hint="restore it from a copy")


def _damaged(path: Path, position: int, what: str, hint: str | None = None) -> NoReturn:
    raise LedgerError(
        f"{path}, byte {position}: {what}",
        hint=hint
        or f"restore it from a copy, or truncate it to {position} bytes and lose the rest",
    )
