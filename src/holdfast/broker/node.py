"""A broker: its parts, their construction, start and stop.

Start: lock the log directories, check who owns them, delete stray logs, open the others, register.
The broker leads no partition before the controller says so. Stop: ask the controller to move our
leaderships, leave the store, flush and close every log, and write the clean-shutdown marker.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from holdfast.broker.clock import Clock
from holdfast.broker.controller.conditions import RepeatedTask
from holdfast.broker.controller.controller_election import Elector
from holdfast.broker.controller.host import Host
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.coordinator import CoordinatorParts
from holdfast.broker.errors import StartError
from holdfast.broker.faults.control_socket import ControlSocket
from holdfast.broker.faults.control_target import ControlledBroker
from holdfast.broker.faults.faulty_disk import FaultyDisk
from holdfast.broker.faults.link_faults import Links
from holdfast.broker.fetch.replication_throttle import Quota
from holdfast.broker.fetch.serving import FetchParts
from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.handlers import handlers
from holdfast.broker.log_lines import LogLines
from holdfast.broker.maintenance.maintenance import Maintenance
from holdfast.broker.maintenance.stray_logs import StrayLogs
from holdfast.broker.membership.controlled_shutdown import move_leaderships
from holdfast.broker.membership.patient_start import patiently
from holdfast.broker.membership.registration import Membership
from holdfast.broker.metadata.auto_topic_creation import AutoCreation
from holdfast.broker.metadata.controller_channel import ControllerChannel
from holdfast.broker.metadata.controller_fencing import Commands
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.metrics.definition import MetricParts
from holdfast.broker.metrics.serving import ServedMetrics
from holdfast.broker.network.host_names import canonical_name
from holdfast.broker.network.listener import Limits, Listener
from holdfast.broker.network.peer_connection import PeerTimeouts
from holdfast.broker.network.peer_set import Peers
from holdfast.broker.network.request_counts import RequestCounts
from holdfast.broker.network.requests import Requests
from holdfast.broker.producer_ids import ProducerIds
from holdfast.broker.replication.flushes import wait_for_all
from holdfast.broker.replication.isr_proposals import Proposals
from holdfast.broker.replication.log_failures import FailureReports
from holdfast.broker.replication.replica_fetcher import FetcherParts
from holdfast.broker.replication.replica_fetcher_manager import Fetchers
from holdfast.broker.replication.replicas import ReplicaParts, Replicas
from holdfast.broker.settings import BrokerSettings, Layers
from holdfast.broker.settings.listeners import Endpoint
from holdfast.broker.tasks import RequestTasks, in_parts
from holdfast.broker.trace_events import BrokerTrace
from holdfast.coordination import Store, StoreError, paths
from holdfast.core import LARGEST_SESSION_ID, BrokerIncarnation, FetchSessions
from holdfast.model import BrokerId
from holdfast.storage import (
    DirectoryLockedError,
    Disks,
    DuplicateLogError,
    LogDirectories,
    LogDirectory,
    NoLogDirectoryError,
    RealDisk,
)
from holdfast.storage.power_loss.unflushed_bytes import unflushed_of

T = TypeVar("T")

LISTENERS: Final = "listeners"
SPARE_S: Final = 2.0
"""How much longer than a session timeout we wait for an old session that holds our id."""


def _nothing() -> None:
    pass


class Broker:
    """One broker. The caller passes in the event loop with its clock, the disks, the store and the
    random generator.

    `disks`: one for each of log.dirs, by its path. `begin_stop` asks the caller to call `stop`.
    """

    def __init__(
        self,
        clock: Clock,
        layers: Layers,
        disks: Disks,
        store: Store,
        log: LogLines,
        rng: random.Random,
        *,
        trace: BrokerTrace | None = None,
        begin_stop: Callable[[], None] = _nothing,
    ) -> None:
        settings = BrokerSettings.of(layers)
        self.id = BrokerId(settings.node_id)
        self.clock = clock
        self.loop = loop = clock.loop
        self.log = log
        self.rng = rng
        self.store = store
        self.trace = trace
        self.begin_stop = begin_stop
        self.is_started = self.is_stopping = False
        self.endpoint = Endpoint("", 0)
        self._reload = RepeatedTask(loop, self._reload_configs, log)
        self.tasks = RequestTasks(loop)
        self.configs = Configs(self.id, layers, log)
        self.links = Links(loop, rng)
        self.peers = Peers(loop, self.links, self.id, PeerTimeouts.of(settings))
        self.metadata = Metadata("")
        self.membership = Membership(self.id, store, clock, log, rng, self._registered)
        refused = None if trace is None else trace.command_refused
        self.commands = Commands(self.membership, store, clock, self.tasks, refused)
        self.producer_ids = ProducerIds(self.id, store)
        self.directory = self._open_directories(disks)
        self._put_replication_together(settings)
        self._put_services_together()
        counts = None if settings.metrics_listener is None else RequestCounts()
        requests, limits = Requests(handlers(self), counts), Limits.of(settings, layers)
        self.listener = Listener(settings.listener_name, loop, requests, limits, self.links, log)
        self.metrics = None if counts is None else self._make_metrics(counts)
        self._control: ControlSocket | None = None
        if settings.control is not None:
            self._control = ControlSocket(self._controlled(disks), settings.control, log)

    def _controlled(self, disks: Disks) -> ControlledBroker:
        return ControlledBroker(
            id=self.id,
            state=self.state,
            endpoint=lambda: self.endpoint,
            metrics=lambda: None if self.metrics is None else self.metrics.address,
            is_controller=lambda: self.controller is not None,
            begin_stop=self.begin_stop,
            incarnation=self.incarnation,
            metadata=self.metadata,
            store=self.store,
            replicas=self.replicas,
            links=self.links,
            disks=[disk for disk in disks.values() if isinstance(disk, FaultyDisk)],
            trace=self.trace,
        )

    def _put_replication_together(self, settings: BrokerSettings) -> None:
        loop, clock, log, configs = self.loop, self.clock, self.log, self.configs
        incarnation = self.membership.incarnation
        self.controller_channel = ControllerChannel(self.peers, self.metadata)
        self.follower_quota = Quota(
            clock, lambda: self.settings.follower_replication_throttled_rate
        )
        self.failures = FailureReports(
            self.id, incarnation, loop, self.store, log, lambda: self.is_stopping
        )
        self.proposals = Proposals(self.id, incarnation, loop, self.controller_channel)
        self.replicas = Replicas(
            ReplicaParts(
                broker=self.id,
                clock=clock,
                log=log,
                rng=self.rng,
                trace=self.trace,
                directory=self.directory,
                configs=configs,
                fetchers=Fetchers(
                    FetcherParts(loop, self.peers, incarnation, configs, self.follower_quota, log)
                ),
                proposals=self.proposals,
                failures=self.failures,
            )
        )
        slots = settings.max_incremental_fetch_session_cache_slots
        self.fetch_parts: FetchParts = FetchParts(
            sessions=FetchSessions(slots, partial(self.rng.randrange, 1, LARGEST_SESSION_ID)),
            find=self.replicas.find,
            metadata=self.metadata,
            configs=configs,
            leader_quota=Quota(clock, lambda: self.settings.leader_replication_throttled_rate),
            loop=loop,
            clock=clock,
            trace=self.trace,
        )

    def _put_services_together(self) -> None:
        loop, clock, log, configs = self.loop, self.clock, self.log, self.configs
        self.elector = Elector(
            Host(
                id=self.id,
                loop=loop,
                clock=clock,
                log=log,
                rng=self.rng,
                trace=self.trace,
                store=self.store,
                peers=self.peers,
                configs=configs,
            )
        )
        self.auto_creation = AutoCreation(self.controller_channel, configs, log)
        coordinator = CoordinatorParts(
            clock=clock,
            log=log,
            replicas=self.replicas,
            metadata=self.metadata,
            auto_creation=self.auto_creation,
            is_stopping=lambda: self.is_stopping,
        )
        self.groups = GroupCoordinator(coordinator, configs, self.rng)
        self.stray_logs = StrayLogs(self.store, self.replicas, log)
        self.maintenance = Maintenance(clock, log, configs, self.replicas, lambda: self.is_stopping)

    def _make_metrics(self, counts: RequestCounts) -> ServedMetrics:
        parts = MetricParts(
            state=self.state,
            listener=self.listener,
            requests=counts,
            replicas=self.replicas,
            proposals=self.proposals,
            directory=self.directory,
            groups=self.groups,
            elector=self.elector,
            metadata=self.metadata,
            membership=self.membership,
            store=self.store,
        )
        return ServedMetrics(parts, self.loop, self.log)

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
    def controller(self) -> ControllerService | None:
        """The controller, while this broker is it."""
        return self.elector.controller

    @property
    def incarnation(self) -> BrokerIncarnation:
        """Our registration."""
        return self.membership.incarnation

    def state(self) -> str:
        """starting, running or stopping."""
        if self.is_stopping:
            return "stopping"
        return "running" if self.is_started else "starting"

    # Starting.

    async def start(self) -> None:
        """Start; returns when this broker is registered and listens."""
        settings = self.settings
        if self._control is not None:
            await self._control.open()
        await self._listen(settings)
        if self.metrics is not None and settings.metrics_listener is not None:
            await self.metrics.open(settings.metrics_listener)
        await self.store.open()
        identify = partial(self.membership.identify, self.directory)
        self.metadata.cluster_id = await self._patiently(identify)
        self.store.watch(paths.CONFIG_CHANGES, lambda _: self._reload.soon())
        await self._patiently(partial(self.configs.reload, self.store))
        await self._patiently(partial(self.stray_logs.delete, is_running=False))
        await self.replicas.load()
        for note in self.directory.take_notes():
            self.log.warning("log directory", note=note)
        mark, patience_s = self.directory.last_shutdown, self._patience_s
        join = partial(self.membership.join, self.endpoint, settings.broker_rack, mark, patience_s)
        await self._patiently(join)
        self.is_started = True
        self.elector.start()
        self.maintenance.start()
        self.failures.report_soon()
        self.log.info("started", host=self.endpoint.host, port=self.endpoint.port)

    @property
    def _patience_s(self) -> float:
        return self.settings.session_timeout_ms / 1000 + SPARE_S

    async def _patiently(self, step: Callable[[], Awaitable[T]]) -> T:
        return await patiently(step, self.store, self.clock, self._patience_s, self.log)

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
            self.stray_logs.delete_soon()

    def _directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        self.replicas.directory_failed(directory, error)
        if not self.directory.live:
            self.log.error("no log directory is left")
            self.begin_stop()

    # Settings.

    async def _reload_configs(self) -> None:
        try:
            changed = await self.configs.reload(self.store)
            self.replicas.settings_changed(changed)
            if changed is None:
                self._settings_changed()
        except StoreError as error:
            # The watch is called again when the store is back.
            self.log.warning("settings not read", error=str(error))

    def _settings_changed(self) -> None:
        """The broker's own settings have changed while it runs."""
        self.listener.limits = Limits.of(self.settings, self.configs.layers)
        if self.is_started and not self.is_stopping:
            self.maintenance.settings_changed()

    # Stopping.

    async def stop(self) -> None:
        """Stop cleanly: move leaderships first, then close the logs."""
        if self.is_stopping:
            return
        self.is_stopping = True
        if self.settings.controlled_shutdown_enable:
            channel, own = self.controller_channel, self.incarnation
            await move_leaderships(channel, self.settings, own, self.log)
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
        if self.metrics is not None:
            self.metrics.close()
        if self.trace is not None:
            self.trace.stopped()
        self.log.info("stopped", clean=is_clean)

    def close_control(self) -> None:
        """Close the control socket, if there is one: the process is about to end."""
        if self._control is not None:
            self._control.close()


def make_disk(directory: Path, settings: BrokerSettings) -> RealDisk:
    """The disk of one of log.dirs; one that can fail on request if there is a control socket."""
    directory.mkdir(parents=True, exist_ok=True)
    sharers = len(settings.log_dirs)
    if settings.control is not None:
        disk: RealDisk = FaultyDisk(directory, unflushed_of(directory), sharers=sharers)
    else:
        disk = RealDisk(directory, sharers=sharers)
    disk.wait_for_all = wait_for_all
    return disk
