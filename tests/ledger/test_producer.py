"""LedgerProducer against the brokers inside librdkafka: acked, refused and unknown records."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from google_crc32c import value as crc32c

from holdfast.ledger import LedgerError, LedgerProducer
from holdfast.ledger.book import LARGEST_BLOCK
from tests.ledger.writing import rows_of

pytestmark = pytest.mark.slow
MOCK = {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0}
Answer = tuple[KafkaError | None, bytes | None]


def producer(folder: Path, **settings: Any) -> LedgerProducer:
    config = {name.replace("_", "."): value for name, value in settings.items()}
    return LedgerProducer({**MOCK, **config}, ledger=folder, run="run")


def test_keys_and_values_of_all_kinds(tmp_path: Path) -> None:
    sent: list[tuple[Any, Any]] = [
        (None, None),
        (b"", b""),
        ("schlüssel", "wert ☂"),
        (b"k", b"x" * 900_000),
        (b"k" * 70_000, None),
    ]
    made = producer(tmp_path)
    for key, value in sent:
        made.produce("t", value, key, headers=[("h", b"1")], timestamp=5)
    assert made.flush(60) == 0
    rows = rows_of(tmp_path)
    for (key, value), row in zip(sent, rows, strict=True):
        assert row["result"] == "acked"
        for name, given in (("key", key), ("value", value)):
            octets = given.encode() if isinstance(given, str) else given
            assert row[f"{name}_len"] == (None if octets is None else len(octets))
            assert row[f"{name}_crc"] == (None if octets is None else crc32c(octets))


def test_an_answer_says_where_and_when(tmp_path: Path) -> None:
    made = producer(tmp_path)
    delivered: list[Message] = []
    for number in range(3 * LARGEST_BLOCK):
        made.produce(
            "t",
            b"%d" % number,
            partition=number % 3,
            callback=lambda _, message: delivered.append(message),
        )
        made.poll(0)
    assert made.flush(60) == 0
    rows = rows_of(tmp_path)
    assert len(rows) == len(delivered) == 3 * LARGEST_BLOCK
    where = {message.value(): (message.partition(), message.offset()) for message in delivered}
    for number, row in enumerate(rows):
        assert (row["partition"], row["offset"]) == where[b"%d" % number]
        assert row["partition_asked"] == number % 3
        assert row["sent_ms"] <= row["acked_ms"]
        assert row["error"] is None


def test_callbacks_are_called_as_before(tmp_path: Path) -> None:
    delivered: list[Any] = []
    default = lambda _, message: delivered.append(("default", message))  # noqa: E731
    made = LedgerProducer(MOCK, ledger=tmp_path, on_delivery=default)
    made.produce("t", b"1")
    made.produce(
        "t", b"2", on_delivery=lambda _, message: delivered.append(("on_delivery", message))
    )
    made.produce("t", b"3", callback=lambda _, message: delivered.append(("callback", message)))
    made.flush(60)
    assert sorted((name, message.value()) for name, message in delivered) == [
        ("callback", b"3"),
        ("default", b"1"),
        ("on_delivery", b"2"),
    ]


def test_a_callback_that_raises_is_reported_and_its_row_is_whole(tmp_path: Path) -> None:
    def delivered(_: Any, __: Any) -> None:
        raise RuntimeError("no")

    made = producer(tmp_path)
    made.produce("t", b"1", on_delivery=delivered)
    with pytest.raises(RuntimeError, match="no"):
        made.flush(60)
    assert [row["result"] for row in rows_of(tmp_path)] == ["acked"]


def test_it_is_a_producer(tmp_path: Path) -> None:
    made = producer(tmp_path)
    assert isinstance(made, Producer)
    assert len(made) == 0
    assert "mock" not in made.list_topics(timeout=60).topics
    assert made.ledger.parent == tmp_path / "run"


def test_a_full_queue_leaves_no_row(tmp_path: Path) -> None:
    made = producer(tmp_path, queue_buffering_max_messages=2, linger_ms=100_000)
    made.produce("t", b"1")
    made.produce("t", b"2", b"key", partition=0)
    for _ in range(2 * LARGEST_BLOCK):
        with pytest.raises(BufferError):
            made.produce("t", b"lost", b"key", partition=0)
    assert made.flush(60) == 0
    made.produce("t")
    assert made.flush(60) == 0
    rows = rows_of(tmp_path)
    assert [row["result"] for row in rows] == ["acked"] * 3
    last = rows[-1]
    assert (last["key_len"], last["value_len"], last["partition_asked"]) == (None, None, None)
    assert last["key_crc"] is None
    assert rows[2]["sequence"] == 2


def test_a_record_that_produce_refuses_is_refused(tmp_path: Path) -> None:
    made = producer(tmp_path)
    with pytest.raises(KafkaException):
        made.produce("t", b"x" * 2_000_000)
    with pytest.raises(TypeError):
        made.produce("t", 5)  # type: ignore[arg-type]
    [row] = rows_of(tmp_path)
    assert (row["result"], row["error"]) == ("refused", KafkaError.MSG_SIZE_TOO_LARGE)
    assert (row["offset"], row["value_len"]) == (None, 2_000_000)


def test_a_time_out_is_not_an_answer(tmp_path: Path) -> None:
    delivered: list[Answer] = []
    config = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 10, "log_level": 0}
    made = LedgerProducer(config, ledger=tmp_path)
    made.produce(
        "t", b"1", on_delivery=lambda error, message: delivered.append((error, message.value()))
    )
    assert made.flush(60) == 0
    [(error, value)] = delivered
    assert error is not None
    assert (error.code(), value) == (KafkaError._MSG_TIMED_OUT, b"1")
    [row] = rows_of(tmp_path)
    assert (row["result"], row["error"], row["acked_ms"]) == ("unknown", error.code(), None)


def test_nothing_is_acknowledged_without_acks(tmp_path: Path) -> None:
    made = producer(tmp_path, acks=0)
    for _ in range(2 * LARGEST_BLOCK):
        made.produce("t", b"1")
    assert made.flush(60) == 0
    rows = rows_of(tmp_path)
    assert len(rows) == 2 * LARGEST_BLOCK
    assert {(row["result"], row["offset"], row["acks"]) for row in rows} == {("unknown", None, 0)}


@pytest.mark.parametrize(
    ("settings", "acks", "idempotent"),
    [
        ({}, -1, False),
        ({"acks": "all"}, -1, False),
        ({"acks": 1}, 1, False),
        ({"request_required_acks": "1"}, 1, False),
        ({"default.topic.config": {"acks": "0"}}, 0, False),
        ({"enable_idempotence": True}, -1, True),
        ({"transactional_id": "x"}, -1, True),
    ],
)
def test_run_json_records_acks_and_idempotence(
    tmp_path: Path, settings: dict[str, Any], acks: int, idempotent: bool
) -> None:
    made = producer(tmp_path, **settings)
    about = (made.ledger / "run.json").read_text(encoding="utf-8")
    assert f'"acks": {acks}' in about
    assert f'"idempotent": {str(idempotent).lower()}' in about


def test_answers_must_not_be_hidden(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"delivery\.report\.only\.error hides .*; leave it out"):
        producer(tmp_path, delivery_report_only_error=True)
    assert list(tmp_path.iterdir()) == []


def test_a_batch_is_recorded_record_by_record(tmp_path: Path) -> None:
    made = producer(tmp_path, queue_buffering_max_messages=3, linger_ms=100_000)
    delivered: list[bytes | None] = []
    messages: list[dict[str, Any]] = [{"value": b"%d" % number} for number in range(5)]
    messages[1]["callback"] = lambda _, message: delivered.append(message.value())
    messages[2]["partition"] = 1
    assert made.produce_batch("t", messages) == 3
    assert [one["_error"].code() for one in messages[3:]] == [KafkaError._QUEUE_FULL] * 2
    assert made.flush(60) == 0
    assert delivered == [b"1"]
    rows = rows_of(tmp_path)
    assert [(row["result"], row["partition_asked"]) for row in rows] == [
        ("acked", None),
        ("acked", None),
        ("acked", 1),
    ]


def test_many_topics_and_threads(tmp_path: Path) -> None:
    made = producer(tmp_path)

    def send(number: int) -> None:
        for count in range(600):
            made.produce(f"t{count % 10}", b"%d %d" % (number, count), partition=0)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.flush(60) == 0
    rows = rows_of(tmp_path)
    assert len(rows) == 2400
    assert len({row["sequence"] for row in rows}) == 2400
    assert len({row["producer"] for row in rows}) == 4
    crcs = sorted(crc32c(b"%d %d" % (number, count)) for number in range(4) for count in range(600))
    assert sorted(row["value_crc"] for row in rows) == crcs
    for name in {row["producer"] for row in rows}:
        for topic in range(10):
            mine = [r["offset"] for r in rows if (r["producer"], r["topic"]) == (name, f"t{topic}")]
            assert mine == sorted(mine)
            assert len(mine) == 60


def test_two_producers_share_a_run(tmp_path: Path) -> None:
    first, second = producer(tmp_path), producer(tmp_path)
    for made in (first, second):
        made.produce("t", b"1")
        assert made.flush(60) == 0
    rows = rows_of(tmp_path)
    assert len({row["producer"] for row in rows}) == len(rows) == 2


def test_the_missing_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import holdfast.ledger\n"
        "try: holdfast.ledger.LedgerProducer\n"
        "except holdfast.ledger.LedgerError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        'holdfast.ledger.LedgerProducer needs the package pyarrow; pip install "holdfast[ledger]"\n'
    )
