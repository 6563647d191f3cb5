"""The controller's calls: elections, reassignments, settings, failed logs, log ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.broker.controller.auto_leader_rebalance import imbalanced
from holdfast.broker.controller.config_changes import alter_broker_configs, alter_topic_configs
from holdfast.broker.controller.elect_leaders import PREFERRED, UNCLEAN, elect
from holdfast.broker.controller.reassignment import reassign
from holdfast.broker.errors import RefusedError
from holdfast.broker.metadata.store_nodes import (
    ReplicaFailures,
    decode_config,
    encode_replica_failures,
)
from holdfast.broker.replication.log_failures import NOTIFICATIONS
from holdfast.broker.settings import Alteration, Operation
from holdfast.coordination import ConflictError, Create, Delete, Outcome, Reason, Set, paths
from holdfast.model import BrokerEpoch, BrokerId, ErrorCode, TopicPartition
from holdfast.protocol import Request, Response
from holdfast.protocol.messages.control import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    PartitionLogInfo,
    StopReplicaRequest,
    TopicPartitionLogInfo,
)
from tests.support.waiting import eventually
from tests.unit.broker.controller.controllers import A, B, C, ControllerHarness, P, obey, play

D = BrokerId(4)


def setting(name: str, value: str) -> list[Alteration]:
    return [Alteration(name, Operation.SET, value)]


async def restart(harness: ControllerHarness, broker: BrokerId, intact_since: int = -1) -> None:
    """A broker restarts; without `intact_since` it may have lost records."""
    old = harness.service.core.brokers.get(broker)
    if old is not None:
        await harness.store.commit(Delete(paths.broker_id(broker)))
    await harness.register(broker, intact_since=intact_since)

    def is_back() -> bool:
        known = harness.service.core.brokers.get(broker)
        return known is not None and known != old

    await eventually(is_back, f"{broker} is back")


def test_the_preferred_leader_is_elected_when_it_is_back(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        service = harness.service
        [result] = await elect(service, (P,), PREFERRED, 30)
        assert result.error is ErrorCode.ELECTION_NOT_NEEDED
        epoch = service.core.brokers[A].broker_epoch
        await harness.die(A)
        await harness.until(lambda state: state.leader == B, "B leads")
        assert list(imbalanced(service.core, 10)) == []
        [result] = await elect(service, (P,), PREFERRED, 30)
        assert result.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        await restart(harness, A, intact_since=epoch)
        state = service.core.partitions[P]._replace(isr=(A, B, C))
        service.core.partitions[P] = state  # as if it had caught up
        assert list(imbalanced(service.core, 10)) == [P]
        [result, unknown] = await elect(service, (P, TopicPartition("no", 0)), PREFERRED, 30)
        assert (result.error, service.core.partitions[P].leader) == (ErrorCode.NONE, A)
        assert unknown.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(tmp_path / "store", scenario)


def test_an_unclean_election_needs_a_live_replica(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create("events", (A, B))
        [result] = await elect(harness.service, (P,), UNCLEAN, 30)
        assert result.error is ErrorCode.ELECTION_NOT_NEEDED
        await harness.die(A, B)
        [result] = await elect(harness.service, (P,), UNCLEAN, 30)
        assert result.error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE

    play(tmp_path / "store", scenario)


def test_a_reassignment_is_started_listed_and_cancelled(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.register(D)
        await eventually(lambda: D in harness.service.core.brokers, "D is there")
        await harness.create()
        await reassign(harness.service, P, (A, B, D), keeps_count=True, timeout_s=30)
        assert (await harness.stored()).adding == (D,)
        await harness.service.admin.until_delivered([P], 30)
        assert harness.broker(D).roles() == [(0, A, 0)]
        await reassign(harness.service, P, None, keeps_count=True, timeout_s=30)
        assert (await harness.stored()).replicas == (A, B, C)
        await eventually(lambda: bool(harness.broker(D).of(StopReplicaRequest)), "D stops")
        with pytest.raises(RefusedError) as refused:
            await reassign(harness.service, P, None, keeps_count=True, timeout_s=30)
        assert refused.value.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        with pytest.raises(RefusedError) as refused:
            await reassign(harness.service, P, (BrokerId(9),), keeps_count=False, timeout_s=30)
        assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        with pytest.raises(RefusedError) as refused:
            await reassign(harness.service, P, (A,), keeps_count=True, timeout_s=30)
        assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR

    play(tmp_path / "store", scenario)


def test_brokers_see_a_lower_minimum_only_after_the_elr_is_cleared(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        await harness.die(C, B)
        await harness.until(lambda state: len(state.eligible_leaders) == 1, "one stays eligible")
        lowered = setting("min.insync.replicas", "1")
        written = len(harness.store.written)
        await alter_topic_configs(harness.service, "events", lambda _: lowered, validate_only=True)
        assert len(harness.store.written) == written
        await alter_topic_configs(harness.service, "events", lambda _: lowered, validate_only=False)
        touched = [
            operation.path
            for transaction in harness.store.written[written:]
            for operation in transaction
            if isinstance(operation, Set)
        ]
        state, config = paths.partition_state(*P), paths.topic_config("events")
        assert touched == [state, config, paths.CONFIG_CHANGES]
        assert (await harness.stored()).eligible_leaders == ()

    play(tmp_path / "store", scenario)


def test_two_changes_at_once_are_both_kept(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()

        async def alter(name: str, value: str) -> None:
            def asked(_: dict[str, str]) -> list[Alteration]:
                return setting(name, value)

            await alter_topic_configs(harness.service, "events", asked, validate_only=False)

        changes = {"min.insync.replicas": "1", "retention.ms": "1000", "flush.messages": "5"}
        await asyncio.gather(*(alter(*one) for one in changes.items()))
        path = paths.topic_config("events")
        node = await harness.store.get(path)
        assert node is not None
        assert decode_config(path, node.data) == changes
        assert harness.service.core.settings[P].min_insync_replicas == 1

    play(tmp_path / "store", scenario)


def test_a_refused_write_of_settings_lets_the_next_change_begin(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()

        async def refused() -> list[Outcome]:
            return [ConflictError(Create(paths.CONFIG_CHANGES), Reason.EXISTS)]

        harness.store.outcomes.append(refused)
        lowered = setting("min.insync.replicas", "1")
        with pytest.raises(ConflictError):
            await alter_topic_configs(
                harness.service, "events", lambda _: lowered, validate_only=False
            )
        await alter_topic_configs(harness.service, "events", lambda _: lowered, validate_only=False)
        assert harness.service.topic_configs["events"] == {"min.insync.replicas": "1"}

    play(tmp_path / "store", scenario)


def test_settings_of_all_brokers_hold_for_topics_and_one_brokers_minimum_is_refused(
    tmp_path: Path,
) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        service = harness.service
        raised = setting("min.insync.replicas", "3")
        await alter_broker_configs(service, "", lambda _: raised, validate_only=False)
        assert service.core.settings[P].min_insync_replicas == 3
        with pytest.raises(RefusedError):
            await alter_broker_configs(service, "2", lambda _: raised, validate_only=False)
        with pytest.raises(RefusedError):
            await alter_broker_configs(service, "two", lambda _: raised, validate_only=False)
        with pytest.raises(RefusedError):
            await alter_topic_configs(service, "no", lambda _: raised, validate_only=False)

    play(tmp_path / "store", scenario)


def test_the_controller_decides_by_the_stored_settings_before_its_broker_has_read_them(
    tmp_path: Path,
) -> None:
    """This host never reads the store's settings, as a broker that is late."""

    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        lowered, other = setting("min.insync.replicas", "1"), setting("retention.ms", "1000")
        await alter_broker_configs(harness.service, "", lambda _: lowered, validate_only=False)
        await alter_topic_configs(harness.service, "events", lambda _: other, validate_only=False)
        await harness.create("later", (A, B, C))

        def minimums() -> dict[str, int]:
            core = harness.service.core
            return {one.topic: core.settings[one].min_insync_replicas for one in core.partitions}

        assert minimums() == {"events": 1, "later": 1}
        await harness.elector.stop()
        successor = ControllerHarness(harness.store, B)
        harness.elector = successor.elector
        await successor.begin()
        assert minimums() == {"events": 1, "later": 1}

    play(tmp_path / "store", scenario)


