"""Faults of ZooKeeper only: ensembles, addresses, a missing client."""

from __future__ import annotations

import asyncio
import sys

import pytest

from holdfast.coordination import (
    Create,
    SessionState,
    Set,
    StoreAwayError,
    StoreUnusableError,
    ZooKeeperStore,
)
from tests.coordination.backends import TIMEOUT_MS, on_loop
from tests.support.ports import held_port
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperEnsemble, ZooKeeperServer


@pytest.mark.slow
@on_loop
async def test_an_ensemble_goes_on_without_its_leader(
    zookeeper_ensemble: ZooKeeperEnsemble,
) -> None:
    hosts = f"{zookeeper_ensemble.connect_string}/leader-dies"
    store = ZooKeeperStore(hosts, session_timeout_ms=TIMEOUT_MS)
    await store.open()
    [mine] = await store.commit(Create("/mine", ephemeral=True))
    notified: list[str] = []
    store.watch("/mine", notified.append)
    states: list[SessionState] = []
    store.on_session(states.append)

    leader = zookeeper_ensemble.leader()
    await asyncio.to_thread(leader.kill)
    # All servers drop their clients when the leader goes; the next leader lets them in again.
    await eventually(lambda: SessionState.AWAY in states, "the loss is noticed")
    await eventually(lambda: store.state is SessionState.CONNECTED, "another leads")
    assert await store.get("/mine") == mine
    assert SessionState.LOST not in states
    await eventually(
        lambda: bool(notified), "watches are notified that they may have missed something"
    )
    [after] = await store.commit(Set("/mine", b"still here"))
    assert after.modified > mine.modified
    await store.close()
    await asyncio.to_thread(leader.start)


@pytest.mark.slow
@on_loop
async def test_get_newest_reads_the_newest_from_a_lagging_server(
    zookeeper_ensemble: ZooKeeperEnsemble,
) -> None:
    """What one session has committed, another reads from any server."""
    leader = zookeeper_ensemble.leader()
    lagging = next(one for one in zookeeper_ensemble.servers if one is not leader)
    writer = ZooKeeperStore(f"{leader.connect_string}/lags", session_timeout_ms=TIMEOUT_MS)
    reader = ZooKeeperStore(f"{lagging.connect_string}/lags", session_timeout_ms=TIMEOUT_MS)
    await writer.open()
    await reader.open()
    await writer.commit(Create("/node", b"0"))
    for number in range(1, 21):
        lagging.pause()
        try:
            await writer.commit(Set("/node", str(number).encode()))
            reading = asyncio.ensure_future(reader.get_newest(["/node"]))
            await asyncio.sleep(0)
        finally:
            lagging.resume()
        [node] = await reading
        assert node is not None and int(node.data) == number  # noqa: PT018
    await writer.close()
    await reader.close()


@pytest.mark.slow
@on_loop
async def test_a_server_that_is_paused_leaves_the_outcome_unknown(
    zookeeper: ZooKeeperServer,
) -> None:
    store = ZooKeeperStore(f"{zookeeper.connect_string}/paused", session_timeout_ms=4000)
    await store.open()
    zookeeper.pause()
    try:
        [outcome] = await store.commit_all([[Create("/a")]])
        assert isinstance(outcome, StoreAwayError)
        assert outcome.outcome_unknown, "it may be in the server's mailbox"
        await eventually(lambda: store.state is SessionState.AWAY, "notified that it is away")
    finally:
        zookeeper.resume()
    await eventually(lambda: store.state is not SessionState.AWAY, "reached again")
    await store.renew()
    assert await store.children("/") in ([], ["a"])
    await store.close()


@pytest.mark.slow
@on_loop
async def test_a_missing_server_is_one_clear_error() -> None:
    with held_port() as port:
        store = ZooKeeperStore(f"127.0.0.1:{port}", connect_timeout_ms=500)
        with pytest.raises(StoreAwayError, match=rf"127\.0\.0\.1:{port} does not answer; check"):
            await store.open()
        await store.close()


@on_loop
async def test_a_malformed_address_is_one_clear_error() -> None:
    with pytest.raises(StoreUnusableError, match=r"is not a ZooKeeper address.*write host:port"):
        await ZooKeeperStore("localhost:notaport").open()


@on_loop
async def test_a_missing_kazoo_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    monkeypatch.delitem(sys.modules, "holdfast.coordination.zookeeper.kazoo_session", raising=False)
    with pytest.raises(StoreUnusableError, match=r"pip install holdfast\[zookeeper\]"):
        await ZooKeeperStore("localhost:2181").open()
