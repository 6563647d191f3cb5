"""A broker as a process: its event loop, log, signals, and the real disks and network."""

from __future__ import annotations

import asyncio
import random
import resource
import signal
from pathlib import Path
from typing import Final

from holdfast.broker.errors import DisksLostError, StartError
from holdfast.broker.faults.control_socket import ControlSocket
from holdfast.broker.faults.control_target import ControlledBroker
from holdfast.broker.faults.faulty_disk import FaultyDisk
from holdfast.broker.faults.unflushed_bytes import UNFLUSHED
from holdfast.broker.log_lines import LogLines
from holdfast.broker.node import Broker
from holdfast.broker.parent_watch import end_with_parent
from holdfast.broker.replication.flushes import wait_for_all
from holdfast.broker.settings import BrokerSettings, Layers
from holdfast.broker.trace_events import BrokerTrace
from holdfast.broker.trace_file import TraceFile
from holdfast.coordination import EmbeddedStore, Store, StoreError
from holdfast.storage import Disks, NoLogDirectoryError, RealDisk

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def run(layers: Layers) -> None:
    """Serve until a signal stops the process.

    StartError if the broker cannot start, DisksLostError if all its log directories have failed.
    """
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(layers))
    else:
        uvloop.run(_serve(layers))


async def _serve(layers: Layers) -> None:
    settings = BrokerSettings.of(layers)
    _allow_many_files()
    log = LogLines(settings.node_id)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    end_with_parent()
    disks = make_disks(settings)
    trace = None if settings.trace is None else TraceFile(settings.trace, settings.node_id)
    broker = make_broker(loop, layers, settings, disks, trace, log)
    broker.on_no_directory = stop.set
    controlled, control = None, None
    if settings.control is not None:
        faulty = [disk for disk in disks.values() if isinstance(disk, FaultyDisk)]
        controlled = ControlledBroker(broker, faulty, stop.set)
        control = ControlSocket(controlled, settings.control, log)
        await control.open()
    try:
        await broker.start()
        if controlled is not None:
            controlled.is_started = True
        await stop.wait()
        await broker.stop()
        if not broker.directory.live:
            raise DisksLostError(str(NoLogDirectoryError(broker.directory.offline)))
    except StoreError as error:
        raise StartError(str(error)) from error
    finally:
        if control is not None:
            control.close()
        if trace is not None:
            trace.close()


def _allow_many_files() -> None:
    """Raise the limit of descriptors: each connection and unflushed segment needs one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def make_disks(settings: BrokerSettings) -> dict[str, RealDisk | OSError]:
    """One disk, or its error, for each of log.dirs; disks that can fail on request if the broker
    has a control socket.
    """
    disks: dict[str, RealDisk | OSError] = {}
    is_faulty, sharers = settings.control is not None, len(settings.log_dirs)
    for directory in settings.log_dirs:
        try:
            disks[str(directory)] = _make_disk(directory, sharers, is_faulty=is_faulty)
        except OSError as error:
            disks[str(directory)] = error
    return disks


def _make_disk(directory: Path, sharers: int, *, is_faulty: bool) -> RealDisk:
    directory.mkdir(parents=True, exist_ok=True)
    side = directory.with_name(f"{directory.name}{UNFLUSHED}")
    if is_faulty:
        disk: RealDisk = FaultyDisk(directory, side, sharers=sharers)
    else:
        disk = RealDisk(directory, sharers=sharers)
    disk.wait_for_all = wait_for_all
    return disk


def make_broker(
    loop: asyncio.AbstractEventLoop,
    layers: Layers,
    settings: BrokerSettings,
    disks: Disks,
    trace: TraceFile | None,
    log: LogLines,
) -> Broker:
    """A broker on these disks and the store that the settings name."""
    return Broker(
        loop,
        layers,
        disks,
        make_store(settings),
        log,
        random.Random(),  # noqa: S311
        None if trace is None else BrokerTrace(trace),
    )


def make_store(settings: BrokerSettings) -> Store:
    """The coordination store: a file for the brokers of one machine, or ZooKeeper."""
    if settings.store is not None:
        timeout_ms = settings.broker_session_timeout_ms
        return EmbeddedStore(settings.store, session_timeout_ms=timeout_ms)
    from holdfast.coordination import ZooKeeperStore

    assert settings.zookeeper_connect is not None
    return ZooKeeperStore(
        settings.zookeeper_connect,
        session_timeout_ms=settings.zookeeper_session_timeout_ms,
        connect_timeout_ms=settings.zookeeper_connection_timeout_ms,
    )