def test_a_topic_that_is_being_created_is_part_of_a_change_for_all_brokers(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        is_writing, may_write = asyncio.Event(), asyncio.Event()
        core, lowered = harness.service.core, setting("min.insync.replicas", "1")

        async def wait() -> None:
            is_writing.set()
            await may_write.wait()

        harness.store.outcomes.append(wait)
        earlier = asyncio.ensure_future(harness.create("earlier"))
        await is_writing.wait()
        change = asyncio.ensure_future(
            alter_broker_configs(harness.service, "", lambda _: lowered, validate_only=False)
        )
        await eventually(lambda: core.settings_change is not None, "the change has begun")
        later = asyncio.ensure_future(harness.create("later"))
        created = TopicPartition("later", 0)
        await eventually(lambda: created in core.partitions, "another topic is being created")
        may_write.set()
        await asyncio.gather(earlier, change, later)
        found = {one.topic: core.settings[one].min_insync_replicas for one in core.partitions}
        assert found == {"earlier": 1, "later": 1}

    play(tmp_path / "store", scenario)


def test_a_change_that_waited_leaves_nothing_of_a_topic_that_was_deleted(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        service = harness.service
        async with service.config_changes:
            asked = setting("retention.ms", "1000")
            waits = asyncio.ensure_future(
                alter_topic_configs(service, "events", lambda _: asked, validate_only=False)
            )
            await asyncio.sleep(0)
            await service.admin.delete("events")
        with pytest.raises(RefusedError, match="does not exist"):
            await waits
        assert await harness.store.get(paths.topic_config("events")) is None
        await harness.create()

    play(tmp_path / "store", scenario)


def test_a_reported_failure_removes_a_replica_and_is_read_once(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        epoch = harness.service.core.brokers[A].broker_epoch
        await harness.store.ensure_path(NOTIFICATIONS)
        other_incarnation = ReplicaFailures(B, BrokerEpoch(1), (P,))
        failures = ReplicaFailures(A, epoch, (P, TopicPartition("gone", 3)))
        for number, report in enumerate((other_incarnation, failures)):
            path = f"{NOTIFICATIONS}/report-{number}"
            await harness.store.commit(Create(path, encode_replica_failures(report)))
        await harness.store.commit(Create(f"{NOTIFICATIONS}/report-9", b"damaged"))
        await harness.until(lambda state: (state.leader, state.isr) == (B, (B, C)), "A is out")
        left: list[str] = ["?"]
        while left:
            left = await harness.store.children(NOTIFICATIONS)

    play(tmp_path / "store", scenario)


def test_logs_are_compared_when_all_eligible_replicas_restarted_uncleanly(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        planned = await harness.create("events", (A, B))
        await harness.die(A, B)
        broker_epochs = {A: BrokerEpoch(0), B: BrokerEpoch(0)}
        ends = {A: 5, B: 8}

        def answer(broker: BrokerId) -> None:
            def script(request: Request) -> Response | None:
                if not isinstance(request, GetReplicaLogInfoRequest):
                    return obey(request)
                info = PartitionLogInfo(
                    partition=0,
                    last_written_leader_epoch=0,
                    current_leader_epoch=harness.service.core.partitions[P].leader_epoch,
                    log_end_offset=ends[broker],
                    error_code=0,
                )
                topic = TopicPartitionLogInfo(topic_id=planned.topic_id, partition_log_info=[info])
                return GetReplicaLogInfoResponse(
                    broker_epoch=broker_epochs[broker], topic_partition_log_info_list=[topic]
                )

            harness.broker(broker).script = script

        answer(A)
        answer(B)
        await restart(harness, A)
        await restart(harness, B)
        asked = harness.broker(B).of(GetReplicaLogInfoRequest)
        await eventually(lambda: len(harness.broker(B).received) > len(asked), "asked")
        assert harness.service.core.partitions[P].leader == -1, (
            "an answer of a former incarnation does not count"
        )
        for broker in broker_epochs:
            broker_epochs[broker] = harness.service.core.brokers[broker].broker_epoch
        await harness.until(lambda state: state.leader == B, "the best log leads")

    play(tmp_path / "store", scenario)
