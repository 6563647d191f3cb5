"""A test's own time limit only ever lengthens the common one, which catches what hangs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_test_has_a_shorter_limit_than_all_the_others() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    common = int(project["tool"]["pytest"]["timeout"])
    shorter = [
        f"{path.relative_to(ROOT)}: {limit}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for limit in re.findall(r"mark\.timeout\(([\d_]+)\)", path.read_text(encoding="utf-8"))
        if int(limit.replace("_", "")) <= common
    ]
    assert not shorter
