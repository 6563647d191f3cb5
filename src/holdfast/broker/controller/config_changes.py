"""Changes of settings: checked, written to the store, and only then visible to brokers.

The core decides when a topic's settings may be written (`core.controller.settings_changes`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holdfast.broker.controller.topics import CHANGED
from holdfast.broker.errors import RefusedError
from holdfast.broker.metadata.store_nodes import decode_config, encode_config
from holdfast.broker.settings import (
    Alteration,
    Layers,
    TopicConfigs,
    alter_broker,
    alter_cluster,
    alter_topic,
)
from holdfast.coordination import Check, Create, Operation, Set, paths
from holdfast.core import Settings
from holdfast.model import ErrorCode

if TYPE_CHECKING:
    from holdfast.broker.controller.service import ControllerService

TOPIC: Final = 2
BROKER: Final = 4
AGREE_S: Final = 10.0
_MINIMUM: Final = "min.insync.replicas"

Asked = Callable[[dict[str, str]], Sequence[Alteration]]
"""Returns the new settings, given the current ones."""


async def alter_topic_configs(
    service: ControllerService, name: str, asked: Asked, *, validate_only: bool
) -> None:
    """Change a topic's settings; RefusedError."""
    async with service.config_changes:
        if name not in service.topics:  # Perhaps deleted while we waited for an earlier change.
            raise RefusedError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        own = service.topic_configs.get(name, {})
        configs = TopicConfigs(own, service.layers)
        changed = alter_topic(configs, asked(own))
        if validate_only or changed == own:
            return
        settings = {name: service.core_settings(name, changed)}
        async with _in_order(service, settings):
            exists = Check(paths.topic(name))
            await _write(service, paths.topic_config(name), changed, exists)
            if name in service.topics:
                service.topic_configs[name] = changed


async def alter_broker_configs(
    service: ControllerService, name: str, asked: Asked, *, validate_only: bool
) -> None:
    """Change the settings of one broker, or of all if the name is empty."""
    if name and not name.isdecimal():
        raise RefusedError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        )
    async with service.config_changes:
        layers = service.layers
        path = paths.broker_config(int(name) if name else paths.ALL_BROKERS)
        node = await service.host.store.get(path)
        own = decode_config(path, node.data) if node is not None else {}
        if name:
            await _alter_one(
                service, path, replace(layers, broker=own), asked, validate_only=validate_only
            )
        else:
            after = alter_cluster(replace(layers, cluster=own), asked(own))
            await _alter_all(service, path, after, validate_only=validate_only)


async def _alter_one(
    service: ControllerService, path: str, layers: Layers, asked: Asked, *, validate_only: bool
) -> None:
    own = dict(layers.broker)
    alterations = asked(own)
    if any(one.name == _MINIMUM for one in alterations):
        # The eligible leader replicas of the whole cluster depend on it.
        raise RefusedError(
            ErrorCode.INVALID_CONFIG,
            f"Broker-level {_MINIMUM} cannot be altered while ELR is enabled.",
        )
    changed = dict(alter_broker(layers, alterations).broker)
    if not validate_only and changed != own:
        await _write(service, path, changed)


async def _alter_all(
    service: ControllerService, path: str, layers: Layers, *, validate_only: bool
) -> None:
    if validate_only:
        return
    settings = {name: service.core_settings(name, layers=layers) for name in service.topic_configs}
    service.next_layers = layers
    try:
        async with _in_order(service, settings):
            await _write(service, path, dict(layers.cluster))
            service.cluster_configs = dict(layers.cluster)
    finally:
        service.next_layers = None


async def _write(
    service: ControllerService, path: str, configs: dict[str, str], *checks: Check
) -> None:
    known = await service.host.store.get(path)
    data = encode_config(configs)
    operation: Operation = Create(path, data) if known is None else Set(path, data)
    await service.writer.write(*checks, operation, Set(paths.CONFIG_CHANGES, CHANGED))


@asynccontextmanager
async def _in_order(service: ControllerService, topics: dict[str, Settings]) -> AsyncIterator[None]:
    """Let the caller write the settings of topics when the core demands it."""
    may_write = asyncio.Event()
    service.run(service.core.alter_settings(topics, may_write.set))
    try:
        if not await service.conditions.until(may_write.is_set, AGREE_S) or service.is_over:
            raise RefusedError(ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")
        yield
    except BaseException:
        service.core.settings_abandoned()
        raise
    service.run(service.core.settings_stored())
