"""This broker's place in the cluster: log directory ownership, session and registration.

The broker epoch is the change number of the registration. The same transaction writes the node
/holdfast/lives/N, so the change number of that node is the last broker epoch ever assigned. A
clean-shutdown marker counts only if it names that epoch: a disk that was restored from an older
copy does not count as intact.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable
from typing import Final

from holdfast.broker.clock import Clock
from holdfast.broker.errors import StartError
from holdfast.broker.log_lines import LogLines
from holdfast.broker.membership.log_dir_owners import check_together, read_owner
from holdfast.broker.metadata.store_nodes import (
    BrokerNode,
    DamagedNodeError,
    decode_broker,
    encode_broker,
)
from holdfast.broker.settings.listeners import Endpoint
from holdfast.broker.uuids import new_uuid
from holdfast.coordination import (
    ConflictError,
    Create,
    Delete,
    Operation,
    SessionState,
    Set,
    Store,
    StoreError,
    paths,
)
from holdfast.core import BrokerIncarnation, CleanShutdown, Guards
from holdfast.model import BrokerEpoch, BrokerId
from holdfast.storage import LogDirectories, LogDirectory, NoLogDirectoryError
from holdfast.storage.checkpoints.meta_properties import (
    CleanShutdownMarker,
    MetaProperties,
    id_text,
    write_meta_properties,
)

SEPARATOR: Final = ","
"""Between the ids of a broker's log directories in its registration."""
RETRY_S: Final = 0.05
SESSION_LINE_S: Final = 10.0
"""How often to log changes of the session."""


