"""After a bare `pip install`: a command says which extra it needs, before it starts anything."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast.cli.extras import MODULES

ROOT = Path(__file__).parents[3]
BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""
DISTRIBUTIONS = {"delta": "delta-spark", "py4j": "pyspark"}
"""Where a module is not called as what brings it."""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Without any package of an extra, as if none were installed."""
    modules = {name for names in MODULES.values() for name in names} | {"pandas", "uvloop"}
    (folder / "sitecustomize.py").write_text(BLOCKER.format(modules=modules))
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("demo", ("demo",)),
        ("ledger", ("chaos", "--minutes", "0.1")),
        ("zookeeper", ("up", "--zookeeper", "127.0.0.1:1", "--ephemeral", "--detach")),
        ("spark", ("ingest", "-b", "127.0.0.1:1", "--topic", "t", "--table", "t")),
        ("spark", ("table", "history", "t")),
        ("spark", ("audit", "run", "--ledger", ".", "--logs", "b1=.")),
        ("spark", ("lab", "search", "--spark", "local[1]")),
        ("search", ("lab", "spec", "kip320")),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_a_command_names_its_extra_before_it_starts_anything(
    tmp_path: Path, extra: str, arguments: tuple[str, ...]
) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 64, done.stderr
    [line] = done.stderr.splitlines()
    assert f"pip install 'holdfast[{extra}]'" in line
    left = {one.name for one in tmp_path.iterdir()} - {"sitecustomize.py", "__pycache__"}
    assert not left


def test_a_bare_install_runs_a_cluster_and_the_lab(tmp_path: Path) -> None:
    assert run(tmp_path, "lab", "run", "loss-restart-truncation").returncode == 0
    assert run(tmp_path, "server", "config").returncode == 0
    assert run(tmp_path, "topics", "list", "-b", "127.0.0.1:1").returncode == 69


def test_the_extras_bring_what_the_commands_ask_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]

    def brought(extra: str) -> set[str]:
        found: set[str] = set()
        for wanted in extras[extra]:
            name = wanted.partition("==")[0].partition(";")[0].strip()
            if name.startswith("holdfast["):
                inner = name.removeprefix("holdfast[").removesuffix("]").split(",")
                found |= {one for part in inner for one in brought(part)}
            else:
                found.add(name)
        return found

    for extra, modules in MODULES.items():
        wanted = {DISTRIBUTIONS.get(one, one.replace("_", "-")) for one in modules}
        assert wanted <= brought(extra), extra
    assert brought("all") == {name for extra in extras if extra != "all" for name in brought(extra)}
