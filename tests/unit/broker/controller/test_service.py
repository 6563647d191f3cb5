"""A reign on a real store: elected, fenced, resumed; decisions agreed first and told then."""

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
    P,
    Reign,
    obey,
    play,
    storage_error,
)


async def epoch_in_store(reign: Reign) -> int:
    node = await reign.store.get(paths.CONTROLLER_EPOCH)
    assert node is not None
    return store_nodes.decode_controller_epoch(paths.CONTROLLER_EPOCH, node.data)


def test_the_first_reign_has_epoch_one_and_resigning_frees_the_office(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        assert (await epoch_in_store(reign), reign.service.controller_epoch) == (1, 1)
        node = await reign.store.get(paths.CONTROLLER)
        assert node is not None
        assert store_nodes.decode_controller(paths.CONTROLLER, node.data) == A
        await reign.elector.stop()
        assert reign.controller is None
        assert await reign.store.get(paths.CONTROLLER) is None

    play(tmp_path / "store", story)


def test_a_new_topic_is_agreed_in_one_transaction_then_told(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        before = len(reign.store.written)
        planned = await reign.create("events", (A, B), (B, C))
        assert len(reign.store.written) == before + 1
        assert await reign.service.admin.told(planned.partitions, 30)
        assert (await reign.stored()).leader == A
        assert reign.broker(A).roles() == [(0, A, 0)]
        assert sorted(reign.broker(B).roles()) == [(0, A, 0), (1, B, 0)]
        [command] = reign.broker(C).of(LeaderAndIsrRequest)
        assert command.topic_states[0].topic_id == planned.topic_id
        assert command.topic_states[0].partition_states[0].is_new
        assert command.broker_epoch == reign.service.core.brokers[C].broker_epoch
        assert [(one.broker_id, one.port) for one in command.live_leaders] == [(B, 9002)]
        for broker in (A, B, C):
            told = reign.broker(broker).of(UpdateMetadataRequest)[-1]
            assert [one.id for one in told.live_brokers] == [A, B, C]
            assert told.topic_states[0].topic_name == "events"

    play(tmp_path / "store", story)


def test_a_dead_leader_is_replaced_and_only_the_living_are_told(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        planned = await reign.create()
        await reign.service.admin.told(planned.partitions, 30)
        heard = len(reign.broker(A).heard)
        await reign.die(A)
        await reign.until(lambda state: state.leader == B, "another leads")
        await reign.service.admin.told([P], 30)
        assert (await reign.stored()).isr == (B, C)
        assert reign.broker(C).roles()[-1] == (0, B, 1)
        metadata = reign.broker(C).of(UpdateMetadataRequest)[-1]
        assert metadata.topic_states[0].partition_states[0].offline_replicas == (A,)
        assert len(reign.broker(A).heard) == heard

    play(tmp_path / "store", story)


def test_what_is_not_answered_is_said_again_but_only_the_newest(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        reign.broker(C).is_silent = True
        await reign.create()
        await eventually(lambda: bool(reign.broker(C).of(LeaderAndIsrRequest)), "told once")
        await reign.die(A)
        await reign.until(lambda state: state.leader == B, "another leads")
        commands = reign.broker(C).of(LeaderAndIsrRequest)
        assert len(commands) == 1, "one command is under way at a time"
        reign.broker(C).is_silent = False
        for _, answered in reign.broker(C).waiting:
            answered(None)
        await reign.service.admin.told([P], 30)
        assert reign.broker(C).roles() == [(0, A, 0), (0, B, 1)]

    play(tmp_path / "store", story)


def test_a_refused_command_is_repeated(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        refusals = [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.REQUEST_TIMED_OUT]

        def refuse(request: Request) -> Response | None:
            if isinstance(request, LeaderAndIsrRequest) and refusals:
                return LeaderAndIsrResponse(error_code=refusals.pop())
            return obey(request)

        reign.broker(B).script = refuse
        planned = await reign.create()
        assert await reign.service.admin.told(planned.partitions, 30)
        assert reign.broker(B).roles() == [(0, A, 0)] * 3

    play(tmp_path / "store", story)


def test_a_reign_ends_when_the_store_knows_a_newer_one(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        await reign.create()
        old = reign.service
        await reign.store.commit(Set(paths.CONTROLLER_EPOCH, b"7"))
        heard = len(reign.broker(C).heard)
        old.run(old.core.broker_lost(A))
        await eventually(lambda: old.is_over, "the old reign is over")
        assert (await reign.stored()).leader == A, "nothing was written"
        assert len(reign.broker(C).heard) == heard, "nothing was told"
        await eventually(lambda: reign.controller not in (None, old), "a new reign")
        assert reign.service.controller_epoch == 8

    play(tmp_path / "store", story)


def test_a_broker_that_obeys_a_newer_controller_ends_a_reign(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        old = reign.service
        stale = LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)

        def refuse(request: Request) -> Response | None:
            return stale if isinstance(request, LeaderAndIsrRequest) else obey(request)

        reign.broker(B).script = refuse
        await reign.create()
        await eventually(lambda: old.is_over, "the reign is over")
        reign.broker(B).script = obey
        await eventually(lambda: reign.controller is not None, "a new reign")

    play(tmp_path / "store", story)


def test_a_new_controller_finishes_what_the_last_left_undone(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        await reign.create()
        await reign.elector.stop()
        other = Reign(reign.store, B)
        await reign.store.commit(Delete(paths.broker_id(A)))
        await other.begin()
        await other.until(lambda state: state.leader == B, "the election is made up for")
        assert other.service.controller_epoch == 2
        await other.elector.stop()

    play(tmp_path / "store", story)


def test_writes_wait_while_the_store_is_away(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        await reign.create()
        await reign.service.admin.told([P], 30)
        roles = len(reign.broker(B).roles())

        async def away() -> list[Outcome] | None:
            assert len(reign.broker(B).roles()) == roles, "nothing is told before it is agreed"
            return [StoreAwayError("gone fishing")]

        service = reign.service
        reign.store.outcomes = [away, away, away]
        service.run(service.core.broker_lost(A))
        await reign.until(lambda state: state.leader == B, "agreed when the store is back")
        assert (await reign.stored()).leader == B
        assert not service.is_over

    play(tmp_path / "store", story)


def test_a_write_whose_answer_was_lost_is_found_to_have_happened(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        await reign.create()
        service = reign.service

        commands = service.core.broker_lost(A)
        [write] = commands
        assert isinstance(write, WriteState)
        path = paths.partition_state(*P)
        data = store_nodes.encode_state(write.state, service.controller_epoch)

        async def done_unheard() -> list[Outcome] | None:
            await reign.store.commit(Set(path, data, 0))
            return [StoreAwayError("lost", outcome_unknown=True)]

        reign.store.outcomes = [done_unheard]
        service.run(commands)
        await reign.until(lambda state: state.leader == B, "confirmed")
        node = await reign.store.get(path)
        assert node is not None
        assert node.version == 1, "it was not written twice"

    play(tmp_path / "store", story)


def test_a_storage_error_takes_a_leader_out(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        reign.broker(A).script = storage_error
        await reign.create()
        await reign.until(lambda state: (state.leader, state.isr) == (B, (B, C)), "A is out")
        await reign.service.admin.told([P], 30)
        metadata = reign.broker(C).of(UpdateMetadataRequest)[-1]
        assert metadata.topic_states[0].partition_states[0].offline_replicas == (A,)

    play(tmp_path / "store", story)


def test_a_deleted_topic_stops_before_its_successor_starts(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        planned = await reign.create()
        await reign.service.admin.told(planned.partitions, 30)
        reign.broker(B).is_silent = True
        await reign.service.admin.delete("events")
        assert await reign.store.get(paths.topic("events")) is None
        again = await reign.create()
        assert again.topic_id != planned.topic_id
        await eventually(lambda: bool(reign.broker(B).of(StopReplicaRequest)), "stopped")
        reign.broker(B).is_silent = False
        for _, answered in reign.broker(B).waiting:
            answered(None)
        await reign.service.admin.told(again.partitions, 30)
        kinds = [
            type(one)
            for one in reign.broker(B).heard
            if isinstance(one, StopReplicaRequest | LeaderAndIsrRequest)
        ]
        stop, role = StopReplicaRequest, LeaderAndIsrRequest
        assert kinds == [role, stop, stop, role]
        gone = reign.broker(C).of(UpdateMetadataRequest)
        leaders = [
            (topic.topic_id, topic.partition_states[0].leader)
            for request in gone
            for topic in request.topic_states
        ]
        assert (planned.topic_id, -2) in leaders
        assert leaders[-1] == (again.topic_id, A)

    play(tmp_path / "store", story)


def test_a_damaged_node_leaves_its_partition_alone_and_others_governed(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        await reign.create("events", (A, B), (A, C))
        path = paths.partition_state("events", 1)
        await reign.store.commit(Set(path, b"{"))
        await reign.elector.stop()
        other = Reign(reign.store, B)
        await other.begin()
        assert path in other.lines.getvalue()
        assert list(other.service.core.partitions) == [P]
        await other.die(A)
        await other.until(lambda state: state.leader == B, "the other is governed")
        node = await reign.store.get(path)
        assert node is not None
        assert node.data == b"{"
        await other.elector.stop()

    play(tmp_path / "store", story)


def test_nobody_leads_while_nobody_is_there(tmp_path: Path) -> None:
    async def story(reign: Reign) -> None:
        await reign.create()
        await reign.die(A, B, C)
        await reign.until(lambda state: state.leader == NO_BROKER, "nobody leads")
        assert not reign.service.channels
        assert reign.service.knows(TopicPartition("events", 0))

    play(tmp_path / "store", story)
