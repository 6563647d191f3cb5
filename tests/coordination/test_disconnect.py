"""An injected fault disconnects one broker from the store."""

from __future__ import annotations

import pytest

from holdfast.coordination import Create, SessionState, StoreAwayError
from tests.coordination.backends import Backend, on_loop
from tests.support.waiting import eventually


@on_loop
async def test_a_short_disconnection_keeps_the_session(backend: Backend) -> None:
    async with backend.store() as store, backend.store() as other:
        await store.commit(Create("/mine", ephemeral=True))
        first = store.session_id
        store.disconnect()
        await eventually(lambda: store.state is SessionState.AWAY, "notified that it is away")
        with pytest.raises(StoreAwayError):
            await store.get("/mine")
        await other.commit(Create("/a"))
        assert await other.get("/mine") is not None
        store.reconnect()
        await eventually(lambda: store.state is SessionState.CONNECTED, "notified that it is back")
        assert store.session_id == first
        assert await store.get("/a") is not None


@on_loop
async def test_a_disconnection_beyond_the_timeout_ends_the_session(backend: Backend) -> None:
    async with backend.store(timeout_ms=3000) as store, backend.store() as other:
        await store.commit(Create("/mine", ephemeral=True))
        notified: list[str] = []
        other.watch("/mine", notified.append)  # perhaps of the creation, too
        store.disconnect()
        while await other.get("/mine") is not None:
            await eventually(lambda: bool(notified), "the others see it end")
            notified.clear()
        store.reconnect()
        await eventually(lambda: store.state is SessionState.LOST, "notified that it is lost")
        await store.renew()
        assert store.state is SessionState.CONNECTED
