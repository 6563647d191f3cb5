"""Kafka's own message schemas, from the kafka-clients jars. Fetched once, never committed.

Maven fetches the jars, from its configured repositories, into a folder that is kept:
HOLDFAST_CACHE, or one inside the environment that runs the tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.kafka_jars import alone

CURRENT = "4.4.0"
LAST_WITH_CONTROL = "3.9.1"
"""The last line of releases whose controllers sent LeaderAndIsr and its like."""

COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
FETCH_SECONDS = 240


def cache_folder() -> Path:
    return Path(os.environ.get("HOLDFAST_CACHE", Path(sys.prefix) / "holdfast-cache"))


@cache
def jar(release: str) -> Path:
    """The jar of a release; skips the test, with the reason, if it is not available."""
    path = cache_folder() / f"kafka-clients-{release}.jar"
    with alone(path):
        if not path.exists():
            _fetch(path, release)
    return path


def _fetch(path: Path, release: str) -> None:
    if shutil.which("mvn") is None:
        pytest.skip(f"no mvn to fetch {path.name} with, and none in {path.parent}")
    command = ["mvn", "-q", "-B", "dependency:copy", f"-DoutputDirectory={path.parent}"]
    command += [f"-Dartifact=org.apache.kafka:kafka-clients:{release}"]
    done = subprocess.run(
        command, cwd=path.parent, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
    )
    if done.returncode or not path.exists():
        pytest.skip(f"mvn could not fetch {path.name}: {done.stdout.strip()[:500]}")


@cache
def schema(release: str, name: str) -> Any:
    """One schema, such as "FetchRequest". They are JSON with comments."""
    with zipfile.ZipFile(jar(release)) as archive:
        return read_schema(archive, name)


def read_schema(archive: zipfile.ZipFile, name: str) -> Any:
    """The same out of any of Kafka's jars."""
    text = archive.read(f"common/message/{name}.json").decode()
    return json.loads(COMMENT.sub("", text))
