"""Programs of the clients in other languages: built once, cached, then used offline.

If a program is not available, its test is skipped with the reason. Packages come from the sources
that the machine's own tools are configured for.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.protocol.schemas import cache_folder
from tests.unit.storage import kafka

HERE = Path(__file__).parent
MAKE_S = 900.0
KCAT_PACKAGES = ("kcat", "librdkafka1", "libyajl2")


class Kcat(NamedTuple):
    """The program and the environment for its libraries."""

    path: str
    environment: Mapping[str, str]


def _put(draft: Path, folder: Path) -> None:
    """Rename a draft, unless another worker was faster."""
    try:
        draft.rename(folder)
    except OSError:
        if not folder.exists():
            raise


@cache
def kcat() -> Kcat:
    """Debian's; where it is missing, unpacked into the cache, not installed."""
    found = shutil.which("kcat")
    if found is not None:
        return Kcat(found, dict(os.environ))
    root = cache_folder() / "kcat"
    if not root.exists():
        _need("apt-get", "dpkg")
        with _draft(root) as draft:
            _run(["apt-get", "download", "-qq", *KCAT_PACKAGES], draft)
            for package in draft.glob("*.deb"):
                _run(["dpkg", "-x", str(package), str(draft)], draft)
                package.unlink()
            _put(draft, root)
    libraries = ":".join(str(path) for path in (root / "usr/lib").iterdir())
    return Kcat(str(root / "usr/bin/kcat"), {**os.environ, "LD_LIBRARY_PATH": libraries})


@cache
def franz_go() -> str:
    """go/*.go, built."""
    program = cache_folder() / f"franz-go-{_digest('go')}"
    if not program.exists():
        _need("go")
        program.parent.mkdir(parents=True, exist_ok=True)
        building = program.with_suffix(f".{os.getpid()}")
        _run(["go", "build", "-mod=readonly", "-o", str(building), "."], HERE / "go")
        building.rename(program)
    return str(program)


@cache
def kafkajs() -> Sequence[str]:
    """js/main.js with its packages."""
    _need("node")
    folder = cache_folder() / f"kafkajs-{_digest('js')}"
    if not folder.exists():
        _need("npm")
        with _draft(folder) as draft:
            for file in (HERE / "js").iterdir():
                if file.is_file():
                    shutil.copy(file, draft)
            _run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], draft)
            _put(draft, folder)
    return ("node", str(folder / "main.js"))


@cache
def java_tools() -> Sequence[str]:
    """java/Tools.java with Kafka's jars."""
    _need("javac")
    jars = kafka.libraries()
    folder = cache_folder() / f"java-tools-{_digest('java')}"
    if not folder.exists():
        with _draft(folder) as draft:
            source = str(HERE / "java" / "Tools.java")
            _run(["javac", "-d", str(draft), "-cp", f"{jars}/*", source], draft)
            _put(draft, folder)
    command = kafka.java("Tools")
    command[command.index("-cp") + 1] = f"{folder}:{jars}/*"
    return command


def _digest(folder: str) -> str:
    """A digest of the sources, so that a change builds again."""
    found = hashlib.sha256()
    for file in sorted((HERE / folder).iterdir()):
        if file.is_file():
            found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:16]


def _need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here")


class _draft:  # noqa: N801 - used as `tempfile.TemporaryDirectory` is
    """A folder beside the final one: an incomplete build never looks complete."""

    def __init__(self, wanted: Path) -> None:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        self._path = Path(tempfile.mkdtemp(prefix=f"{wanted.name}.", dir=wanted.parent))

    def __enter__(self) -> Path:
        return self._path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=MAKE_S
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-500:]
        pytest.skip(f"'{' '.join(command[:3])}' failed: {said}")
