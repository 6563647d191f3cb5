"""The folder for Spark's temporary files: one per process, removed at its end."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

_kept: list[Path] = []


@cache
def scratch() -> Path:
    """Created on first use."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-spark-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def log_file() -> Path:
    """The log of Spark and Java, with all stack traces."""
    return scratch() / "spark.log"


def keep_log() -> Path:
    """The log, which now survives the process; for messages that name it."""
    if not _kept:
        _kept.append(log_file())
    return log_file()


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() != owner:  # a forked child
        return
    if not _kept:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for litter in folder.iterdir():
        if litter.is_dir():
            shutil.rmtree(litter, ignore_errors=True)
