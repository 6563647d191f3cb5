"""A broker as a process: its event loop, log, signals, and the real disks and network."""

from __future__ import annotations

import asyncio
import random
import resource
import signal
from typing import Final

from holdfast.broker.clock import Clock
from holdfast.broker.errors import DisksLostError, StartError
from holdfast.broker.log_lines import LogLines
from holdfast.broker.node import Broker, make_disk
from holdfast.broker.parent_watch import end_with_parent
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
    # The trace may lie in a directory that exists only now.
    disks, store = make_disks(settings), make_store(settings)
    trace = None if settings.trace is None else TraceFile(settings.trace, settings.node_id)
    broker = Broker(
        Clock(loop),
        layers,
        disks,
        store,
        log,
        random.Random(),  # noqa: S311
        trace=None if trace is None else BrokerTrace(trace),
        begin_stop=stop.set,
    )
    try:
        await broker.start()
        await stop.wait()
        await broker.stop()
        if not broker.directory.live:
            raise DisksLostError(str(NoLogDirectoryError(broker.directory.offline)))
    except StoreError as error:
        raise StartError(str(error)) from error
    finally:
        broker.close_control()
        if trace is not None:
            trace.close()


def _allow_many_files() -> None:
    """Raise the limit of descriptors: each connection and unflushed segment needs one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def make_disks(settings: BrokerSettings) -> Disks:
    """One disk, or its error, for each of log.dirs."""
    disks: dict[str, RealDisk | OSError] = {}
    for directory in settings.log_dirs:
        try:
            disks[str(directory)] = make_disk(directory, settings)
        except OSError as error:
            disks[str(directory)] = error
    return disks


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
