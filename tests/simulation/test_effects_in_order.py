"""Nothing leaves a broker before what it depends on: every kind of effect, on real brokers.

`effects.py` has the contract. The real driver (`Partition.run`) carries out effects in simulated
clusters with slow disks and faults. Before and after each effect the test reads the simulated
disks: what is written, and what a power failure can no longer remove.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest

from holdfast.broker.replication import replicas
from holdfast.broker.replication.partition import Partition
from holdfast.core import (
    Acknowledge,
    ConsiderExpand,
    Effect,
    Flush,
    HighWatermarkMoved,
    IsrApplied,
    Leader,
    ProposeIsr,
    Refuse,
    Replica,
    TruncateTo,
    WakeFetch,
    WriteEpoch,
)
from holdfast.lab import build
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.records import batches
from holdfast.simulation import SimulatedCluster, run, simulate
from holdfast.simulation.disk.byte_disk import ByteDisk, DirectoryNode, FileNode
from holdfast.simulation.run import TOPIC
from holdfast.storage.file_names import RECOVERY_POINTS

EPOCHS = "leader-epoch-checkpoint"
Check = Callable[..., None]


class Copy:
    """One replica's files on its disk."""

    def __init__(self, disk: ByteDisk, name: TopicPartition) -> None:
        self._name = name
        self._node = self._parent = DirectoryNode()
        for directory in disk.root.visible.values():
            node = (
                directory.visible.get(str(name)) if isinstance(directory, DirectoryNode) else None
            )
            if isinstance(node, DirectoryNode) and isinstance(directory, DirectoryNode):
                self._node, self._parent = node, directory

    def written_end(self) -> int:
        return self._end(self._node.visible, lambda file: bytes(file.visible))

    def durable_end(self) -> int:
        """The end offset that a power failure cannot reduce."""
        return self._end(self._node.flushed, lambda file: file.flushed)

    @staticmethod
    def _end(names: dict[str, Any], content: Callable[[FileNode], bytes]) -> int:
        end = 0
        for name in sorted(one for one in names if one.endswith(".log")):
            base = int(name.removesuffix(".log"))
            if base > end and end:
                break  # A hole: recovery stops here.
            end = max(end, base)
            for batch in batches(content(names[name]), partial_end=True):
                end = batch.header.end_offset
        return end

    def durable_epochs(self) -> list[int]:
        file = self._node.flushed.get(EPOCHS)
        lines = file.flushed.decode().splitlines()[2:] if isinstance(file, FileNode) else []
        return [int(line.split()[0]) for line in lines]

    def durable_recovery_point(self) -> int:
        """The offset from which opening the log reads the epochs from the batches."""
        file = self._parent.flushed.get(RECOVERY_POINTS)
        lines = file.flushed.decode().splitlines()[2:] if isinstance(file, FileNode) else []
        points = {tuple(line.split()[:2]): int(line.split()[2]) for line in lines}
        return points.get((self._name.topic, str(self._name.partition)), 0)


