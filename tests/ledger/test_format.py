"""The files of a ledger, and how a reader handles damage."""

from __future__ import annotations

import json
import multiprocessing
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.ledger import (
    SENT,
    LedgerError,
    files,
    read_committed,
    read_consumed,
    read_file,
    read_ledger,
    runs,
)
from holdfast.ledger.book import FILE_ROWS, LARGEST_BLOCK, SMALLEST_BLOCK, Book, Writer
from tests.ledger.writing import FACTS, rows_of, write_ledger

ROOT = Path(__file__).resolve().parents[2]
ROWS = SMALLEST_BLOCK + 100
"""Two blocks."""


def block_ends(path: Path) -> list[int]:
    """The ends of the schema and of the blocks, as Arrow reads them."""
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.MessageReader.open_stream(file)
        return [file.tell() for _ in reader]


def numbers(path: Path) -> list[dict[str, int]]:
    columns = ["sequence", "value_crc", "value_len", "sent_ms", "partition", "offset", "error"]
    return [row for batch in read_file(path, columns=columns) for row in batch.to_pylist()]


def values(folder: Path) -> list[int]:
    return [row["value_crc"] for row in rows_of(folder)]


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    write_ledger(tmp_path, ROWS)
    rows = rows_of(tmp_path)
    assert [row["sequence"] for row in rows] == list(range(ROWS))
    acked, refused, unknown = rows[300], rows[301], rows[302]
    assert acked == {
        "run": "run",
        "producer": acked["producer"],
        "sequence": 300,
        "topic": "t",
        "partition_asked": None,
        "key_crc": None,
        "value_crc": 300,
        "key_len": None,
        "value_len": 5,
        "sent_ms": 301,
        "result": "acked",
        "partition": 1,
        "offset": 300,
        "acked_ms": 302,
        "error": None,
        "acks": -1,
        "idempotent": True,
    }
    assert (refused["result"], refused["error"], refused["offset"]) == ("refused", 19, None)
    assert (unknown["result"], unknown["partition"], unknown["acked_ms"]) == ("unknown", None, None)


def test_a_half_written_answer_is_not_an_answer(tmp_path: Path) -> None:
    book = Book(tmp_path, "run", "p", FACTS, "producer")
    _, cells = Writer(book, SENT, "t", book.owner).next_block()
    cells["sent_ns"][0] = 7_000_000
    cells["offset"][0] = 12
    cells["answered_ns"][0] = 8_000_000
    assert rows_of(tmp_path) == []
    cells["result"][0] = 1
    [row] = rows_of(tmp_path)
    assert (row["result"], row["offset"], row["acked_ms"]) == ("unknown", None, None)


def test_a_line_of_json_describes_the_run(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, 1)
    text = (path.parent / "run.json").read_text(encoding="utf-8")
    assert text.count("\n") == 1
    assert runs(tmp_path) == [json.loads(text)]
    assert json.loads(text)["acks"] == -1


def test_only_requested_columns_are_read(tmp_path: Path) -> None:
    write_ledger(tmp_path, 10, "a")
    write_ledger(tmp_path, 20, "b")
    assert len(rows_of(tmp_path, "b")) == 20
    assert len(files(tmp_path)) == 2
    assert len(files(tmp_path, "a")) == 1
    assert list(read_consumed(tmp_path)) == []
    assert list(read_committed(tmp_path)) == []
    [batch] = read_ledger(tmp_path, "a", ["topic", "offset"])
    assert batch.schema.names == ["topic", "offset"]
    with pytest.raises(LedgerError, match=r"has no column 'offsets'.*it has run, producer"):
        list(read_ledger(tmp_path, "a", ["offsets"]))


def test_a_topic_has_many_files(tmp_path: Path) -> None:
    book = Book(tmp_path, "run", "p", FACTS, "producer")
    writer = Writer(book, SENT, "t", book.owner)
    for _ in range(FILE_ROWS // LARGEST_BLOCK + 3):
        _, cells = writer.next_block()
    cells["sent_ns"][0] = 1
    cells["result"][0] = 1
    assert [path.name for path in files(tmp_path)] == ["t-00000.arrows", "t-00001.arrows"]
    assert [row["sequence"] >= FILE_ROWS for row in rows_of(tmp_path)] == [True]


def test_any_topic_name_is_a_file_name(tmp_path: Path) -> None:
    names = ["a/b", "..", "ü", "x" * 249, "x" * 248 + "y", "-00001"]
    for name in names:
        write_ledger(tmp_path, 1, name)
    assert sorted(row["topic"] for row in rows_of(tmp_path)) == sorted(names)
    assert all(len(path.name) <= 255 for path in files(tmp_path))


def test_owners_do_not_share_a_folder(tmp_path: Path) -> None:
    taken = {Book(tmp_path, "run", "p", FACTS, "producer").folder for _ in range(50)}
    assert len(taken) == 50


def test_a_run_has_a_sane_name(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"'\.\./x' cannot be the name of a run"):
        Book(tmp_path, "../x", "p", FACTS, "producer")


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(LedgerError, match=r"cannot keep a ledger in .*file"):
        Book(tmp_path / "file", "run", "p", FACTS, "producer")
    with pytest.raises(LedgerError, match=r"there is no ledger folder .*nowhere"):
        files(tmp_path / "nowhere")


def _child_writes(writer: Writer, answers: multiprocessing.SimpleQueue[str]) -> None:
    try:
        writer.next_block()
    except LedgerError as error:
        answers.put(str(error))
    else:
        answers.put("written")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_refused(tmp_path: Path) -> None:
    book = Book(tmp_path, "run", "p", FACTS, "producer")
    book.tables.append({"t": "kept by the parent"})
    writer = Writer(book, SENT, "t", book.owner)
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_child_writes, args=(writer, answers))
    child.start()
    child.join(60)
    assert re.search("not to its child; create the producer after the fork", answers.get())
    assert book.tables == [{"t": "kept by the parent"}]
    writer.next_block()