class Membership:
    """One broker's membership in the cluster."""

    def __init__(
        self,
        broker: BrokerId,
        store: Store,
        clock: Clock,
        log: LogLines,
        rng: random.Random,
        registered: Callable[[], None],
    ) -> None:
        self.broker = broker
        self.incarnation = BrokerIncarnation(1, None, Guards())
        self.is_leaving = False
        self._store = store
        self._clock = clock
        self._log = log
        self._rng = rng
        self._on_registered = registered
        self._endpoint = Endpoint("", 0)
        self._rack: str | None = None
        self._directory_ids: tuple[str, ...] = ()
        self._task: asyncio.Task[None] | None = None
        self._unwritten_changes = 0
        self._next_line: asyncio.TimerHandle | None = None

    async def identify(self, directories: LogDirectories) -> str:
        """Check that the directories are ours; returns the cluster id. StartError if not."""
        await asyncio.gather(*map(self._store.ensure_path, paths.LASTING_PATHS))
        owners: dict[str, MetaProperties] = {}
        fresh: list[LogDirectory] = []
        for path, directory in directories.live.items():
            with directories.guarded(directory):
                meta = read_owner(path, directory.disk, self.broker)
                if meta is None:
                    fresh.append(directory)
                else:
                    owners[path] = meta
                    directory.id = meta.directory_id
        check_together(owners)
        path, known = next(iter(owners.items()), ("", None))
        cluster_id = await self._cluster_id(known)
        if known is not None and known.cluster_id != cluster_id:
            raise StartError(
                f"{path} belongs to cluster {known.cluster_id}, and the store is that of cluster "
                f"{cluster_id}: correct log.dirs or the store's address"
            )
        for directory in fresh:
            with directories.guarded(directory):
                directory.id = id_text(new_uuid(self._rng))
                meta = MetaProperties(cluster_id, self.broker, directory.id)
                write_meta_properties(directory.disk, meta)
        if not directories.live:
            raise StartError(str(NoLogDirectoryError(directories.offline)))
        self._directory_ids = tuple(one.id for one in directories.live.values())
        return cluster_id

    async def _cluster_id(self, meta: MetaProperties | None) -> str:
        node = await self._store.get(paths.CLUSTER_ID)
        if node is None:
            if meta is not None:
                raise StartError(
                    f"the store is empty, and this directory belongs to cluster {meta.cluster_id}: "
                    "correct the store's address, or move the directory away to start empty"
                )
            fresh = json.dumps({"version": "1", "id": id_text(new_uuid(self._rng))}).encode()
            # A conflict: another broker of the new cluster was faster.
            with contextlib.suppress(ConflictError):
                await self._store.commit(Create(paths.CLUSTER_ID, fresh))
            node = await self._store.get(paths.CLUSTER_ID)
            assert node is not None
        try:
            return str(json.loads(node.data)["id"])
        except (ValueError, KeyError, TypeError):
            raise StartError(f"the store's node {paths.CLUSTER_ID} is damaged") from None

    async def join(
        self,
        endpoint: Endpoint,
        rack: str | None,
        mark: CleanShutdownMarker | None,
        patience_s: float,
    ) -> None:
        """Register for the first time in this process; StartError if our id is taken."""
        self._endpoint, self._rack = endpoint, rack
        last = await self._store.get(paths.broker_incarnation(self.broker))
        shutdown = None
        if mark is not None and last is not None and mark.broker_epoch == last.modified:
            intact = mark.intact_since if mark.intact_since >= 0 else mark.broker_epoch
            shutdown = CleanShutdown(BrokerEpoch(mark.broker_epoch), BrokerEpoch(intact))
        self.incarnation.started_after(shutdown)
        deadline = self._clock.now_ms() + int(patience_s * 1000)
        while not await self._register():
            if self._clock.now_ms() > deadline:
                raise StartError(
                    f"broker {self.broker} is registered already, from another directory: "
                    "give this one another node.id, or stop the other"
                )
            await asyncio.sleep(RETRY_S)
        self._store.on_session(self._session_changed)

    async def _register(self) -> bool:
        """One attempt; False if another broker holds our id."""
        path, incarnation_path = paths.broker_id(self.broker), paths.broker_incarnation(self.broker)
        present, last = await self._store.get_many([path, incarnation_path])
        operations: list[Operation] = []
        if present is not None:
            if not self._is_own(path, present.data):
                return False
            # We hold the lock of our directories: the process that registered from one is dead.
            operations.append(Delete(path, present.version))
        node = BrokerNode(
            self.broker,
            self._endpoint.host,
            self._endpoint.port,
            self._rack,
            self.incarnation.intact_since,
            SEPARATOR.join(self._directory_ids),
        )
        data = encode_broker(node, self._clock.wall_ms())
        operations.append(Create(path, data, ephemeral=True))
        operations.append(
            Create(incarnation_path) if last is None else Set(incarnation_path, b"", last.version)
        )
        try:
            nodes = await self._store.commit(*operations)
        except ConflictError:
            return False
        self.incarnation.registration_answered(1, BrokerEpoch(nodes[0].created))
        self._log.info("registered", broker_epoch=self.incarnation.broker_epoch)
        self._on_registered()
        return True

    def _is_own(self, path: str, data: bytes) -> bool:
        """Whether the registration is from a directory that we hold now."""
        try:
            theirs = decode_broker(path, data).directory_id.split(SEPARATOR)
        except DamagedNodeError:
            return False
        return any(one in self._directory_ids for one in theirs)

    def _session_changed(self, state: SessionState) -> None:
        self._unwritten_changes += 1
        if self._next_line is None:
            self._write_state()
        if state is SessionState.LOST and not self.is_leaving and self._task is None:
            self.incarnation.session_lost()
            self._task = asyncio.get_running_loop().create_task(self._register_again())

    def _write_state(self) -> None:
        """Log the state now, and further changes together later.

        A readable store with a full disk connects and disconnects ten times a second.
        """
        count, self._unwritten_changes, self._next_line = self._unwritten_changes, 0, None
        if not count or self.is_leaving:
            return
        changes = {"changes": count} if count > 1 else {}
        self._log.info("session", state=self._store.state.value, **changes)
        loop = asyncio.get_running_loop()
        self._next_line = loop.call_later(SESSION_LINE_S, self._write_state)

    async def _register_again(self) -> None:
        """Retry until we have a new session and a new broker epoch; our logs are still intact."""
        try:
            while not self.is_leaving:
                try:
                    await self._store.renew()
                    if await self._register():
                        return
                except StoreError as error:
                    self._log.warning("cannot register", error=str(error))
                await asyncio.sleep(RETRY_S)
        finally:
            self._task = None

    async def leave(self) -> None:
        """End the session: the other brokers are notified immediately."""
        self.is_leaving = True
        if self._task is not None:
            self._task.cancel()
        if self._next_line is not None:
            self._next_line.cancel()
        await self._store.close()
