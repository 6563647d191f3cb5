"""Simulated brokers compact under faults, and the checks find a compaction that loses a key."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.simulation import SimulatedCluster, simulate
from holdfast.simulation.clients.offset_committer import Committer
from holdfast.simulation.compaction import OFFSETS
from holdfast.simulation.disk.byte_disk import Fault
from holdfast.simulation.traffic_pace import Pace
from holdfast.storage.cleaner import compaction

PLAN = {
    "faults": ("kill", "kill-in-write", "power-loss", "disk-error"),
    "is_rolling": True,
    "is_restarted": True,
    "fault_every_ms": 500,
    "duration_ms": 60_000,
}
WITHIN = 4
"""At least one of so many seeds must find the bug."""


@pytest.mark.slow
def test_brokers_compact_under_faults() -> None:
    for seed in range(WITHIN):
        run = simulate(seed, PLAN)
        assert run.failures == ()
        assert run.compactions > 5, run.plan.summary
        assert any(event.kind == "crashed" for event in run.events)


def lossy(self: Any, records: list[Any], _: Any) -> list[Any]:
    """A cleaner that loses the last record of a key on every broker."""
    last = self.keys.last_offset
    return [one for one in records if one.key is not None and one.offset > last(one.key)]


def sometimes_lossy(self: Any, records: list[Any], horizon: Any) -> list[Any]:
    """A cleaner that loses it on some brokers."""
    return (lossy if self.now_ms % 2 else KEPT)(self, records, horizon)


KEPT = compaction.Sieve._kept


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "finds"),
    [(lossy, "the offset of readers-"), (sometimes_lossy, "differ in the last record")],
)
def test_a_compaction_that_loses_the_last_record_of_a_key_is_found(
    kept: Any, finds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction.Sieve, "_kept", kept)
    found = [one for seed in range(WITHIN) for one in simulate(seed, PLAN).failures]
    assert any(finds in one for one in found), found


def test_a_log_that_the_cleaner_cannot_read_fails_alone() -> None:
    """Found by seed 110: an error ended the cleaner's timer for all logs."""
    cluster = SimulatedCluster(1, 3, {"log.roll.ms": "1000"})
    [events] = cluster.start("events", 1)
    pace = Pace(1, cluster.timeline.now_s, 60.0)
    cluster.spawn(Committer(cluster.client("committer"), events).run(pace))
    cluster.timeline.run_for(20.0)
    state = cluster.state(OFFSETS)
    assert state is not None
    machine = next(one for one in cluster.machines.values() if one.number != state.leader)
    machine.kill()
    machine.start()
    assert cluster.timeline.run_until(lambda: machine.is_ready, 60.0)
    machine.disk.faults.append(Fault("read", OFFSETS.topic))
    cluster.timeline.run_for(20.0)  # log.cleaner.backoff.ms is 15 s.
    offline = [one.partition for one in cluster.recording.events if one.kind == "went-offline"]
    cluster.close()
    assert offline == [str(OFFSETS)]
    assert not cluster.recording.bugs
