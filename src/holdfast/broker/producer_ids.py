"""Producer ids, from blocks that the coordination store assigns to one broker only."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from holdfast.coordination import ConflictError, Create, Set, Store, paths
from holdfast.model import BrokerId

BLOCK: Final = 1000


class ProducerIds:
    """The current block, and how to get the next one."""

    def __init__(self, broker: BrokerId, store: Store) -> None:
        self._broker = broker
        self._store = store
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def take(self) -> int:
        """A unique producer id."""
        async with self._lock:
            while self._next == self._end:
                await self._take_block()
            taken = self._next
            self._next += 1
            return taken

    async def _take_block(self) -> None:
        node = await self._store.get(paths.PRODUCER_ID_BLOCK)
        start = int(json.loads(node.data)["block_end"]) + 1 if node is not None else 0
        end = start + BLOCK
        data = json.dumps(
            {
                "version": 1,
                "broker": self._broker,
                "block_start": str(start),
                "block_end": str(end - 1),
            }
        ).encode()
        path = paths.PRODUCER_ID_BLOCK
        operation = Create(path, data) if node is None else Set(path, data, node.version)
        try:
            await self._store.commit(operation)
        except ConflictError:
            return  # Another broker was faster: read again.
        self._next, self._end = start, end
