"""A broker: its parts, their construction, start and stop.

Start: lock the log directories, check who owns them, delete stray logs, open the others, register.
The broker leads no partition before the controller says so. Stop: ask the controller to move our
leaderships, leave the store, flush and close every log, and write the clean-shutdown marker.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.broker.apis import HANDLERS
from holdfast.broker.clock import Clock
from holdfast.broker.controller.controller_election import Elector
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.coordinator import CoordinatorParts
from holdfast.broker.errors import StartError
from holdfast.broker.faults.link_faults import Links
from holdfast.broker.fetch.fetch_sessions import FetchSessions
from holdfast.broker.fetch.replication_throttle import Quota
from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.log_lines import LogLines
from holdfast.broker.maintenance.maintenance import Maintenance
from holdfast.broker.maintenance.stray_logs import delete_stray_logs
from holdfast.broker.membership.controlled_shutdown import move_leaderships
from holdfast.broker.membership.registration import RETRY_S, Membership
from holdfast.broker.metadata.auto_topic_creation import AutoCreation
from holdfast.broker.metadata.controller_fencing import Commands
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.host_names import canonical_name
from holdfast.broker.network.listener import Limits, Listener
from holdfast.broker.network.peer_connection import PeerTimeouts
from holdfast.broker.network.peer_set import Peers
from holdfast.broker.producer_ids import ProducerIds
from holdfast.broker.replication.isr_proposals import Proposals
from holdfast.broker.replication.log_failures import FailureReports
from holdfast.broker.replication.replica_fetcher import Fetchers
from holdfast.broker.replication.replicas import Replicas
from holdfast.broker.settings import BrokerSettings, Layers
from holdfast.broker.settings.listeners import Endpoint
from holdfast.broker.tasks import RequestTasks, in_parts
from holdfast.coordination import Store, StoreError, StoreUnusableError, paths
from holdfast.core import BrokerIncarnation
from holdfast.model import BrokerId
from holdfast.storage import (
    DirectoryLockedError,
    Disks,
    DuplicateLogError,
    LogDirectories,
    LogDirectory,
    NoLogDirectoryError,
)

if TYPE_CHECKING:
    from holdfast.broker.trace_events import BrokerTrace

T = TypeVar("T")

LISTENERS: Final = "listeners"
SPARE_S: Final = 2.0
"""How much longer than a session timeout we wait for an old session that holds our id."""


class Broker:
    """One broker. The caller passes in the loop, disks, store, random generator and clock.

    `disks`: one for each of log.dirs, by its path.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        layers: Layers,
        disks: Disks,
        store: Store,
        log: LogLines,
        rng: random.Random,
        trace: BrokerTrace | None = None,
        clock: Clock | None = None,
    ) -> None:
        settings = BrokerSettings.of(layers)
        self.id = BrokerId(settings.node_id)
        self.loop = loop
        self.log = log
        self.rng = rng
        self.store = store
        self.trace = trace
        self.tasks = RequestTasks(loop, log)
        self._strays: asyncio.Task[None] | None = None
        self.is_started = self.is_stopping = False
        self.clock = clock or Clock(loop)
        self.configs = Configs(self.id, layers, log)
        self.links = Links(loop, rng)
        self.peers = Peers(loop, self.links, self.id, _peer_timeouts(settings))
        self.membership = Membership(self.id, store, self.clock, log, rng, self._registered)
        self.metadata = Metadata("")
        self.fetch_sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots, rng)
        self.leader_quota = Quota(
            self.clock, lambda: self.settings.leader_replication_throttled_rate
        )
        self.follower_quota = Quota(
            self.clock, lambda: self.settings.follower_replication_throttled_rate
        )
        self.producer_ids = ProducerIds(self.id, store)
        self.controller: ControllerService | None = None
        self.commands = Commands(self)
        self.directory = self._open_directories(disks)
        self.replicas = Replicas(self.id, loop, self.clock, self.directory, self.configs, log, rng)
        self.replicas.trace = trace
        self.replicas.fetchers = Fetchers(self)
        self.replicas.proposals = Proposals(self)
        self.failures = FailureReports(self)
        self.replicas.on_failure = self.failures.report_soon
        self.elector = Elector(self)
        self.auto_creation = AutoCreation(self)
        coordinator = CoordinatorParts(
            loop=loop,
            clock=self.clock,
            log=log,
            replicas=self.replicas,
            metadata=self.metadata,
            auto_creation=self.auto_creation,
            is_stopping=lambda: self.is_stopping,
        )
        self.groups = GroupCoordinator(coordinator, self.configs, rng)
        self.maintenance = Maintenance(self)
        handlers = {key: partial(handle, self) for key, handle in HANDLERS.items()}
        self.listener = Listener(loop, handlers, _limits(settings, layers), self.links, log)
        self.endpoint = Endpoint("", 0)
        self.on_no_directory: Callable[[], None] = _nothing
        """Called when the last log directory has failed: there is nothing left to serve."""
        self._reload: asyncio.Task[None] | None = None

    def _open_directories(self, disks: Disks) -> LogDirectories:
        try:
            found = LogDirectories(disks, lambda name: self.configs.of_topic(name.topic).log)
        except DirectoryLockedError as error:
            raise StartError(f"{error}: another broker uses this directory") from None
        except (DuplicateLogError, NoLogDirectoryError) as error:
            raise StartError(str(error)) from None
        found.on_offline = self._directory_failed
        return found

    @property
    def settings(self) -> BrokerSettings:
        """The current settings."""
        return self.configs.settings

    @property
    def incarnation(self) -> BrokerIncarnation:
        """Our registration."""
        return self.membership.incarnation

    @property
    def fetch_max_bytes(self) -> int:
        """fetch.max.bytes: no answer is larger, except one with a single batch."""
        return self.settings.fetch_max_bytes

    # Starting.

    async def start(self) -> None:
        """Start; returns when this broker is registered and listens."""
        settings = self.settings
        await self._listen(settings)
        await self.store.open()
        identify = partial(self.membership.identify, self.directory)
        self.metadata.cluster_id = await self._patiently(identify)
        self.store.watch(paths.CONFIG_CHANGES, lambda _: self._reload_soon())
        await self._patiently(partial(self.configs.reload, self.store))
        await self._patiently(partial(delete_stray_logs, self, is_running=False))
        await self.replicas.load()
        for note in self.directory.take_notes():
            self.log.warning("log directory", note=note)
        mark, patience_s = self.directory.last_shutdown, self._patience_s
        join = partial(self.membership.join, self.endpoint, settings.broker_rack, mark, patience_s)
        await self._patiently(join)
        self.is_started = True
        self.elector.start()
        self.maintenance.start()
        if self.replicas.failures:
            self.failures.report_soon()
        self.log.info("started", host=self.endpoint.host, port=self.endpoint.port)

    @property
    def _patience_s(self) -> float:
        return _session_s(self.settings) + SPARE_S

    async def _patiently(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run a step of the start; retry it while the store is unavailable.

        Opening logs takes long after a crash, and the session gets no heartbeats meanwhile, so each
        attempt renews an expired session.
        """
        deadline = self.clock.now_ms() + int(self._patience_s * 1000)
        while True:
            try:
                await self.store.renew()
                return await step()
            except StoreUnusableError:
                raise
            except StoreError as error:
                if self.clock.now_ms() > deadline:
                    raise
                self.log.warning("the start waits for the store", error=str(error))
            await asyncio.sleep(RETRY_S)

    async def _listen(self, settings: BrokerSettings) -> None:
        host, port = settings.listener
        try:
            port = await self.listener.open(host, port)
        except OSError as error:
            raise StartError(
                f"cannot listen on {host}:{port} ({error.strerror}): another process may use it; "
                "change listeners"
            ) from None
        if LISTENERS not in self.configs.layers.static:
            self.log.info("only this machine's clients are served: listeners is not set", host=host)
        advertised = settings.advertised_listener
        name = advertised.host or await self.loop.run_in_executor(None, canonical_name)
        self.endpoint = Endpoint(name, advertised.port or port)

    def _registered(self) -> None:
        if self.trace is not None:
            self.trace.registered(self.incarnation.broker_epoch)
        if self.is_started:
            # We were away: topics may have been deleted meanwhile.
            self._strays = self.loop.create_task(self._look_for_strays())

    async def _look_for_strays(self) -> None:
        try:
            await delete_stray_logs(self, is_running=True)
        except (StoreError, OSError) as error:
            self.log.warning("stray logs not checked", error=error)

    def _directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        self.replicas.directory_failed(directory, error)
        if not self.directory.live:
            self.log.error("no log directory is left")
            self.on_no_directory()

    # Settings.

    def _reload_soon(self) -> None:
        if self._reload is None:
            self._reload = self.loop.create_task(self._reload_configs())

    async def _reload_configs(self) -> None:
        try:
            changed = await self.configs.reload(self.store)
            self.replicas.settings_changed(changed)
            if changed is None:
                self._settings_changed()
        except StoreError as error:
            # The watch is called again when the store is back.
            self.log.warning("settings not read", error=str(error))
        finally:
            self._reload = None

    def _settings_changed(self) -> None:
        """The broker's own settings have changed while it runs."""
        self.listener.limits = _limits(self.settings, self.configs.layers)
        if self.is_started and not self.is_stopping:
            self.maintenance.settings_changed()

    # Stopping.

    async def stop(self) -> None:
        """Stop cleanly: move leaderships first, then close the logs."""
        if self.is_stopping:
            return
        self.is_stopping = True
        if self.settings.controlled_shutdown_enable:
            await move_leaderships(self)
        await self.elector.stop()
        self.listener.close()
        self.peers.close()
        self.maintenance.stop()
        self.groups.stop()
        for partition in tuple(self.replicas.partitions.values()):
            partition.write()
        high_watermarks = self.replicas.high_watermarks()
        epoch, intact_since = self.incarnation.broker_epoch, self.incarnation.intact_since
        self.membership.is_leaving = True
        await self.maintenance.finish()
        await in_parts(self.directory.closing(self.clock.wall_ms()))
        is_clean = self.directory.close(self.clock.wall_ms(), epoch, high_watermarks, intact_since)
        await self.membership.leave()
        if self.trace is not None:
            self.trace.stopped()
        self.log.info("stopped", clean=is_clean)


def _nothing() -> None:
    pass


def _session_s(settings: BrokerSettings) -> float:
    if settings.store is not None:
        return settings.broker_session_timeout_ms / 1000
    return settings.zookeeper_session_timeout_ms / 1000


def _peer_timeouts(settings: BrokerSettings) -> PeerTimeouts:
    return PeerTimeouts(
        connect_s=settings.socket_connection_setup_timeout_ms / 1000,
        answer_s=settings.request_timeout_ms / 1000,
        fetch_s=settings.replica_socket_timeout_ms / 1000,
    )


def _limits(settings: BrokerSettings, layers: Layers) -> Limits:
    def if_set(name: str, value: int) -> int:
        return value if name in layers.static else -1

    return Limits(
        request_bytes=settings.socket_request_max_bytes,
        connections=settings.max_connections,
        connections_per_address=settings.max_connections_per_ip,
        of_address=settings.max_connections_per_ip_overrides,
        send_buffer_bytes=if_set("socket.send.buffer.bytes", settings.socket_send_buffer_bytes),
        receive_buffer_bytes=if_set(
            "socket.receive.buffer.bytes", settings.socket_receive_buffer_bytes
        ),
        queued_bytes=settings.queued_max_request_bytes,
        idle_s=settings.connections_max_idle_ms / 1000,
        backlog=settings.socket_listen_backlog_size,
    )
