"""The parent of Spark's Python workers: pyspark's own, with pyspark from its folder, not its zip.

Spark puts pyspark.zip, and a jar, in front of a worker's path. Before every task a worker clears
the caches of its path (`importlib.invalidate_caches`), and for each package of a zip Python 3.11
then reads the zip's whole directory again: 0.15 s of processor time per task. An installed pyspark
of the same Spark has the same code in plain files.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder


def _without_zips(path: list[str]) -> list[str]:
    """The path without Spark's zips, if their content is also installed."""
    plain = [one for one in path if not one.endswith((".zip", ".jar"))]
    is_installed = all(PathFinder.find_spec(name, plain) for name in ("pyspark", "py4j"))
    return plain if is_installed else path


if __name__ == "__main__":
    sys.path[:] = _without_zips(sys.path)
    from pyspark.daemon import manager

    manager()  # type: ignore[no-untyped-call]
