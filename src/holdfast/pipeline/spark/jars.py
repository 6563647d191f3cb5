"""The jars that Spark lacks: its Kafka connector and Delta Lake, fetched once, then used offline.

Spark ships Ivy, and Ivy has the addresses of the public jars, so no host is named here and Maven is
not needed. A jar is accepted only if its SHA-256 is the one below. A folder appears complete or not
at all; two processes that fetch do so one after the other.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.pipeline.errors import PipelineError
from holdfast.pipeline.spark.java import java_home
from holdfast.pipeline.spark.trust import write_trust_store

FOLDER_VARIABLE: Final = "HOLDFAST_SPARK_JARS"
FETCH: Final = "python -m holdfast.pipeline.spark"
FETCH_S: Final = 600


class Jar(NamedTuple):
    group: str
    name: str
    version: str
    size: int
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"


JARS: Final = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.0.0",
        467590,
        "33a3b8b04df4a2e43c9d5bf8ca5972936a1ac662f2714e014d00ef6f27468bf3",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        64975,
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.0",
        9204801,
        "15c1e137f2c2c94398e27abc4060a03b6bde10bf9fac15e8f70c02320b202f18",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.12.0",
        150048,
        "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b",
    ),
    Jar(
        "io.delta",
        "delta-spark_2.13",
        "4.0.0",
        7727374,
        "538511702aae0ef6973a6a70af3d4543c9009f8edbed786a00737e2d3cd7f04e",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.0.0",
        69732,
        "9bdb9fb450f1e119eba53feb427f331b0d09072d26485b8273883ad72c9a2e1d",
    ),
)


def folder() -> Path:
    """Their folder: beside the environment's packages, or in the user's cache without one."""
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named).absolute()
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "spark-jars"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "holdfast" / "spark-jars"


def paths() -> list[Path]:
    """All of them, checked by size only: their content was checked when they were fetched."""
    wrong = missing(folder())
    if wrong:
        raise PipelineError(
            f"Spark's jars are not in {folder()}: {', '.join(wrong)}",
            hint=f"fetch them once with '{FETCH}' ('make spark' in a checkout); "
            f"{FOLDER_VARIABLE} names another folder",
        )
    return [folder() / jar.file for jar in JARS]


def missing(where: Path) -> list[str]:
    """Names of jars that are missing or have another size."""

    def is_there(jar: Jar) -> bool:
        path = where / jar.file
        return path.is_file() and path.stat().st_size == jar.size

    return [jar.file for jar in JARS if not is_there(jar)]


def fetch() -> Path:
    """Fetch them if needed; returns the folder."""
    target = folder()
    with _alone(target):
        if missing(target):
            draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
            try:
                _retrieve(draft)
                verify(draft / "jars")
                shutil.rmtree(target, ignore_errors=True)
                (draft / "jars").rename(target)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
    return target


def verify(where: Path) -> None:
    """Raise PipelineError unless every jar is exactly the expected one."""
    for jar in JARS:
        path = where / jar.file
        if not path.is_file():
            raise PipelineError(f"{jar.file} did not arrive")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != jar.sha256:
            raise PipelineError(
                f"{jar.file} is not the expected file: its SHA-256 is {found}, not {jar.sha256}",
                hint="a proxy or mirror may have answered with something else; fetch again",
            )


def _retrieve(draft: Path) -> None:
    spark = find_spec("pyspark")
    assert spark is not None, "the caller has required pyspark first"
    assert spark.origin is not None
    [ivy] = (Path(spark.origin).parent / "jars").glob("ivy-*.jar")
    (draft / "ivy.xml").write_text(_wanted(), encoding="utf-8")
    home = java_home()
    options = [f"-Divy.default.ivy.user.dir={draft / 'ivy'}"]
    if not (home / "lib" / "security" / "cacerts").exists():
        store = draft / "trust.jks"
        write_trust_store(store)
        options += [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=JKS"]
    command = [str(home / "bin" / "java"), *options, "-jar", str(ivy)]
    command += ["-ivy", str(draft / "ivy.xml"), "-confs", "default", "-types", "jar"]
    command += ["-cache", str(draft / "cache")]
    command += ["-retrieve", str(draft / "jars" / "[artifact]-[revision].[ext]")]
    try:
        done = subprocess.run(  # noqa: S603  # Spark's own Ivy
            command, capture_output=True, text=True, check=False, timeout=FETCH_S
        )
    except subprocess.TimeoutExpired:
        raise PipelineError(f"Spark's jars did not come within {FETCH_S} s") from None
    if done.returncode:
        raise PipelineError(
            f"Spark's jars could not be fetched: {_reason(done.stdout + done.stderr)}",
            hint="this needs the network once; "
            f"or copy the files from another machine and name their folder in {FOLDER_VARIABLE}",
        )


def _wanted() -> str:
    """Ivy's list; nothing transitive, because Spark itself ships all that these jars need."""
    lines = [
        f'<dependency org="{jar.group}" name="{jar.name}" rev="{jar.version}" '
        'transitive="false" conf="default->default"/>'
        for jar in JARS
    ]
    return (
        '<ivy-module version="2.0"><info organisation="holdfast" module="spark-jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )


def _reason(output: str) -> str:
    """The first line of Ivy's long output that names the error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for sign in ("Exception", "rror", "not found"):
        matching = [line for line in lines if sign in line]
        if matching:
            return matching[0]
    return lines[0] if lines else "Ivy said nothing"


@contextmanager
def _alone(wanted: Path) -> Iterator[None]:
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        file = (wanted.parent / f".{wanted.name}.lock").open("w")
    except OSError as error:
        raise PipelineError(
            f"Spark's jars cannot be kept in {wanted}: {error.strerror}",
            hint=f"name a folder of yours in {FOLDER_VARIABLE}",
        ) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
