"""An ingest from start to end: checks, prepares, streams, reports."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from holdfast.pipeline.errors import PipelineError
from holdfast.pipeline.ingest.missing_offsets import vanished
from holdfast.pipeline.ingest.options import Ingest
from holdfast.pipeline.ingest.stream import Stream
from holdfast.pipeline.ingest.tables import prepare
from holdfast.pipeline.ingest.topics import cluster_of
from holdfast.pipeline.ingest.values import read_schema
from holdfast.pipeline.spark.failures import causes, readable_failure
from holdfast.pipeline.spark.progress import Listener, Meter, Reading
from holdfast.pipeline.spark.session import require_callback_server

LOOK_S: Final = 1
LAST_WORDS_S: Final = 10.0
"""How long the listener may take to report the last batch."""


@dataclass(frozen=True, slots=True)
class Summary:
    reading: Reading
    was_stopped: bool
    """Stopped before it was done."""


def ingest(spark: SparkSession, asked: Ingest, meter: Meter, stop: threading.Event) -> Summary:
    """Until all is in the table, or until `stop` is set; PipelineError if it cannot go on."""
    fields = _fields(asked)
    cluster = cluster_of(asked.bootstrap, asked.topics)
    listener = Listener()
    stream = Stream(asked, fields)
    require_callback_server(spark)
    try:
        prepare(spark, asked, cluster, fields)
        spark.streams.addListener(listener)
        try:
            was_stopped = _watch(stream.start(spark), listener, meter, stop)
            listener.ended.wait(LAST_WORDS_S)
        finally:
            meter.close()
            with suppress(Py4JError, ConnectionError):  # Java may have ended
                spark.streams.removeListener(listener)
    except (Py4JError, PySparkException, ConnectionError) as error:
        # The batch knows the cause of its failure better than the query around it.
        cause = stream.failure or error
        gone = vanished(asked, causes(cause))
        raise (gone or readable_failure(cause, f"the ingest into {asked.table} stopped")) from error
    return Summary(listener.reading, was_stopped)


def _fields(asked: Ingest) -> StructType | None:
    if asked.value_format == "raw":
        if asked.schema is not None:
            raise PipelineError("raw values have no schema", hint="add --value-format json")
        return None
    if asked.schema is None:
        raise PipelineError(
            "json values need a schema", hint="name a file with --schema, as 'delay INT'"
        )
    return read_schema(asked.schema)


def _watch(query: StreamingQuery, listener: Listener, meter: Meter, stop: threading.Event) -> bool:
    """Whether it was stopped; raises the query's own failure."""
    while not query.awaitTermination(LOOK_S):
        meter.show(listener.reading)
        if stop.is_set():
            query.stop()
            return True
    meter.show(listener.reading)
    return False
