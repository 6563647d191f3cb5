"""Server-sent events: a full snapshot first, then what changed, several times a second at most."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

from holdfast.web.console.watcher import Watcher

PAUSE_S: Final = 0.25
SILENCE_S: Final = 10.0
"""After so long without an event a comment is sent: a dead connection then shows."""


async def events(watcher: Watcher, partition: str) -> AsyncIterator[str]:
    """Every event for one page, until the page goes away."""
    version = picture = 0
    silent_s = 0.0
    yield "retry: 1000\n\n"
    while True:
        sent = False
        update = watcher.hub.since(version)
        if not update.is_empty and update.version:
            version, sent = update.version, True
            yield _event("update", update.to_json())
        if partition:
            picture, lanes = await asyncio.to_thread(watcher.lanes, partition, picture)
            if lanes is not None:
                sent = True
                yield _event("lanes", json.dumps(lanes, separators=(",", ":")))
        silent_s = 0.0 if sent else silent_s + PAUSE_S
        if silent_s >= SILENCE_S:
            silent_s = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(PAUSE_S)


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"