class Watch:
    """Checks every effect that a real `Partition` carries out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, flush_messages: int) -> None:
        self._flush_messages = flush_messages
        self._cluster: SimulatedCluster | None = None
        self.seen: Counter[type] = Counter()
        self.broken: list[str] = []
        original = Partition.run

        def watched(partition: Partition, effects: tuple[Effect, ...]) -> None:
            for effect in effects:
                self.seen[type(effect)] += 1
                self._look(BEFORE, partition, effect)
                original(partition, (effect,))
                self._look(AFTER, partition, effect)

        def made(*given: Any, **more: Any) -> SimulatedCluster:
            self._cluster = SimulatedCluster(*given, **more)
            return self._cluster

        monkeypatch.setattr(Partition, "run", watched)
        monkeypatch.setattr(run, "SimulatedCluster", made)

    def _look(self, checks: dict[type, Check], partition: Partition, effect: Effect) -> None:
        check = checks.get(type(effect))
        if check is not None:
            check(self, partition, effect)

    def play(self, seed: int, **plan: Any) -> None:
        played = simulate(seed, {"flush_messages": self._flush_messages, **plan})
        assert played.acknowledged, "the run exercised nothing"

    def _check(self, is_right: bool, partition: Partition, what: str) -> None:
        if not is_right:
            self.broken.append(f"b{partition.replica.broker} {partition.name}: {what}")

    def _copy(self, broker: int, name: TopicPartition) -> Copy:
        assert self._cluster is not None
        return Copy(self._cluster.machines[broker].disk, name)

    def _unflushed(self, partition: Partition) -> int:
        """The number of acknowledged records that may be missing from a disk."""
        if not self._flush_messages:
            return 1 << 62
        return self._flush_messages - 1 if partition.name.topic == TOPIC else 0

    def _holds(self, broker: int, partition: Partition, end: int, what: str) -> None:
        """Check that the replica has everything below `end`, and has flushed what it must."""
        copy = self._copy(broker, partition.name)
        durable = copy.durable_end()
        is_flushed = durable >= end - self._unflushed(partition)
        self._check(is_flushed, partition, f"{what}, b{broker} has {durable} on its disk")

    # What each kind of effect depends on.

    def acknowledged(self, partition: Partition, effect: Acknowledge) -> None:
        own = partition.replica.broker
        found = batches(partition.read(effect.base_offset, 1 << 20, 1 << 62))
        header = next(batch.header for batch in found)
        end = header.end_offset
        written = self._copy(own, partition.name).written_end()
        self._check(written >= end, partition, f"acknowledges {end}, has written {written}")
        self._holds(own, partition, end, f"acknowledges {end}")
        copy = self._copy(own, partition.name)
        is_known = header.leader_epoch in copy.durable_epochs()  # maybe an earlier one
        is_found = effect.base_offset >= copy.durable_recovery_point()
        self._check(is_known or is_found, partition, "acknowledges in an epoch it would not find")

    def committed(self, partition: Partition, effect: HighWatermarkMoved) -> None:
        role, mark = partition.replica.role, effect.high_watermark
        if isinstance(role, Leader):
            for broker in (role.insync.broker, *(one.broker for one in role.insync.counted)):
                self._holds(broker, partition, mark, f"commits {mark}")
        else:
            written = self._copy(partition.replica.broker, partition.name).written_end()
            self._check(written >= mark, partition, f"takes {mark} over, has written {written}")

    def woken(self, partition: Partition, _: WakeFetch) -> None:
        if not partition.replica.has_failed:
            end = partition.replica.log.log_end_offset
            written = self._copy(partition.replica.broker, partition.name).written_end()
            self._check(written >= end, partition, f"sends up to {end}, has written {written}")

    def refused(self, partition: Partition, effect: Refuse) -> None:
        self._check(effect.error is not ErrorCode.NONE, partition, "refuses without an error")

    def considered(self, partition: Partition, effect: ConsiderExpand) -> None:
        role = partition.replica.role
        assert isinstance(role, Leader)
        is_open = role.insync.proposal is None
        self._check(is_open, partition, f"considers b{effect.follower} and has proposed already")

    def proposed(self, partition: Partition, effect: ProposeIsr) -> None:
        role = partition.replica.role
        assert isinstance(role, Leader)
        self._check(role.insync.proposal == effect, partition, "proposes and does not count on it")
        mark = partition.replica.log.high_watermark
        for member in effect.isr:
            if member.broker not in role.insync.isr:
                self._holds(member.broker, partition, mark, f"lets b{member.broker} in at {mark}")

    def applied(self, partition: Partition, effect: IsrApplied) -> None:
        assert self._cluster is not None
        state = self._cluster.state(partition.name)
        assert state is not None
        is_agreed = state.partition_epoch >= effect.partition_epoch
        self._check(is_agreed, partition, f"counts on {effect.isr}, which nobody has agreed to")

    def flush_asked(self, partition: Partition, effect: Flush) -> None:
        written = self._copy(partition.replica.broker, partition.name).written_end()
        is_written = written >= effect.end_offset
        self._check(is_written, partition, f"flushes {effect.end_offset}, has written {written}")

    def truncated(self, partition: Partition, effect: TruncateTo) -> None:
        if not partition.replica.has_failed:
            written = self._copy(partition.replica.broker, partition.name).written_end()
            is_truncated = max(written, partition.log.recovery_point) <= effect.end_offset
            self._check(
                is_truncated, partition, f"truncated to {effect.end_offset}, and has {written}"
            )

    def epoch_written(self, partition: Partition, effect: WriteEpoch) -> None:
        assert isinstance(partition.host, replicas.Replicas)
        flushes = partition.host._flushes
        epochs = self._copy(partition.replica.broker, partition.name).durable_epochs()
        queue = flushes._queues.get(partition.log.disk)
        is_wanted = queue is not None and (
            partition in queue.records or partition in queue.checkpoints
        )
        is_begun = is_wanted or flushes._under_way.get(partition) is not None
        is_kept = is_begun or effect.entry.epoch in epochs
        self._check(is_kept or partition.replica.has_failed, partition, "forgets its epoch")


BEFORE: dict[type, Check] = {
    Acknowledge: Watch.acknowledged,
    HighWatermarkMoved: Watch.committed,
    WakeFetch: Watch.woken,
    Refuse: Watch.refused,
    ConsiderExpand: Watch.considered,
    ProposeIsr: Watch.proposed,
    IsrApplied: Watch.applied,
    Flush: Watch.flush_asked,
}
"""Checks before an effect is carried out, because it informs another node."""
AFTER: dict[type, Check] = {
    TruncateTo: Watch.truncated,
    WriteEpoch: Watch.epoch_written,
}
"""Checks after an effect was carried out, because the next one relies on it."""
FAULTS = ("kill", "power-loss", "pause", "cut", "slow", "session-expiry", "controller-loss")
DENSE = {
    "duration_ms": 25_000,
    "fault_every_ms": 500,
    "send_every_ms": 80,
    "faults": FAULTS,
    "disk_ms": 400.0,
    "is_rolling": True,
    "is_restarted": False,
}


def test_every_kind_of_effect_has_its_check() -> None:
    assert {*BEFORE, *AFTER} == {*get_args(Effect)}


@pytest.mark.slow
@pytest.mark.parametrize("flush_messages", [0, 1, 2, 5])
def test_nothing_leaves_before_what_it_depends_on(
    flush_messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch, flush_messages)
    for seed in range(16):  # Until every kind was seen; one seed rarely has all.
        watch.play(seed, **DENSE)
        assert watch.broken == []
        if all(watch.seen[one] for one in _expected(flush_messages)):
            break
    assert [one.__name__ for one in _expected(flush_messages) if not watch.seen[one]] == []


def _expected(flush_messages: int) -> list[type]:
    return [one for one in get_args(Effect) if one is not Flush or flush_messages]


@pytest.mark.slow
@pytest.mark.parametrize("flush_messages", [1, 2])
def test_an_acknowledgement_before_its_flush_is_found(
    flush_messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = build({"without": "(flush-before-claim)"}, 3)[1]
    monkeypatch.setattr(replicas, "Replica", partial(Replica, rules=rules))
    watch = Watch(monkeypatch, flush_messages)
    watch.play(0, **{**DENSE, "faults": (), "duration_ms": 3_000})
    assert any("acknowledges" in one for one in watch.broken)
    assert any("commits" in one for one in watch.broken)
