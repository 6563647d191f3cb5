"""A Spark session: quiet, offline, on this machine by default, and without leftover files.

Spark writes into the working directory if it may (warehouse, artifacts, local blocks), and prints
on stderr. Here all of that goes into one scratch folder, removed when the process ends; only a
failure keeps the log (`keep_log`). The caller's settings override all of these. The Java process
starts with the first session and ends with this process, so driver settings (memory, Java options)
of a second session come too late; Spark reports that itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast.pipeline.errors import PipelineError
from holdfast.pipeline.spark import jars
from holdfast.pipeline.spark.ending import stop
from holdfast.pipeline.spark.executor_wait import WaitingForExecutors
from holdfast.pipeline.spark.failures import readable_failure
from holdfast.pipeline.spark.java import java_home
from holdfast.pipeline.spark.scratch import log_file, scratch

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

MASTER: Final = "local[*]"
LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""On one machine no other process needs to reach the driver; a cluster's workers do."""
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Otherwise Delta reads its own log with 50 tasks per batch.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.shuffle.partitions": "16",
    # A third of the usual cost of an empty Python task.
    "spark.python.daemon.module": "holdfast.pipeline.spark.daemon",
    # Without checksum files: one that remains after its file blocks the next checkpoint.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    # One time zone in tables, whatever the machine's.
    "spark.sql.session.timeZone": "UTC",
}

QUICK: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For jobs of seconds on one machine: a Java that starts twice as fast and never gets as fast."""

PYTHON: Final = "PYSPARK_PYTHON"
SELECTABLE: Final = 1024
"""Py4J waits with select(2), which takes no higher descriptor, and fails silently at one."""


@contextmanager
def running(
    app: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[SparkSession]:
    """A session that ends with the block; a failure of Spark is a PipelineError.

    `say` is called when Spark has no executor. Within the block Ctrl-C belongs to pyspark, which
    cancels all jobs; after it Ctrl-C is what it was.
    """
    on_interrupt = signal.getsignal(signal.SIGINT)
    spark = session(app, master=master, conf=conf)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with WaitingForExecutors(spark, say):
            yield spark
    except (Py4JError, PySparkException, ConnectionError) as error:
        # A broken connection is one to Java: there is no other here.
        raise readable_failure(error, "Spark could not go on") from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)
        stop(spark)


def session(
    app: str, *, master: str | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A new session; PipelineError says what is missing. One at a time in a process."""
    require_pyspark()
    settings = _settings(app, master or MASTER, conf or {})
    os.environ["JAVA_HOME"] = str(java_home())
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    wanted = SparkConf().setAll(list(settings.items()))
    try:
        with _python_of_workers(settings):
            gateway = SparkContext._gateway or _launched(wanted)
            context = SparkContext(conf=wanted, gateway=gateway)
            _keep_accumulators_silent(context)
            return SparkSession(context)
    except (Py4JError, PySparkException) as error:
        raise readable_failure(error, "Spark did not start") from error


@contextmanager
def _python_of_workers(settings: Mapping[str, str]) -> Iterator[None]:
    """Pyspark takes it only from the environment, and ignores spark.pyspark.python."""
    before = os.environ.get(PYTHON)
    # Otherwise workers use any "python3", and lack pyarrow.
    os.environ[PYTHON] = settings.get("spark.pyspark.python") or before or sys.executable
    try:
        yield
    finally:
        del os.environ[PYTHON]
        if before is not None:
            os.environ[PYTHON] = before


def _keep_accumulators_silent(context: SparkContext) -> None:
    """When Java dies, pyspark's accumulator server prints a traceback on stderr."""
    server: Any = context._accumulatorServer
    server.handle_error = lambda *_: None


def require_callback_server(spark: SparkSession) -> None:
    """Let Spark call back; PipelineError where it would wait for our answer for ever."""
    from pyspark.java_gateway import ensure_callback_server_started

    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    if gateway._callback_server.server_socket.fileno() >= SELECTABLE:
        raise PipelineError(
            f"Spark cannot call back into a process with {SELECTABLE:,} open files and more",
            hint="close some, or let 'holdfast ingest' run as a process of its own",
        )


def require_pyspark() -> None:
    """PipelineError unless the extra is installed."""
    if find_spec("pyspark") is None:
        raise PipelineError("this needs pyspark", hint="pip install 'holdfast[spark]'")


def _settings(app: str, master: str, conf: Mapping[str, str]) -> dict[str, str]:
    more = [conf["spark.jars"]] if conf.get("spark.jars") else []
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    return {
        **SETTINGS,
        **(LOCAL if master.startswith("local") else {}),
        "spark.app.name": app,
        "spark.master": master,
        "spark.sql.warehouse.dir": str(scratch() / "warehouse"),
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={log4j} "
        f"-Dholdfast.spark.log={log_file()}",
        **conf,
        # The caller's in addition to ours, not instead of them.
        "spark.jars": ",".join([*(str(path) for path in jars.paths()), *more]),
    }


def _launched(wanted: SparkConf) -> JavaGateway:
    from pyspark.java_gateway import launch_gateway

    # Java prints before its logging is set up; keep that off the terminal.
    with log_file().open("ab") as log:
        gateway: JavaGateway = launch_gateway(  # type: ignore[no-untyped-call]
            wanted, {"stdout": log, "stderr": log}
        )
    _move_artifacts(gateway)
    return gateway


def _move_artifacts(gateway: JavaGateway) -> None:
    """Spark 4.0.0 mistakes a prefix for a folder and creates "artifacts" in the working directory.

    No setting moves it. Its value is computed on first use, so this must come first. A newer Spark
    no longer needs it: the test for leftover files shows that.
    """
    jvm = gateway.jvm
    owner = jvm.java.lang.Class.forName("org.apache.spark.sql.artifact.ArtifactManager$")
    for field, value in (
        ("artifactRootDirectory", jvm.java.io.File(str(scratch() / "artifacts")).toPath()),
        ("bitmap$0", True),
    ):
        known = owner.getDeclaredField(field)
        known.setAccessible(True)
        known.set(None, value)
