"""Three machines, each with its own address, and a network that the kernel itself breaks.

A broker and a server of the ZooKeeper ensemble on each; the same chaos, the same check.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import namespaces, zookeeper
from tests.support.machines import chaos_on_machines

pytestmark = pytest.mark.long


def test_chaos_on_three_machines_loses_nothing(tmp_path: Path) -> None:
    if reason := namespaces.why_missing() or zookeeper.why_missing():
        pytest.skip(reason)
    report, said = chaos_on_machines(tmp_path, seed=2026, seconds=120)
    assert report, said
    wrong = {name: report[name] for name in ("counts", "problems")}
    assert report["exit_code"] == 0, f"{wrong}\n{said}"
    verdict = report["audit"]["verdict"]
    assert verdict["acked"] > 1000, "a run that exercised nothing"
    assert verdict["in_consumed"] == verdict["in_truth"]
