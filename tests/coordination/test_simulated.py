"""Behaviour that only the simulated store can show: lost and delayed messages."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.coordination import Create, SessionLostError, SessionState, StoreAwayError
from holdfast.simulation.store.memory_store import MemoryServer, MemoryStore
from tests.coordination.backends import on_loop
from tests.support.waiting import eventually

FOREVER_S = 3600.0


@pytest.mark.parametrize("arrived", [False, True])
@on_loop
async def test_the_outcome_of_a_request_in_flight_is_unknown(arrived: bool) -> None:
    server = MemoryServer()
    store = MemoryStore(server)
    await store.open()
    delays = iter([0.0] if arrived else [])
    server.delay_s = lambda: next(delays, FOREVER_S)
    task = asyncio.create_task(store.commit(Create("/a")))
    await asyncio.sleep(0)
    if arrived:
        await eventually(lambda: "/a" in server.tree.nodes, "arrived")
    store.disconnect()
    with pytest.raises(StoreAwayError) as caught:
        await task
    assert caught.value.outcome_unknown
    server.delay_s = lambda: 0.0
    store.reconnect()
    assert (await store.get("/a") is not None) is arrived


@on_loop
async def test_a_client_that_is_away_too_long_loses_its_session() -> None:
    server = MemoryServer()
    store = MemoryStore(server, session_timeout_ms=10)
    await store.open()
    await store.commit(Create("/mine", ephemeral=True))
    store.disconnect()
    await eventually(lambda: "/mine" not in server.tree.nodes, "the session has ended")
    states = [store.state]
    store.reconnect()
    states.append(store.state)
    assert states == [SessionState.AWAY, SessionState.LOST], "it cannot be notified before"
    with pytest.raises(SessionLostError):
        await store.get("/mine")
    await store.renew()
    await store.commit(Create("/mine", ephemeral=True))


@on_loop
async def test_opening_fails_while_the_store_is_away() -> None:
    store = MemoryStore(MemoryServer())
    store.disconnect()
    with pytest.raises(StoreAwayError):
        await store.open()
    store.reconnect()
    await store.open()
    assert store.state is SessionState.CONNECTED


@on_loop
async def test_messages_of_a_session_keep_their_order_whatever_their_delays() -> None:
    delays = iter([0.0, 0.0, 0.03, 0.01, 0.02, 0.0, 0.01, 0.0])
    store = MemoryStore(MemoryServer(delay_s=lambda: next(delays, 0.0)))
    await store.open()
    made = await asyncio.gather(*(store.commit(Create(f"/{n}")) for n in range(3)))
    numbers = [nodes[0].created for nodes in made]
    assert numbers == sorted(numbers)
