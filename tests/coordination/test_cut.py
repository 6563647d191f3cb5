"""A store that is out of reach on purpose, for one broker only."""

from __future__ import annotations

import pytest

from holdfast.coordination import Create, SessionState, StoreAwayError
from tests.coordination.backends import Backend, on_loop
from tests.support.waiting import eventually


@on_loop
async def test_cut_off_for_a_moment_the_session_goes_on(backend: Backend) -> None:
    async with backend.store() as store, backend.store() as other:
        await store.commit(Create("/mine", ephemeral=True))
        first = store.session_id
        store.disconnect()
        await eventually(lambda: store.state is SessionState.AWAY, "told that it is away")
        with pytest.raises(StoreAwayError):
            await store.get("/mine")
        await other.commit(Create("/a"))
        assert await other.get("/mine") is not None
        store.reconnect()
        await eventually(lambda: store.state is SessionState.CONNECTED, "told that it is back")
        assert store.session_id == first
        assert await store.get("/a") is not None


@on_loop
async def test_cut_off_for_too_long_the_session_ends(backend: Backend) -> None:
    async with backend.store(timeout_ms=3000) as store, backend.store() as other:
        await store.commit(Create("/mine", ephemeral=True))
        told: list[str] = []
        other.watch("/mine", told.append)  # perhaps of the creation, too
        store.disconnect()
        while await other.get("/mine") is not None:
            await eventually(lambda: bool(told), "the others see it end")
            told.clear()
        store.reconnect()
        await eventually(lambda: store.state is SessionState.LOST, "told that it is lost")
        await store.renew()
        assert store.state is SessionState.CONNECTED
