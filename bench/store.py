"""The embedded store: time to notice a death, cost of idling, rate of commits.

    death      from kill -9 of a process until another process's watch reports its node gone
    change     from a commit in one session until a watch in another session fires
    idle       CPU of one open store that has two neighbours, in percent of one core
    commits    one after the other, and 1,000 partition states in one call
    start      opening a store with 1,000 states, and reading them

Exit code 0 always: a shared machine is no place for a verdict.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from holdfast.coordination import Create, EmbeddedStore, Set, paths

SCHEMA = "holdfast-bench-store/1"
STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}'
PARTITIONS = 1000

VICTIM = """
import asyncio, sys
from pathlib import Path
from holdfast.coordination import Create, EmbeddedStore

async def main():
    store = EmbeddedStore(Path(sys.argv[1]))
    await store.open()
    await store.commit(Create("/victim", ephemeral=True))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def until_gone(store: EmbeddedStore, path: str, notified: asyncio.Event) -> float:
    """The time at which the node is gone."""
    while await store.get(path) is not None:
        await notified.wait()
        notified.clear()
    return time.perf_counter()


async def death_ms(file: Path, store: EmbeddedStore) -> float:
    """From kill -9 until the watch has reported it."""
    victim = await asyncio.create_subprocess_exec(
        sys.executable, "-c", VICTIM, str(file), stdout=subprocess.PIPE
    )
    assert victim.stdout is not None
    await victim.stdout.readline()
    notified = asyncio.Event()
    watch = store.watch("/victim", lambda _: notified.set())
    started = time.perf_counter()
    victim.kill()
    ended = await until_gone(store, "/victim", notified)
    watch.cancel()
    await victim.wait()
    return (ended - started) * 1000


async def change_ms(store: EmbeddedStore, other: EmbeddedStore) -> float:
    """From the answer to a commit until another session is notified."""
    notified = asyncio.Event()
    watch = store.watch("/changing", lambda _: notified.set())
    await other.commit(Set("/changing", b""))
    started = time.perf_counter()
    await notified.wait()
    watch.cancel()
    return (time.perf_counter() - started) * 1000


async def idle_percent(seconds: float) -> float:
    """Percent of one core for each of the three stores of this process."""
    started = time.process_time()
    await asyncio.sleep(seconds)
    return (time.process_time() - started) / seconds * 100 / 3


async def measure(file: Path, rounds: int, idle_s: float) -> dict[str, float]:
    """All figures."""
    store, other, third = EmbeddedStore(file), EmbeddedStore(file), EmbeddedStore(file)
    for each in (store, other, third):
        await each.open()
    await store.commit(Create("/changing"))
    deaths = [await death_ms(file, store) for _ in range(rounds)]
    changes = [await change_ms(store, other) for _ in range(rounds)]
    idle = await idle_percent(idle_s)

    started = time.perf_counter()
    for _ in range(100):
        await store.commit(Set("/changing", STATE))
    single = (time.perf_counter() - started) / 100

    await store.ensure_path(paths.partitions("t"))
    await store.commit_all([[Create(paths.partition("t", n))] for n in range(PARTITIONS)])
    names = [paths.partition_state("t", n) for n in range(PARTITIONS)]
    started = time.perf_counter()
    await store.commit_all([[Create(name, STATE)] for name in names])
    together = time.perf_counter() - started

    fresh = EmbeddedStore(file)
    started = time.perf_counter()
    await fresh.open()
    await fresh.get_many(names)
    start = time.perf_counter() - started
    for each in (store, other, third, fresh):
        await each.close()
    return {
        "death_median_ms": statistics.median(deaths),
        "death_worst_ms": max(deaths),
        "change_median_ms": statistics.median(changes),
        "idle_percent_of_a_core": idle,
        "commit_ms": single * 1000,
        "commit_1000_together_ms": together * 1000,
        "open_and_read_1000_ms": start * 1000,
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--idle", type=float, default=5.0, help="seconds")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.db"
        figures = asyncio.run(measure(file, arguments.rounds, arguments.idle))
    if arguments.json:
        print(json.dumps({"schema": SCHEMA, **figures}))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):26} {value:8.2f}")


if __name__ == "__main__":
    main()
