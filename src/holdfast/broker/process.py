"""A broker as a process: its loop, its log, its signals, and the real outside."""

from __future__ import annotations

import asyncio
import random
import signal
from typing import Final

from holdfast.broker.errors import StartError
from holdfast.broker.log_lines import LogLines
from holdfast.broker.node import Broker
from holdfast.broker.settings import BrokerSettings, Layers
from holdfast.coordination import EmbeddedStore, Store, StoreError
from holdfast.storage import RealDisk

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def run(layers: Layers) -> None:
    """Serve until a signal says stop. StartError if the broker cannot start."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(layers))
    else:
        uvloop.run(_serve(layers))


async def _serve(layers: Layers) -> None:
    settings = BrokerSettings.of(layers)
    log = LogLines(settings.node_id)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    broker = make_broker(loop, layers, settings, log)
    try:
        await broker.start()
    except StoreError as error:
        raise StartError(str(error)) from error
    await stop.wait()
    await broker.stop()


def make_broker(
    loop: asyncio.AbstractEventLoop, layers: Layers, settings: BrokerSettings, log: LogLines
) -> Broker:
    """A broker on this machine's disk and the store that the settings name."""
    if len(settings.log_dirs) > 1:
        raise StartError(
            "log.dirs names several directories; a broker of ours keeps its logs in one"
        )
    directory = settings.log_dirs[0]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"cannot use {directory} ({error.strerror}): mend log.dirs") from None
    return Broker(
        loop,
        layers,
        RealDisk(directory),
        make_store(settings),
        log,
        random.Random(),  # noqa: S311
    )


def make_store(settings: BrokerSettings) -> Store:
    """The agreed store: a file for the brokers of one machine, or ZooKeeper."""
    if settings.store is not None:
        timeout_ms = settings.broker_session_timeout_ms
        return EmbeddedStore(settings.store, session_timeout_ms=timeout_ms)
    from holdfast.coordination import ZooKeeperStore

    assert settings.zookeeper_connect is not None
    return ZooKeeperStore(
        settings.zookeeper_connect, session_timeout_ms=settings.zookeeper_session_timeout_ms
    )
