"""A controller on a real store: elected, fenced, replaced; writes decisions before sending them."""

from __future__ import annotations

from pathlib import Path

from holdfast.broker.metadata import store_nodes
from holdfast.coordination import Delete, Set, StoreAwayError, paths
from holdfast.coordination.operations import Outcome
from holdfast.core import WriteState
from holdfast.model import NO_BROKER, ErrorCode, TopicPartition
from holdfast.protocol import Request, Response
from holdfast.protocol.messages.control import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from tests.support.waiting import eventually
from tests.unit.broker.controller.controllers import (
    A,
    B,
    C,
    ControllerHarness,
    P,
    obey,
    play,
    storage_error,
)


async def epoch_in_store(harness: ControllerHarness) -> int:
    node = await harness.store.get(paths.CONTROLLER_EPOCH)
    assert node is not None
    return store_nodes.decode_controller_epoch(paths.CONTROLLER_EPOCH, node.data)


def test_the_first_controller_epoch_is_one_and_resigning_removes_the_node(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        assert (await epoch_in_store(harness), harness.service.controller_epoch) == (1, 1)
        node = await harness.store.get(paths.CONTROLLER)
        assert node is not None
        assert store_nodes.decode_controller(paths.CONTROLLER, node.data) == A
        await harness.elector.stop()
        assert harness.controller is None
        assert await harness.store.get(paths.CONTROLLER) is None

    play(tmp_path / "store", scenario)


def test_a_new_topic_is_written_in_one_transaction_then_sent(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        before = len(harness.store.written)
        planned = await harness.create("events", (A, B), (B, C))
        assert len(harness.store.written) == before + 1
        assert await harness.service.admin.until_delivered(planned.partitions, 30)
        assert (await harness.stored()).leader == A
        assert harness.broker(A).roles() == [(0, A, 0)]
        assert sorted(harness.broker(B).roles()) == [(0, A, 0), (1, B, 0)]
        [command] = harness.broker(C).of(LeaderAndIsrRequest)
        assert command.topic_states[0].topic_id == planned.topic_id
        assert command.topic_states[0].partition_states[0].is_new
        assert command.broker_epoch == harness.service.core.brokers[C].broker_epoch
        assert [(one.broker_id, one.port) for one in command.live_leaders] == [(B, 9002)]
        for broker in (A, B, C):
            response = harness.broker(broker).of(UpdateMetadataRequest)[-1]
            assert [one.id for one in response.live_brokers] == [A, B, C]
            assert response.topic_states[0].topic_name == "events"

    play(tmp_path / "store", scenario)


def test_a_dead_leader_is_replaced_and_only_live_brokers_are_notified(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        planned = await harness.create()
        await harness.service.admin.until_delivered(planned.partitions, 30)
        received = len(harness.broker(A).received)
        await harness.die(A)
        await harness.until(lambda state: state.leader == B, "another leads")
        await harness.service.admin.until_delivered([P], 30)
        assert (await harness.stored()).isr == (B, C)
        assert harness.broker(C).roles()[-1] == (0, B, 1)
        metadata = harness.broker(C).of(UpdateMetadataRequest)[-1]
        assert metadata.topic_states[0].partition_states[0].offline_replicas == (A,)
        assert len(harness.broker(A).received) == received

    play(tmp_path / "store", scenario)


def test_a_request_without_an_answer_is_repeated_with_the_newest_state(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        harness.broker(C).is_silent = True
        await harness.create()
        await eventually(lambda: bool(harness.broker(C).of(LeaderAndIsrRequest)), "sent once")
        await harness.die(A)
        await harness.until(lambda state: state.leader == B, "another leads")
        commands = harness.broker(C).of(LeaderAndIsrRequest)
        assert len(commands) == 1, "one command is under way at a time"
        harness.broker(C).is_silent = False
        for _, answered in harness.broker(C).waiting:
            answered(None)
        await harness.service.admin.until_delivered([P], 30)
        assert harness.broker(C).roles() == [(0, A, 0), (0, B, 1)]

    play(tmp_path / "store", scenario)


def test_a_refused_command_is_repeated(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        refusals = [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.REQUEST_TIMED_OUT]

        def refuse(request: Request) -> Response | None:
            if isinstance(request, LeaderAndIsrRequest) and refusals:
                return LeaderAndIsrResponse(error_code=refusals.pop())
            return obey(request)

        harness.broker(B).script = refuse
        planned = await harness.create()
        assert await harness.service.admin.until_delivered(planned.partitions, 30)
        assert harness.broker(B).roles() == [(0, A, 0)] * 3

    play(tmp_path / "store", scenario)


def test_a_controller_ends_when_the_store_has_a_newer_epoch(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        old = harness.service
        await harness.store.commit(Set(paths.CONTROLLER_EPOCH, b"7"))
        received = len(harness.broker(C).received)
        old.run(old.core.broker_lost(A))
        await eventually(lambda: old.is_over, "the old controller has ended")
        assert (await harness.stored()).leader == A, "nothing was written"
        assert len(harness.broker(C).received) == received, "nothing was sent"
        await eventually(lambda: harness.controller not in (None, old), "a new controller")
        assert harness.service.controller_epoch == 8

    play(tmp_path / "store", scenario)


def test_a_broker_that_obeys_a_newer_controller_ends_the_old_one(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        old = harness.service
        stale = LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)

        def refuse(request: Request) -> Response | None:
            return stale if isinstance(request, LeaderAndIsrRequest) else obey(request)

        harness.broker(B).script = refuse
        await harness.create()
        await eventually(lambda: old.is_over, "the controller has ended")
        harness.broker(B).script = obey
        await eventually(lambda: harness.controller is not None, "a new controller")

    play(tmp_path / "store", scenario)


def test_a_new_controller_finishes_the_work_of_the_last(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        await harness.elector.stop()
        other = ControllerHarness(harness.store, B)
        await harness.store.commit(Delete(paths.broker_id(A)))
        await other.begin()
        await other.until(lambda state: state.leader == B, "the election is made up for")
        assert other.service.controller_epoch == 2
        await other.elector.stop()

    play(tmp_path / "store", scenario)


def test_writes_wait_while_the_store_is_unavailable(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        await harness.service.admin.until_delivered([P], 30)
        roles = len(harness.broker(B).roles())

        async def away() -> list[Outcome] | None:
            assert len(harness.broker(B).roles()) == roles, (
                "nothing is sent before it is in the store"
            )
            return [StoreAwayError("gone fishing")]

        service = harness.service
        harness.store.outcomes = [away, away, away]
        service.run(service.core.broker_lost(A))
        await harness.until(lambda state: state.leader == B, "written when the store is back")
        assert (await harness.stored()).leader == B
        assert not service.is_over

    play(tmp_path / "store", scenario)


def test_a_write_whose_answer_was_lost_is_recognised(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        service = harness.service

        commands = service.core.broker_lost(A)
        [write] = commands
        assert isinstance(write, WriteState)
        path = paths.partition_state(*P)
        data = store_nodes.encode_state(write.state, service.controller_epoch)

        async def done_unheard() -> list[Outcome] | None:
            await harness.store.commit(Set(path, data, 0))
            return [StoreAwayError("lost", outcome_unknown=True)]

        harness.store.outcomes = [done_unheard]
        service.run(commands)
        await harness.until(lambda state: state.leader == B, "confirmed")
        node = await harness.store.get(path)
        assert node is not None
        assert node.version == 1, "it was not written twice"

    play(tmp_path / "store", scenario)


def test_a_storage_error_replaces_a_leader(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        harness.broker(A).script = storage_error
        await harness.create()
        await harness.until(lambda state: (state.leader, state.isr) == (B, (B, C)), "A is out")
        await harness.service.admin.until_delivered([P], 30)
        metadata = harness.broker(C).of(UpdateMetadataRequest)[-1]
        assert metadata.topic_states[0].partition_states[0].offline_replicas == (A,)

    play(tmp_path / "store", scenario)


def test_a_deleted_topic_stops_before_its_successor_starts(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        planned = await harness.create()
        await harness.service.admin.until_delivered(planned.partitions, 30)
        harness.broker(B).is_silent = True
        await harness.service.admin.delete("events")
        assert await harness.store.get(paths.topic("events")) is None
        again = await harness.create()
        assert again.topic_id != planned.topic_id
        await eventually(lambda: bool(harness.broker(B).of(StopReplicaRequest)), "stopped")
        harness.broker(B).is_silent = False
        for _, answered in harness.broker(B).waiting:
            answered(None)
        await harness.service.admin.until_delivered(again.partitions, 30)
        kinds = [
            type(one)
            for one in harness.broker(B).received
            if isinstance(one, StopReplicaRequest | LeaderAndIsrRequest)
        ]
        stop, role = StopReplicaRequest, LeaderAndIsrRequest
        assert kinds == [role, stop, stop, role]
        gone = harness.broker(C).of(UpdateMetadataRequest)
        leaders = [
            (topic.topic_id, topic.partition_states[0].leader)
            for request in gone
            for topic in request.topic_states
        ]
        assert (planned.topic_id, -2) in leaders
        assert leaders[-1] == (again.topic_id, A)

    play(tmp_path / "store", scenario)


def test_a_damaged_node_affects_only_its_partition(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create("events", (A, B), (A, C))
        path = paths.partition_state("events", 1)
        await harness.store.commit(Set(path, b"{"))
        await harness.elector.stop()
        other = ControllerHarness(harness.store, B)
        await other.begin()
        assert path in other.lines.getvalue()
        assert list(other.service.core.partitions) == [P]
        await other.die(A)
        await other.until(lambda state: state.leader == B, "the other is governed")
        node = await harness.store.get(path)
        assert node is not None
        assert node.data == b"{"
        await other.elector.stop()

    play(tmp_path / "store", scenario)


def test_without_live_brokers_there_is_no_leader(tmp_path: Path) -> None:
    async def scenario(harness: ControllerHarness) -> None:
        await harness.create()
        await harness.die(A, B, C)
        await harness.until(lambda state: state.leader == NO_BROKER, "there is no leader")
        assert not harness.service.channels
        assert harness.service.knows(TopicPartition("events", 0))

    play(tmp_path / "store", scenario)
