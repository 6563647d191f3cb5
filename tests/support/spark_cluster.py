"""Spark's standalone master and two workers, from the pip package: a small cluster."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from holdfast.cluster.processes.ports import HOST
from holdfast.pipeline.spark.java import java_home
from tests.support.waiting import wait_until

HOME = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"
WORKERS = 2
PATIENCE_S = 600.0
DRIVER = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": "512m",
}
"""For sessions on it: everything stays on this machine."""


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """The master's address; all processes end with the block."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, sign: str, *args: str) -> str:
        """Returns the word after the sign in its log."""
        log = folder / f"{name}.log"
        own = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        processes.append(_started([*args[:1], *own, *args[1:]], log))
        wait_until(lambda: f"{sign} " in log.read_text(), f"{sign}: {log}", PATIENCE_S)
        return log.read_text().split(f"{sign} ")[1].split()[0]

    try:
        address = start("master", "Starting Spark master at", f"{DEPLOY}.master.Master")
        for number in range(WORKERS):
            worker = [f"{DEPLOY}.worker.Worker", "--cores", "1", "--memory", "600m"]
            work = ["--work-dir", str(folder / "work"), address]
            start(f"worker-{number}", "Successfully registered with master", *worker, *work)
        yield address
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _started(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    # In the pip package Spark logs warnings only, and we wait for a line at a lower level.
    settings = log.with_suffix(".properties")
    settings.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %p %m%n\n"
    )
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_JAVA_OPTS": f"-Dlog4j2.configurationFile={settings}",
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *command],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