# Damage.


def test_a_torn_last_block_is_left_out(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, ROWS)
    content = path.read_bytes()
    schema, first, second = block_ends(path)
    assert second == len(content)
    kept = {schema: 0, first: SMALLEST_BLOCK, second: ROWS}
    for end, rows in kept.items():
        for size in (*range(end - 70, end + 70), (end + first) // 2):
            if size <= len(content):
                path.write_bytes(content[:size])
                whole = max((count for at, count in kept.items() if at <= size), default=0)
                assert values(tmp_path) == list(range(whole)), (end, size, rows)


def test_the_end_of_the_stream_may_be_written(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, ROWS)
    end = b"\xff\xff\xff\xff\0\0\0\0"
    with path.open("ab") as file:
        file.write(end)
    assert len(values(tmp_path)) == ROWS
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(LedgerError, match="the stream ends here, and bytes follow; restore"):
        values(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello, this is a text", "byte 0: these bytes are not an Arrow message"),
        (b"hey", "byte 0: these bytes are not an Arrow message"),
        (b"\xff\xff\xff\xff\x08\0\0\0" + b"\xff" * 8, "byte 0: "),
    ],
)
def test_a_foreign_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    write_ledger(tmp_path, 1)
    (tmp_path / "notes.arrows").write_bytes(content)
    with pytest.raises(LedgerError, match=rf"notes\.arrows, {message}"):
        values(tmp_path)


def test_another_arrow_file_is_not_a_ledger(tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    path = str(tmp_path / "x.arrows")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(LedgerError, match="it is an Arrow file, but not a ledger; move it"):
        values(tmp_path)


@pytest.mark.parametrize(
    ("column", "value"),
    [("result", 7), ("partition", -5), ("value_len", -2), ("sent_ns", 0), ("error", 3)],
)
def test_an_impossible_row_is_an_error(tmp_path: Path, column: str, value: int) -> None:
    book = Book(tmp_path, "run", "p", FACTS, "producer")
    _, cells = Writer(book, SENT, "t", book.owner).next_block()
    for row in range(3):
        cells["sent_ns"][row] = cells["answered_ns"][row] = 1
        cells["partition"][row] = cells["offset"][row] = row
        cells["result"][row] = 2
    assert len(rows_of(tmp_path)) == 3
    cells[column][1] = value
    with pytest.raises(LedgerError, match="the row with sequence 1 is impossible; restore"):
        rows_of(tmp_path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damage_is_an_error_or_a_prefix(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Outside the cells; other tests damage those."""
    folder = tmp_path_factory.mktemp("damaged")
    path = write_ledger(folder, ROWS)
    whole = numbers(path)
    content = bytearray(path.read_bytes())
    schema, first, _ = block_ends(path)
    # The schema, and the descriptions in front of both blocks' cells.
    places = st.one_of(
        st.integers(0, schema + 700),
        st.integers(first, first + 700),
    )
    for place in data.draw(st.lists(places, max_size=3)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        found = numbers(path)
    except LedgerError as error:
        assert str(path) in str(error)
        assert error.hint
    else:
        assert found == whole[: len(found)]


# Parquet.


def test_parquet_with_the_same_columns_is_read_too(tmp_path: Path) -> None:
    written = tmp_path / "written"
    write_ledger(written, ROWS)
    rows = rows_of(written)
    folder = tmp_path / "other" / "run" / "java"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, SENT.logical), folder / "t-00000.parquet")
    assert rows_of(tmp_path / "other") == rows
    assert rows_of(tmp_path / "other", "t") == rows
    assert list(read_consumed(tmp_path / "other")) == []
    assert rows_of(tmp_path / "other", "nothing") == []


def test_an_invalid_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "t-00000.parquet").write_bytes(b"nonsense")
    with pytest.raises(
        LedgerError, match=r"t-00000\.parquet, byte 0: it is not a readable Parquet"
    ):
        values(tmp_path)
    pq.write_table(pa.table({"sent_ms": [1]}), tmp_path / "t-00000.parquet")
    with pytest.raises(LedgerError, match=r"it has no column run; see docs/ledger\.md"):
        values(tmp_path)


# The document.


def example() -> str:
    text = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    [found] = re.findall(r"```python\n(# Reads a ledger.*?)```", text, re.DOTALL)
    return str(found)


def test_the_example_in_the_document_reads_a_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_ledger(tmp_path, ROWS)
    torn = write_ledger(tmp_path, ROWS)
    torn.write_bytes(torn.read_bytes()[:-8])
    monkeypatch.setattr("sys.argv", ["read.py", str(tmp_path)])
    exec(compile(example(), "docs/ledger.md", "exec"), {})
    printed = capsys.readouterr().out
    rows = rows_of(tmp_path)
    assert len(rows) == ROWS + SMALLEST_BLOCK
    acked = sum(row["result"] == "acked" for row in rows)
    assert f"{len(rows)} sent, {acked} acknowledged" in printed


def test_the_document_names_every_column() -> None:
    text = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    for name in (*SENT.cells.names, *SENT.logical.names):
        assert f"`{name}`" in text, name
