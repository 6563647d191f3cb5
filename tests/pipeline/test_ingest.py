"""Ingest in this process from one broker: tables, quarantine, vanished offsets."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import SparkSession

from holdfast.cluster import Cluster
from holdfast.pipeline import PipelineError
from holdfast.pipeline.ingest import Ingest, Topics, compact, history, ingest
from holdfast.pipeline.spark.failures import StreamFailedError
from tests.support import delta
from tests.support.spark import SPARKS_SOCKETS, Silent, session

pytestmark = [pytest.mark.slow, *SPARKS_SOCKETS]

FIELDS = "carrier STRING NOT NULL, delay INT"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("test ingest") as spark:
        yield spark


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1) as cluster:
        yield cluster


class World:
    """One topic and one table of a test's own."""

    def __init__(self, spark: SparkSession, cluster: Cluster, folder: Path) -> None:
        self.spark = spark
        self.cluster = cluster
        self.table = folder / "lake"
        self.topic = folder.name.replace("_", "-")
        cluster.create_topic(self.topic)
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap})

    def run(self, **more: object) -> int:
        """Rows read."""
        options: dict[str, object] = {
            "bootstrap": self.cluster.bootstrap,
            "topics": Topics.parsed(self.topic),
            "table": str(self.table),
            **more,
        }
        asked = Ingest(**options)  # type: ignore[arg-type]  # what a test says wins
        done = ingest(self.spark, asked, Silent(), threading.Event())
        assert not done.was_stopped
        return done.reading.rows

    def values(self) -> list[tuple[object, ...]]:
        return sorted(delta.rows(self.table, ("topic", "partition", "offset", "value")))


