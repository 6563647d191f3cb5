"""A separate process with a session, for tests that kill or stop it.

    python holder.py embedded|zookeeper ADDRESS TIMEOUT_MS PATH [with-child]

It tries to create an ephemeral node and prints `won` or `taken`, then each new state of its
session. For every line on its standard input it tries to create a lasting node of that name, and
prints `done` or the error's name. It ends with its input, and so does the child it may have, which
inherits every descriptor that can be inherited.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from holdfast.coordination import (
    ConflictError,
    Create,
    EmbeddedStore,
    SessionState,
    Store,
    StoreError,
    ZooKeeperStore,
)


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def say_state(state: SessionState) -> None:
    say(state.value)


async def attempt(store: Store, create: Create) -> str:
    try:
        await store.commit(create)
    except StoreError as error:
        return type(error).__name__
    return "done"


def start_child() -> None:
    subprocess.Popen(["cat"], stdout=subprocess.DEVNULL, close_fds=False)


async def main(kind: str, address: str, timeout_ms: int, path: str, *options: str) -> None:
    store: Store
    if kind == "embedded":
        store = EmbeddedStore(Path(address), session_timeout_ms=timeout_ms)
    else:
        store = ZooKeeperStore(address, session_timeout_ms=timeout_ms)
    await store.open()
    if "with-child" in options:
        start_child()
    try:
        await store.commit(Create(path, ephemeral=True))
        say("won")
    except ConflictError:
        say("taken")
    store.on_session(say_state)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        say(await attempt(store, Create(line.strip())))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:]))
