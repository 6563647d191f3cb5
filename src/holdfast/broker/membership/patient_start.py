"""A broker's start waits for a coordination store that is away for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.broker.clock import Clock
from holdfast.broker.log_lines import LogLines
from holdfast.broker.membership.registration import RETRY_S
from holdfast.coordination import Store, StoreError, StoreUnusableError

T = TypeVar("T")


async def patiently(
    step: Callable[[], Awaitable[T]], store: Store, clock: Clock, patience_s: float, log: LogLines
) -> T:
    """Run a step of the start; retry it while the store is unavailable.

    Opening logs takes long after a crash, and the session gets no heartbeats meanwhile, so each
    attempt renews an expired session.
    """
    deadline = clock.now_ms() + int(patience_s * 1000)
    while True:
        try:
            await store.renew()
            return await step()
        except StoreUnusableError:
            raise
        except StoreError as error:
            if clock.now_ms() > deadline:
                raise
            log.warning("the start waits for the store", error=str(error))
        await asyncio.sleep(RETRY_S)
