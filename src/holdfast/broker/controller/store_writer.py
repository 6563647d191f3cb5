"""The controller's writes to the store: in order, in batches, and only under its epoch.

Each transaction first checks that the controller epoch is still ours. The writes of one tick of the
loop form one batch; the next batch follows the answer. While the store is unavailable the writes
wait and are retried. A write with an unknown outcome is retried too; if the retry conflicts, the
writer reads whether the first attempt succeeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from holdfast.broker.log_lines import LogLines
from holdfast.coordination import (
    Check,
    ConflictError,
    Create,
    Delete,
    Node,
    Operation,
    Outcome,
    SessionLostError,
    Set,
    Store,
    StoreAwayError,
    StoreError,
)

RETRY_S: Final = 0.05

Done = Callable[[tuple[Node, ...] | ConflictError], None]


class ControllerMovedError(Exception):
    """Another broker is the controller now; what was asked may or may not have been written."""


class _Job:
    __slots__ = ("done", "is_unsure", "operations")

    def __init__(self, operations: Sequence[Operation], done: Done) -> None:
        self.operations = operations
        self.done = done
        self.is_unsure = False
        """An earlier attempt may have succeeded."""


class StoreWriter:
    """The only writer of a controller to the store."""

    def __init__(
        self,
        store: Store,
        loop: asyncio.AbstractEventLoop,
        check: Check,
        fenced: Callable[[str], None],
        log: LogLines,
    ) -> None:
        self._store = store
        self._loop = loop
        self._check = check
        self._fenced = fenced
        self._log = log
        self._jobs: list[_Job] = []
        self._task: asyncio.Task[None] | None = None
        self._awaited: dict[asyncio.Future[tuple[Node, ...]], None] = {}
        self._is_closed = False

    def add(self, operations: Sequence[Operation], done: Done) -> None:
        """Write soon; unless the writer is closed, `done` gets the nodes or the conflict."""
        self._jobs.append(_Job(operations, done))
        if self._task is None and not self._is_closed:
            self._task = self._loop.create_task(self._write_all())

    async def write(self, *operations: Operation) -> tuple[Node, ...]:
        """The same, awaited; raises ConflictError or ControllerMovedError."""
        if self._is_closed:
            raise ControllerMovedError
        result: asyncio.Future[tuple[Node, ...]] = self._loop.create_future()
        self._awaited[result] = None

        def done(outcome: tuple[Node, ...] | ConflictError) -> None:
            if result.done():
                return
            if isinstance(outcome, ConflictError):
                result.set_exception(outcome)
            else:
                result.set_result(outcome)

        self.add(operations, done)
        try:
            return await result
        finally:
            del self._awaited[result]

    def close(self) -> None:
        """We are no longer the controller: discard the waiting writes."""
        self._is_closed = True
        self._jobs.clear()
        for result in self._awaited:
            if not result.done():
                result.set_exception(ControllerMovedError())

    async def _write_all(self) -> None:
        try:
            # One batch for the writes of this tick; later ones wait for the answer.
            await asyncio.sleep(0)
            while self._jobs and not self._is_closed:
                jobs, self._jobs = self._jobs, []
                transactions = [(self._check, *job.operations) for job in jobs]
                outcomes = await self._commit(transactions)
                waiting = [
                    job
                    for job, outcome in zip(jobs, outcomes, strict=True)
                    if not await self._settle(job, outcome)
                ]
                if waiting:
                    self._jobs[:0] = waiting
                    await asyncio.sleep(RETRY_S)
        except Exception as error:  # noqa: BLE001  # a controller that cannot write must resign
            self._log.bug("the controller failed", error)
            self._fenced("a bug")
        finally:
            self._task = None

    async def _commit(self, transactions: list[tuple[Operation, ...]]) -> list[Outcome]:
        try:
            return await self._store.commit_all(transactions)
        except StoreError as error:
            return [error] * len(transactions)

    async def _settle(self, job: _Job, outcome: Outcome) -> bool:
        """Whether the job is finished."""
        if self._is_closed:
            return True
        match outcome:
            case tuple():
                job.done(outcome)
            case ConflictError() if outcome.operation == self._check:
                self._fenced(str(outcome))
            case ConflictError() if job.is_unsure:
                return await self._find_out(job, outcome)
            case ConflictError():
                job.done(outcome)
            case SessionLostError():
                self._fenced(str(outcome))
            case StoreAwayError():
                job.is_unsure = job.is_unsure or outcome.outcome_unknown
                return False
            case _:
                self._log.error("the store refused a write", error=str(outcome))
                self._fenced(str(outcome))
        return True

    async def _find_out(self, job: _Job, conflict: ConflictError) -> bool:
        """After a conflict: find out whether an earlier attempt succeeded without an answer."""
        changes = [one for one in job.operations if not isinstance(one, Check)]
        try:
            nodes = await self._store.get_many([one.path for one in changes])
        except StoreError:
            return False
        if all(_has_happened(one, node) for one, node in zip(changes, nodes, strict=True)):
            job.done(tuple(node for node in nodes if node is not None))
        else:
            job.done(conflict)
        return True


def _has_happened(operation: Operation, node: Node | None) -> bool:
    match operation:
        case Delete():
            return node is None
        case Create(data=data) | Set(data=data):
            return node is not None and node.data == data
        case Check():
            return True
