"""A cluster for asyncio: every method that blocks is a coroutine."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Final, Self

from holdfast.cluster.cluster import Cluster

AT_ONCE: Final = ("client", "entry", "files", "is_running", "running", "died", "producer")
"""Methods that only look something up or create an object."""


class AsyncCluster:
    """Every method of `Cluster` as a coroutine; its properties unchanged.

    Threads do the work, so the event loop stays free.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.sync = cluster
        """The cluster itself."""

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.sync.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.sync.close, clean=not self.sync.is_ephemeral)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.sync, name)
        if name.startswith("_") or not callable(found) or name in AT_ONCE:
            return found
        return _awaited(found)


def _awaited(method: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    @functools.wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(method, *args, **kwargs)

    return call
