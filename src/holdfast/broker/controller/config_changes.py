"""Changes of settings: checked, written to the store, and only then visible to brokers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from holdfast.coordination import Create, Operation, Set, paths
from holdfast.core import Settings
from holdfast.core.controller.leader_election import drop_needless_eligible
from holdfast.model import ErrorCode, TopicPartition

if TYPE_CHECKING:
    from holdfast.broker.controller.service import ControllerService

TOPIC: Final = 2
BROKER: Final = 4
ALL_BROKERS: Final = "<default>"
AGREE_S: Final = 10.0
_MINIMUM: Final = "min.insync.replicas"

Asked = Callable[[dict[str, str]], Sequence[Alteration]]
"""Returns the new settings, given the current ones."""


async def alter_topic_configs(
    service: ControllerService, name: str, asked: Asked, *, validate_only: bool
) -> None:
    """Change a topic's settings; RefusedError."""
    if name not in service.topics:
        raise RefusedError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )
    own = service.topic_configs.get(name, {})
    configs = TopicConfigs(own, service.host.configs.layers)
    changed = alter_topic(configs, asked(own))
    if validate_only or changed == own:
        return
    settings = {name: service.core_settings(name, changed)}
    await _lower_first(service, settings)
    await _write(service, paths.topic_config(name), changed)
    if name in service.topics:
        service.topic_configs[name] = changed
        _apply(service, settings)


async def alter_broker_configs(
    service: ControllerService, name: str, asked: Asked, *, validate_only: bool
) -> None:
    """Change the settings of one broker, or of all if the name is empty."""
    if name and not name.isdecimal():
        raise RefusedError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        )
    layers = service.host.configs.layers
    path = paths.broker_config(int(name) if name else ALL_BROKERS)
    node = await service.host.store.get(path)
    own = decode_config(path, node.data) if node is not None else {}
    if not name:
        after = alter_cluster(replace(layers, cluster=own), asked(own))
        await _alter_all(service, path, after, validate_only=validate_only)
        return
    alterations = asked(own)
    if any(one.name == _MINIMUM for one in alterations):
        # The eligible leader replicas of the whole cluster depend on it.
        raise RefusedError(
            ErrorCode.INVALID_CONFIG,
            f"Broker-level {_MINIMUM} cannot be altered while ELR is enabled.",
        )
    changed = dict(alter_broker(replace(layers, broker=own), alterations).broker)
    if not validate_only and changed != own:
        await _write(service, path, changed)


async def _alter_all(
    service: ControllerService, path: str, layers: Layers, *, validate_only: bool
) -> None:
    if validate_only:
        return
    settings = {name: service.core_settings(name, layers=layers) for name in service.topics}
    await _lower_first(service, settings)
    await _write(service, path, dict(layers.cluster))
    _apply(service, settings)


async def _write(service: ControllerService, path: str, configs: dict[str, str]) -> None:
    known = await service.host.store.get(path)
    data = encode_config(configs)
    operation: Operation = Create(path, data) if known is None else Set(path, data)
    await service.writer.write(operation, Set(paths.CONFIG_CHANGES, CHANGED))


def _partitions(service: ControllerService, topics: dict[str, Settings]) -> list[TopicPartition]:
    return [one for one in service.core.partitions if one.topic in topics]


async def _lower_first(service: ControllerService, settings: dict[str, Settings]) -> None:
    """Clear the eligible leader replicas before a leader may commit with fewer replicas.

    The core uses a lower minimum from now on, everything else only when the store has it.
    """
    lowered = {
        partition: replace(now, min_insync_replicas=settings[partition.topic].min_insync_replicas)
        for partition in _partitions(service, settings)
        if settings[partition.topic].min_insync_replicas
        < (now := service.core.settings[partition]).min_insync_replicas
    }
    for partition, interim in lowered.items():
        service.run(service.core.settings_changed(partition, interim))

    def is_agreed() -> bool:
        return all(_is_agreed(service, one, interim) for one, interim in lowered.items())

    if not await service.conditions.until(is_agreed, AGREE_S) or service.is_over:
        raise RefusedError(ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")


def _is_agreed(service: ControllerService, partition: TopicPartition, interim: Settings) -> bool:
    state = service.core.partitions.get(partition)
    if state is None:
        return True
    is_pending = service.core.is_pending(partition)
    return not is_pending and drop_needless_eligible(state, interim) == state


def _apply(service: ControllerService, settings: dict[str, Settings]) -> None:
    for partition in _partitions(service, settings):
        service.run(service.core.settings_changed(partition, settings[partition.topic]))
