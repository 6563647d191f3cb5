"""The guarantees of every coordination store: nodes, transactions, watches, sessions."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from holdfast.coordination import (
    Check,
    ConflictError,
    Create,
    Delete,
    Node,
    Operation,
    Reason,
    SessionLostError,
    SessionState,
    Set,
    Store,
    StoreAwayError,
    StoreError,
    paths,
)
from tests.coordination.backends import TIMEOUT_MS, Backend, ZooKeeperBackend, on_loop
from tests.support.waiting import eventually


async def create(store: Store, path: str, data: bytes = b"", *, ephemeral: bool = False) -> Node:
    [node] = await store.commit(Create(path, data, ephemeral))
    return node


@on_loop
async def test_a_node_is_created_read_set_and_deleted(backend: Backend) -> None:
    async with backend.store() as store:
        assert await store.get("/a") is None
        created = await create(store, "/a", b"one")
        assert created == await store.get("/a")
        assert (created.data, created.version, created.is_ephemeral) == (b"one", 0, False)
        assert created.created == created.modified

        [changed] = await store.commit(Set("/a", b"two", version=0))
        assert changed == await store.get("/a")
        assert (changed.data, changed.version, changed.created) == (b"two", 1, created.created)
        assert changed.modified > created.modified

        assert await store.commit(Delete("/a", version=1)) == ()
        assert await store.get("/a") is None


@on_loop
async def test_children_are_named_in_order_and_a_missing_node_has_none(backend: Backend) -> None:
    async with backend.store() as store:
        await create(store, "/a")
        for name in ("c", "b", "bb"):
            await create(store, f"/a/{name}")
        await create(store, "/a/b/deeper")
        assert await store.children("/a") == ["b", "bb", "c"]
        assert await store.children("/nowhere") == []
        assert "a" in await store.children("/")


@on_loop
async def test_many_nodes_are_read_in_one_request(backend: Backend) -> None:
    async with backend.store() as store:
        await create(store, "/a", b"1")
        await create(store, "/b", b"2")
        found = await store.get_many(["/b", "/missing", "/a"])
        assert [node and node.data for node in found] == [b"2", None, b"1"]
        assert await store.get_many([]) == []


@on_loop
async def test_ensure_path_creates_only_the_missing_nodes(backend: Backend) -> None:
    async with backend.store() as store, backend.store() as other:
        await asyncio.gather(store.ensure_path("/x/y/z"), other.ensure_path("/x/y/q"))
        await store.ensure_path("/x/y/z")
        assert await store.children("/x/y") == ["q", "z"]
        for path in paths.LASTING_PATHS:
            await store.ensure_path(path)
        assert await store.children("/brokers") == ["ids", "topics"]


CONFLICTS: dict[str, tuple[Operation, Reason]] = {
    "exists": (Create("/a"), Reason.EXISTS),
    "no parent": (Create("/none/b"), Reason.NO_NODE),
    "under an ephemeral node": (Create("/mine/b"), Reason.EPHEMERAL_PARENT),
    "set, no node": (Set("/none", b""), Reason.NO_NODE),
    "set, version": (Set("/a", b"", version=7), Reason.VERSION),
    "delete, no node": (Delete("/none"), Reason.NO_NODE),
    "delete, version": (Delete("/a/b", version=7), Reason.VERSION),
    "delete, children": (Delete("/a"), Reason.NOT_EMPTY),
    "check, no node": (Check("/none"), Reason.NO_NODE),
    "check, version": (Check("/a", version=7), Reason.VERSION),
}


@pytest.mark.parametrize("name", CONFLICTS)
@on_loop
async def test_a_conflict_names_its_operation_and_undoes_the_rest(
    backend: Backend, name: str
) -> None:
    operation, reason = CONFLICTS[name]
    async with backend.store() as store:
        await store.commit(Create("/a"), Create("/a/b"), Create("/mine", ephemeral=True))
        with pytest.raises(ConflictError) as caught:
            await store.commit(Create("/new"), Set("/a/b", b"changed"), operation, Delete("/mine"))
        assert caught.value.operation == operation
        assert caught.value.reason is reason
        assert operation.path in str(caught.value)
        assert await store.get("/new") is None
        assert await store.get("/mine") is not None
        kept = await store.get("/a/b")
        assert kept is not None
        assert (kept.data, kept.version) == (b"", 0)


@on_loop
async def test_a_transaction_sees_its_own_steps_and_has_one_change_number(backend: Backend) -> None:
    async with backend.store() as store:
        made = await store.commit(
            Create("/a"),
            Create("/a/b", b"1"),
            Check("/a/b", version=0),
            Set("/a/b", b"2", version=0),
            Delete("/a/b", version=1),
            Create("/a/b", b"3"),
        )
        assert [node.data for node in made] == [b"", b"1", b"2", b"3"]
        assert len({node.modified for node in made}) == 1
        assert await store.get("/a/b") == made[-1]


@on_loop
async def test_change_numbers_strictly_rise_over_all_sessions(backend: Backend) -> None:
    async with backend.store() as one, backend.store() as two:
        await create(one, "/a")
        numbers = []
        for _ in range(5):
            for store in (one, two):
                [node] = await store.commit(Set("/a", b""))
                numbers.append(node.modified)
        many = await one.commit_all([[Create(f"/a/{n}")] for n in range(5)])
        numbers += [outcome[0].created for outcome in many if isinstance(outcome, tuple)]
        assert len(numbers) == 15
        assert all(before < after for before, after in itertools.pairwise(numbers))


@on_loop
async def test_transactions_committed_together_fail_alone(backend: Backend) -> None:
    async with backend.store() as store:
        transactions: list[list[Operation]] = [
            [Create("/a", b"1")],
            [Create("/b"), Create("/a")],
            [Set("/a", b"2", version=0)],
            [],
            [Set("/a", b"3", version=0)],
        ]
        first, second, third, empty, last = await store.commit_all(transactions)
        assert isinstance(first, tuple)
        assert isinstance(second, ConflictError)
        assert second.operation == Create("/a")
        assert isinstance(third, tuple)
        assert third[0].version == 1
        assert empty == ()
        assert isinstance(last, ConflictError)
        assert await store.get("/b") is None


@on_loop
async def test_a_thousand_transactions_in_one_request(backend: Backend) -> None:
    async with backend.store() as store:
        await store.ensure_path(paths.partitions("t"))
        made = await store.commit_all([[Create(paths.partition("t", n))] for n in range(1000)])
        assert not [outcome for outcome in made if isinstance(outcome, StoreError)]
        assert len(await store.children(paths.partitions("t"))) == 1000
        found = await store.get_many([paths.partition("t", n) for n in range(1000)])
        assert None not in found


@on_loop
async def test_one_of_many_compare_and_sets_wins_each_round(backend: Backend) -> None:
    async with backend.store() as one, backend.store() as two:
        await create(one, "/counter", b"0")

        async def add(store: Store) -> None:
            while True:  # ends: one contender succeeds in each round
                node = await store.get("/counter")
                assert node is not None
                try:
                    await store.commit(
                        Set("/counter", b"%d" % (int(node.data) + 1), version=node.version)
                    )
                except ConflictError:
                    continue
                return

        await asyncio.gather(*(add(store) for store in (one, two) for _ in range(10)))
        node = await one.get("/counter")
        assert node is not None
        assert (node.data, node.version) == (b"20", 20)


@on_loop
async def test_ephemeral_nodes_vanish_with_their_session(backend: Backend) -> None:
    async with backend.store() as other:
        store = backend.new()
        await store.open()
        node = await create(store, "/mine", ephemeral=True)
        assert node.is_ephemeral
        assert node.owner == store.session_id
        seen = await other.get("/mine")
        assert seen == node
        await create(other, "/lasting")
        await store.close()
        assert await other.get("/mine") is None
        assert await other.get("/lasting") is not None


@on_loop
async def test_any_session_may_delete_an_ephemeral_node(backend: Backend) -> None:
    async with backend.store() as store, backend.store() as other:
        await create(store, "/brokers")
        stale = await create(store, "/brokers/1", ephemeral=True)
        [node] = await other.commit(Delete("/brokers/1", 0), Create("/brokers/1", b"", True))
        assert node.owner == other.session_id
        assert node.created > stale.created


@on_loop
async def test_watches_report_data_existence_and_children(backend: Backend) -> None:
    async with backend.store() as store, backend.store() as other:
        notified: list[str] = []
        watch = store.watch("/a", notified.append)
        assert await store.get("/a") is None
        changes: list[Operation] = [
            Create("/a"),
            Set("/a", b"1"),
            Create("/a/b"),
            Delete("/a/b"),
            Delete("/a"),
            Create("/a", b"again"),
        ]
        for change in changes:
            notified.clear()
            await other.commit(change)
            await eventually(lambda: bool(notified), f"notified of {change}")
            assert set(notified) == {"/a"}
            assert await store.get("/a") == await other.get("/a")
        own: list[str] = []
        store.watch("/a", own.append)
        await store.commit(Set("/a", b"own"))
        await eventually(lambda: bool(own), "notified of our own change")
        await store.get("/a")

        watch.cancel()
        watch.cancel()
        notified.clear()
        own.clear()
        await other.commit(Set("/a", b"unseen"))
        await eventually(lambda: bool(own), "the other watch is notified")
        assert notified == []


@on_loop
async def test_a_watch_misses_no_change_however_fast_they_come(backend: Backend) -> None:
    """A client that reads at each notification ends up with the last value."""
    async with backend.store() as reader, backend.store() as one, backend.store() as two:
        names = [f"/n{number}" for number in range(5)]
        await reader.commit_all([[Create(name, b"0")] for name in names])
        seen: dict[str, bytes] = {}
        reads: list[asyncio.Task[None]] = []

        async def read(path: str) -> None:
            node = await reader.get(path)
            if node is not None and int(node.data) >= int(seen.get(path, b"0")):
                seen[path] = node.data

        for name in names:
            reader.watch(name, lambda path: reads.append(asyncio.create_task(read(path))))
            await read(name)

        async def write(store: Store, name: str) -> None:
            for _ in range(20):
                node = await store.get(name)
                assert node is not None
                data = b"%d" % (int(node.data) + 1)
                await store.commit_all([[Set(name, data, version=node.version)]])

        await asyncio.gather(*(write(store, name) for store in (one, two) for name in names))
        last = {name: node.data for name in names if (node := await one.get(name))}
        await eventually(lambda: seen == last, "the reader has all last values")
        await asyncio.gather(*reads)


@on_loop
async def test_an_expired_session_is_notified_and_refused_until_renewed(
    backend: Backend,
) -> None:
    async with backend.store() as store, backend.store() as other:
        states: list[SessionState] = []
        store.on_session(states.append)
        notified: list[str] = []
        store.watch("/a", notified.append)
        await create(store, "/mine", ephemeral=True)
        first = store.session_id

        await store.expire()
        await eventually(lambda: store.state is SessionState.LOST, "notified that it is lost")
        assert await other.get("/mine") is None
        for attempt in (store.get("/a"), store.children("/"), store.commit(Create("/a"))):
            with pytest.raises(SessionLostError):
                await attempt
        [lost] = await store.commit_all([[Create("/a")]])
        assert isinstance(lost, SessionLostError)
        assert await other.get("/a") is None

        await store.renew()
        assert store.state is SessionState.CONNECTED
        assert store.session_id != first
        assert states[-2:] == [SessionState.LOST, SessionState.CONNECTED]
        assert await store.get("/a") is None  # from here on no change may be missed
        notified.clear()
        await other.commit(Create("/a"))
        await eventually(lambda: bool(notified), "watches outlive the session")
        assert (await create(store, "/mine", ephemeral=True)).owner == store.session_id
        await store.renew()
        assert await other.get("/mine") is not None, "renewing a living session changes nothing"


@on_loop
async def test_a_store_that_is_away_reports_it_and_comes_back_by_itself(backend: Backend) -> None:
    # ZooKeeper is started again meanwhile, and on a busy machine a JVM takes its time.
    timeout_ms = 60_000 if isinstance(backend, ZooKeeperBackend) else TIMEOUT_MS
    async with backend.store(timeout_ms) as store:
        await create(store, "/mine", ephemeral=True)
        states: list[SessionState] = []
        notified: list[str] = []
        store.on_session(states.append)
        store.watch("/mine", notified.append)

        await backend.go_away(store)
        [outcome] = await store.commit_all([[Create("/a")]])
        assert isinstance(outcome, StoreAwayError)
        await eventually(lambda: store.state is SessionState.AWAY, "notified that it is away")
        with pytest.raises(StoreAwayError) as caught:
            await store.commit(Create("/b"))
        assert not caught.value.outcome_unknown

        await backend.come_back(store)
        await eventually(lambda: store.state is SessionState.CONNECTED, "it is back")
        assert states == [SessionState.AWAY, SessionState.CONNECTED]
        assert await store.get("/mine") is not None, "the session has outlived it"
        await eventually(
            lambda: bool(notified), "watches are notified that they may have missed something"
        )
        assert await store.get("/b") is None
        await store.commit(Create("/b"))


@on_loop
async def test_a_cancelled_caller_leaves_the_store_usable(backend: Backend) -> None:
    async with backend.store() as store:
        task = asyncio.create_task(store.commit(Create("/a")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await create(store, "/b")


@on_loop
async def test_a_closed_store_answers_that_there_is_no_session(backend: Backend) -> None:
    store = backend.new()
    await store.open()
    await store.close()
    await store.close()
    with pytest.raises(SessionLostError):
        await store.get("/a")
    with pytest.raises(SessionLostError):
        await store.commit(Create("/a"))
    assert store.state is SessionState.LOST
