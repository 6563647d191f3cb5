"""Faults of the embedded store only: its file, its locks, an event loop that hangs."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.coordination import (
    Create,
    EmbeddedStore,
    SessionState,
    Set,
    StoreAwayError,
    StoreUnusableError,
)
from tests.coordination.backends import EmbeddedBackend, on_loop
from tests.support.waiting import eventually


@pytest.fixture
def embedded(tmp_path: Path) -> EmbeddedBackend:
    return EmbeddedBackend(tmp_path)


def change(file: Path, statement: str) -> None:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute(statement)
    connection.close()


def not_sqlite(file: Path) -> None:
    file.write_bytes(b"broker.id=1\n" * 1000)


def of_another_program(file: Path) -> None:
    change(file, "CREATE TABLE theirs (x)")


def empty(file: Path) -> None:
    file.touch()


def newer(file: Path) -> None:
    asyncio.run(make(file))
    change(file, "PRAGMA user_version = 2")


def damaged(file: Path) -> None:
    asyncio.run(make(file))
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)


def a_folder(file: Path) -> None:
    file.mkdir()


async def make(file: Path) -> None:
    store = EmbeddedStore(file)
    await store.open()
    await store.ensure_path("/some/nodes")
    await store.close()


SPOILS: dict[Callable[[Path], None], str] = {
    not_sqlite: "not a Holdfast store.*name another file",
    of_another_program: "not a Holdfast store.*name another file",
    empty: "not a Holdfast store.*name another file",
    newer: "format 2, and this Holdfast reads format 1",
    damaged: "damaged.*restore",
    a_folder: "cannot be opened.*must",
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(
    embedded: EmbeddedBackend, spoil: Callable[[Path], None]
) -> None:
    spoil(embedded.file)
    with pytest.raises(StoreUnusableError, match=SPOILS[spoil]) as caught:
        asyncio.run(embedded.new().open())
    assert str(embedded.file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusableError, match="the folder must exist"):
        asyncio.run(EmbeddedStore(tmp_path / "missing" / "store.db").open())


@on_loop
async def test_many_processes_may_create_the_file_at_the_same_time(
    embedded: EmbeddedBackend,
) -> None:
    stores = [embedded.new() for _ in range(8)]
    await asyncio.gather(*(store.open() for store in stores))
    assert len({store.session_id for store in stores}) == 8
    for number, store in enumerate(stores):
        await store.commit(Create(f"/{number}"))
    assert await stores[0].children("/") == [str(number) for number in range(8)]
    for store in stores:
        await store.close()
    left = sorted(path.name for path in embedded.file.parent.iterdir())
    assert left == ["store.db", "store.db-sessions"], "nothing lies about"
    assert not list((embedded.file.parent / "store.db-sessions").iterdir())


@on_loop
async def test_opening_waits_for_a_busy_file_and_then_raises_store_away(
    embedded: EmbeddedBackend,
) -> None:
    await make(embedded.file)
    store = embedded.new()
    await embedded.go_away(store)
    with pytest.raises(StoreAwayError, match="locked"):
        await store.open()
    await embedded.come_back(store)
    await store.open()
    await store.close()


@on_loop
async def test_reads_go_on_while_the_file_is_locked(embedded: EmbeddedBackend) -> None:
    async with embedded.store() as store:
        await store.commit(Create("/a", b"1"))
        await embedded.go_away(store)
        node = await store.get("/a")
        assert node is not None
        assert node.data == b"1"
        await embedded.come_back(store)


@on_loop
async def test_a_file_that_was_replaced_is_not_written_any_more(embedded: EmbeddedBackend) -> None:
    async with embedded.store() as store:
        away = embedded.file.with_name("moved.db")
        embedded.file.rename(away)
        await eventually(lambda: store.state is SessionState.AWAY, "the loss is noticed unasked")
        embedded.file.touch()
        with pytest.raises(StoreAwayError, match="taken its place") as caught:
            await store.commit(Create("/a"))
        assert not caught.value.outcome_unknown
        embedded.file.unlink()
        away.rename(embedded.file)
        await eventually(lambda: store.state is SessionState.CONNECTED, "it is back")
        await store.commit(Create("/a"))


@on_loop
async def test_a_watcher_that_lags_too_far_treats_every_node_as_changed(
    embedded: EmbeddedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.coordination.embedded.node_tree.KEPT_CHANGES", 10)
    async with embedded.store() as store:
        await store.commit_all([[Create("/a")], [Create("/b")]])
        notified: list[str] = []
        store.watch("/a", notified.append)
        await store.commit_all([[Set("/b", b"%d" % number)] for number in range(50)])
        await eventually(lambda: bool(notified), "notified, to be safe")


def test_a_broker_whose_event_loop_hangs_loses_its_session(embedded: EmbeddedBackend) -> None:
    hung, release, notified = threading.Event(), threading.Event(), threading.Event()

    async def hang() -> None:
        store = embedded.new(timeout_ms=3000)
        await store.open()
        await store.commit(Create("/hung", ephemeral=True))
        hung.set()
        release.wait(60)
        await eventually(lambda: store.state is SessionState.LOST, "notified when it continues")
        notified.set()
        await store.close()

    async def observe() -> None:
        async with embedded.store() as store:
            assert await asyncio.to_thread(hung.wait, 60)
            gone = asyncio.Event()
            store.watch("/hung", lambda _: gone.set())
            async with asyncio.timeout(60):
                while await store.get("/hung") is not None:
                    await gone.wait()
                    gone.clear()
            release.set()

    thread = threading.Thread(target=lambda: asyncio.run(hang()))
    thread.start()
    try:
        asyncio.run(observe())
    finally:
        release.set()
        thread.join()
    assert notified.is_set()
