"""Nothing leaves a controller before the store has it: every kind of command, on real controllers.

The real driver (`ControllerService.run`) carries out commands in simulated clusters with faults.
Before each command the test reads the simulated store.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, get_args

import pytest

from holdfast.broker.controller import service
from holdfast.broker.controller.config_changes import TOPIC
from holdfast.broker.controller.service import ControllerService
from holdfast.core import (
    AnswerAlter,
    AskLogEnd,
    Command,
    Controller,
    Guards,
    Rules,
    SendStateTo,
    StateConfirmed,
    StopReplica,
    StoreSettings,
    WriteState,
    state_age,
)
from holdfast.model import NO_BROKER, PartitionState, TopicPartition
from holdfast.protocol.messages.configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from holdfast.simulation import SimulatedCluster, run, simulate

ELSEWHERE = {
    StopReplica: "tests/unit/broker/controller/test_operating.py: nobody moves a partition",
    AskLogEnd: "tests/unit/core/test_controller_recovery.py: rarely does every log lose its end",
}
"""Commands that these runs need not have, and why."""
DENSE = {
    "duration_ms": 15_000,
    "fault_every_ms": 500,
    "send_every_ms": 200,
    "faults": ("kill", "power-loss", "pause", "cut", "session-expiry", "controller-loss"),
    "is_restarted": False,
}


class Watch:
    """Checks every command that a real `ControllerService` carries out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cluster: SimulatedCluster | None = None
        self.seen: Counter[type] = Counter()
        self.broken: list[str] = []
        original = ControllerService._run

        def watched(term: ControllerService, command: Command) -> None:
            self.seen[type(command)] += 1
            self._check(term, command)
            original(term, command)

        def made(*given: Any, **more: Any) -> SimulatedCluster:
            return self.use(SimulatedCluster(*given, **more))

        monkeypatch.setattr(ControllerService, "_run", watched)
        monkeypatch.setattr(run, "SimulatedCluster", made)

    def use(self, cluster: SimulatedCluster) -> SimulatedCluster:
        self._cluster = cluster
        return cluster

    def _stored(self, partition: TopicPartition) -> PartitionState | None:
        assert self._cluster is not None
        return self._cluster.state(partition)

    def _has(self, partition: TopicPartition, state: PartitionState) -> bool:
        """Whether the store has this state, or a newer one of another controller."""
        stored = self._stored(partition)
        return stored is not None and state_age(stored) >= state_age(state)

    def _check(self, term: ControllerService, command: Command) -> None:
        if not self._is_valid(term, command):
            self.broken.append(f"{command}, and the store does not have it")

    def _is_valid(self, term: ControllerService, command: Command) -> bool:
        match command:
            case WriteState(partition, state, expected):
                known = term.core.partitions[partition]
                is_next = known.partition_epoch == expected == state.partition_epoch - 1
                return is_next and state.leader_epoch >= known.leader_epoch
            case StateConfirmed(partition, _, state, _) | SendStateTo(_, partition, state):
                return self._has(partition, state)
            case StopReplica(broker, partition):
                stored = self._stored(partition)
                return stored is not None and broker not in stored.replicas
            case AnswerAlter(_, error, state):
                # The waiter knows the partition; the confirmed states are checked above.
                confirmed = (None, *term.core.partitions.values())
                return (state is not None or bool(error)) and state in confirmed
            case AskLogEnd(_, partition, leader_epoch):
                stored = self._stored(partition)
                is_newer = stored is not None and stored.leader_epoch > leader_epoch
                return is_newer or (stored is not None and stored.leader == NO_BROKER)
            case StoreSettings():
                states = [self._stored(one) for one in term.core.partitions]
                return not any(one.eligible_leaders for one in states if one is not None)


def test_every_kind_of_command_is_expected_or_tested_elsewhere() -> None:
    assert {*EXPECTED, *ELSEWHERE, StoreSettings} == {*get_args(Command)}


EXPECTED = (WriteState, StateConfirmed, SendStateTo, AnswerAlter)


@pytest.mark.slow
def test_nothing_leaves_a_controller_before_the_store_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch(monkeypatch)
    for seed in range(3):
        assert simulate(seed, DENSE).acknowledged, "the run exercised nothing"
    assert watch.broken == []
    assert [one.__name__ for one in EXPECTED if not watch.seen[one]] == []


@pytest.mark.slow
def test_a_state_sent_before_the_store_has_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = ControllerService.run

    def hasty(term: ControllerService, commands: tuple[Command, ...]) -> None:
        early = [
            SendStateTo(one.state.leader, one.partition, one.state)
            for one in commands
            if isinstance(one, WriteState)
        ]
        original(term, (*early, *commands))

    monkeypatch.setattr(ControllerService, "run", hasty)
    watch = Watch(monkeypatch)
    simulate(0, {**DENSE, "faults": (), "duration_ms": 2_000})
    assert any("SendStateTo" in one for one in watch.broken)


@pytest.mark.parametrize("guards", [Guards(), Guards().without("eligible-cleared-first")])
def test_a_lower_minimum_is_stored_when_the_store_has_no_eligible_leaders(
    guards: Guards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "Controller", partial(Controller, rules=Rules(guards=guards)))
    watch = Watch(monkeypatch)
    cluster = watch.use(SimulatedCluster(1))
    try:
        [name] = cluster.start("events", 1)
        state = cluster.state(name)
        assert state is not None
        for broker in state.isr[1:]:
            cluster.machines[broker].kill()
        assert cluster.timeline.run_until(lambda: has_eligible(cluster, name), 30)
        cluster.do(lower_minimum(cluster, state.leader))
        assert watch.seen[StoreSettings] == 1
        broken = [one for one in watch.broken if "StoreSettings" in one]
        assert bool(broken) == bool(guards.removed())
        assert cluster.timeline.run_until(lambda: not has_eligible(cluster, name), 30)
    finally:
        cluster.close()


def has_eligible(cluster: SimulatedCluster, name: TopicPartition) -> bool:
    state = cluster.state(name)
    return state is not None and bool(state.eligible_leaders)


async def lower_minimum(cluster: SimulatedCluster, broker: int) -> None:
    config = IncrementalAlterConfigsAlterableConfig(
        name="min.insync.replicas", config_operation=0, value="1"
    )
    resource = IncrementalAlterConfigsResource(
        resource_type=TOPIC, resource_name="events", configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    answer = await cluster.client("admin").ask(broker, request, 1, IncrementalAlterConfigsResponse)
    assert [one.error_code for one in answer.responses] == [0]