@pytest.fixture
def world(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> World:
    return World(spark, cluster, tmp_path)


def test_every_record_is_there_once_also_when_a_batch_is_played_again(world: World) -> None:
    world.cluster.produce(world.topic, ["a", "b"], key=b"k")
    assert world.run() == 2
    world.cluster.produce(world.topic, ["c"])
    assert world.run() == 1
    [*_, last] = sorted((world.table / "_checkpoint" / "commits").glob("[0-9]*"))
    last.unlink()
    world.run()
    assert world.run() == 0
    topic = world.topic
    assert world.values() == [(topic, 0, 0, b"a"), (topic, 0, 1, b"b"), (topic, 0, 2, b"c")]
    assert sorted(delta.rows(world.table, ("offset", "key", "batch_id"))) == [
        (0, b"k", 0),
        (1, b"k", 0),
        (2, None, 1),
    ]


def test_bad_values_are_kept_with_their_reason(world: World, tmp_path: Path) -> None:
    schema = tmp_path / "fields.ddl"
    schema.write_text(FIELDS)
    good = ['{"carrier": "AA", "delay": 3}', '{"carrier": "UA"}', ' {"carrier":"DL","more":[1]} ']
    bad = {
        b"nope": "the value is not JSON",
        b'{"carrier": "AA"} and more': "the value is not JSON",
        b"": "the value is not JSON",
        b"{'carrier': 'AA'}": "the value is not JSON",
        b'{"carrier": "AA", "more": \'x\'}': "the value is not JSON",
        b'{"carrier": "AA", "more": %s}' % (b"1" * 1_001): "a number has more than 1,000 digits",
        b'{"carrier": "AA", "more": -0.%s}' % (b"1" * 1_001): "a number has more than 1,000 digits",
        b'{"carrier": "AA", "carrier": "UA"}': "a key is twice in one object",
        b'{"carrier": "AA", "more": {"a": 1, "a": 2}}': "a key is twice in one object",
        b"\xff\xfe": "the value is not UTF-8",
        b'{"carrier": "AA", "delay": "late"}': "the value does not fit the schema",
        b'[{"carrier": "AA"}]': "the value does not fit the schema",
        b'{"delay": 1}': "the field carrier is missing",
    }
    world.cluster.produce(world.topic, [*good, *bad])
    assert world.run(value_format="json", schema=schema) == len(good) + len(bad)
    parsed = sorted(delta.rows(world.table, ("offset", "parsed")))
    assert parsed == [
        (0, {"carrier": "AA", "delay": 3}),
        (1, {"carrier": "UA", "delay": None}),
        (2, {"carrier": "DL", "delay": None}),
    ]
    kept = sorted(delta.rows(world.table / "_quarantine", ("offset", "value", "reason")))
    assert kept == [(3 + place, *one) for place, one in enumerate(bad.items())]


def test_new_partitions_and_new_topics_of_a_pattern_are_read_too(world: World) -> None:
    pattern = Topics.parsed(f"{world.topic}.*")
    world.cluster.produce(world.topic, ["a"])
    assert world.run(topics=pattern) == 1
    for done in world.admin.create_partitions([NewPartitions(world.topic, 2)]).values():
        done.result()
    world.cluster.wait_leader(world.topic, 1)
    world.cluster.produce(world.topic, ["b"], partition=1)
    later = f"{world.topic}-later"
    world.cluster.create_topic(later)
    world.cluster.produce(later, ["c"])
    assert world.run(topics=pattern) == 2
    topic = world.topic
    assert world.values() == [(topic, 0, 0, b"a"), (topic, 1, 0, b"b"), (later, 0, 0, b"c")]


def test_a_table_is_fed_from_one_source_only(world: World, tmp_path: Path) -> None:
    world.cluster.produce(world.topic, ["a"])
    world.run()
    other = f"{world.topic}-other"
    world.cluster.create_topic(other)
    with pytest.raises(PipelineError, match="leaves some of that out"):
        world.run(topics=Topics.parsed(other))
    schema = tmp_path / "fields.ddl"
    schema.write_text(FIELDS)
    with pytest.raises(PipelineError, match="was made for values in raw"):
        world.run(value_format="json", schema=schema)
    world.cluster.produce(other, ["b"])
    assert world.run(topics=Topics.parsed(f"{world.topic},{other}")) == 1
    checkpoint = world.table / "_checkpoint"
    checkpoint.rename(tmp_path / "elsewhere")
    with pytest.raises(PipelineError, match=r"checkpoint .* is gone"):
        world.run(topics=Topics.parsed(f"{world.topic},{other}"))
    assert len(world.values()) == 2


def test_a_topic_may_be_added_to_an_ingest_of_json(world: World, tmp_path: Path) -> None:
    schema = tmp_path / "fields.ddl"
    schema.write_text(FIELDS)
    asked = {"value_format": "json", "schema": schema}
    world.cluster.produce(world.topic, ['{"carrier": "AA"}'])
    assert world.run(**asked) == 1
    other = f"{world.topic}-other"
    world.cluster.create_topic(other)
    world.cluster.produce(other, ['{"carrier": "UA"}'])
    both = Topics.parsed(f"{world.topic},{other}")
    assert world.run(topics=both, **asked) == 1
    assert world.run(topics=both, **asked) == 0
    _damage(world)
    assert world.run(topics=both, **asked) == 0
    with pytest.raises(PipelineError, match="leaves some of that out"):
        world.run(**asked)


def _damage(world: World) -> None:
    """As older releases wrote the property when a topic was added."""
    name = "holdfast.ingest"
    detail = world.spark.sql(f"DESCRIBE DETAIL delta.`{world.table}`").collect()[0]
    value = detail["properties"][name].replace("'", "\\'")
    world.spark.sql(f"ALTER TABLE delta.`{world.table}` SET TBLPROPERTIES ('{name}' = '{value}')")
    detail = world.spark.sql(f"DESCRIBE DETAIL delta.`{world.table}`").collect()[0]
    with pytest.raises(json.JSONDecodeError):
        json.loads(detail["properties"][name])


def test_offsets_that_retention_took_are_named(world: World) -> None:
    world.cluster.produce(world.topic, ["a", "b"])
    assert world.run() == 2
    world.cluster.produce(world.topic, ["c", "d", "e"])
    below = [TopicPartition(world.topic, 0, 4)]
    for done in world.admin.delete_records(below).values():
        assert done.result().low_watermark == 4
    with pytest.raises(StreamFailedError) as caught:
        world.run()
    assert f"{world.topic}-0: offsets [2, 4) vanished before they were read" in str(caught.value)
    assert "its log now holds [4, 5); retention or DeleteRecords" in str(caught.value)
    assert "--on-data-loss continue" in str(caught.value.hint)
    world.run(stops_on_data_loss=False)
    assert [row[2] for row in world.values()] == [0, 1, 4]


def test_a_log_that_became_shorter_is_named(world: World) -> None:
    world.cluster.produce(world.topic, ["a"])
    world.cluster.flush(1)
    world.cluster.produce(world.topic, ["b", "c"])
    assert world.run() == 3
    world.cluster.power_loss(1)
    world.cluster.restart(1)
    world.cluster.wait_leader(world.topic)
    with pytest.raises(StreamFailedError) as caught:
        world.run()
    assert f"{world.topic}-0: offsets [1, 3) are in the table and no longer" in str(caught.value)
    assert "it was truncated" in str(caught.value)


def test_a_table_is_compacted_and_lists_its_history(world: World) -> None:
    for value in ("a", "b", "c"):
        world.cluster.produce(world.topic, [value])
        assert world.run() == 1
    before = world.values()
    done = compact(world.spark, str(world.table))
    assert (done["numFilesRemoved"], done["numFilesAdded"]) == (3, 1)
    assert world.values() == before
    operations = [version["operation"] for version in history(world.spark, str(world.table), 10)]
    assert operations == ["OPTIMIZE", "WRITE", "WRITE", "WRITE", "CREATE TABLE"]
    with pytest.raises(PipelineError, match="there is no Delta table at"):
        history(world.spark, str(world.table.parent), 10)


def test_what_cannot_work_is_said_before_spark_tries(world: World, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no topic flight at") as caught:
        world.run(topics=Topics.parsed("flight"))
    assert "create it first" in str(caught.value.hint)
    with pytest.raises(PipelineError, match="the brokers cannot be asked: no broker at"):
        world.run(bootstrap="127.0.0.1:1")
    for text, reason in (("carrier STRNG", "is not a schema"), ('{"type": "object"}', "schema")):
        wrong = tmp_path / "wrong"
        wrong.write_text(text)
        with pytest.raises(PipelineError, match=reason):
            world.run(value_format="json", schema=wrong)
    assert not world.table.exists()


def test_a_process_that_spark_could_not_call_back_is_reported(world: World) -> None:
    script = """
import os, sys, threading
from holdfast.pipeline import PipelineError
from holdfast.pipeline.ingest import Ingest, Topics, ingest
from tests.support.spark import Silent, session

with session("test many files") as spark:
    kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
    asked = Ingest(bootstrap=sys.argv[1], topics=Topics.parsed(sys.argv[2]), table=sys.argv[3])
    try:
        ingest(spark, asked, Silent(), threading.Event())
    except PipelineError as error:
        print(error)
"""
    asked = [world.cluster.bootstrap, world.topic, str(world.table)]
    done = subprocess.run(
        [sys.executable, "-c", script, *asked], capture_output=True, text=True, check=True
    )
    assert "cannot call back into a process with 1,024 open files" in done.stdout
