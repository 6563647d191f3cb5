"""The settings in effect: those of the file, overridden by those in the coordination store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.store_nodes import DamagedNodeError, decode_config
from holdfast.broker.settings import BrokerSettings, Layers, TopicConfigs, TopicSettings
from holdfast.coordination import Node, Store, paths
from holdfast.model import BrokerId


class Configs:
    """The settings of this broker and of topics; `reload` reads the store's changes."""

    def __init__(self, broker: BrokerId, layers: Layers, log: LogLines) -> None:
        self._broker = broker
        self._log = log
        self._reading = asyncio.Lock()
        self.layers = layers
        self.settings = BrokerSettings.of(layers)
        self.topics: dict[str, Mapping[str, str]] = {}
        """The settings that each topic overrides."""
        self._topic_configs: dict[str, TopicSettings] = {}
        self._common: TopicSettings | None = None
        """For all topics without overrides."""
        self._has_changed = False
        """`layers` has changed since the last `reload`."""

    def of_topic(self, name: str) -> TopicSettings:
        """The effective settings of a topic."""
        own = self.topics.get(name)
        if own is None:
            if self._common is None:
                self._common = self._choose({})
            return self._common
        config = self._topic_configs.get(name)
        if config is None:
            config = self._topic_configs[name] = self._choose(own)
        return config

    def _choose(self, own: Mapping[str, str]) -> TopicSettings:
        return TopicConfigs(own, self.layers).settings(self.settings)

    async def reload(self, store: Store) -> list[str] | None:
        """Read the store; returns the topics whose settings changed, None for all."""
        # One read after the other, so that the last one wins.
        async with self._reading:
            return await self._reload(store)

    async def read_topics(self, store: Store, names: Sequence[str]) -> None:
        """Read these topics' settings now, and those of brokers: the watch may be slower."""
        wanted = [*self._of_brokers(), *map(paths.topic_config, names)]
        async with self._reading:
            found = await store.get_many(wanted)
            self._use_layers(found[:2])
            for name, path, node in zip(names, wanted[2:], found[2:], strict=True):
                self._topic_configs.pop(name, None)
                self.topics.pop(name, None)
                if node is not None:
                    self.topics[name] = self._decode(path, node.data)

    def _of_brokers(self) -> list[str]:
        return [paths.broker_config(self._broker), paths.broker_config(paths.ALL_BROKERS)]

    def _use_layers(self, nodes: Sequence[Node | None]) -> None:
        mine, common = map(self._decode_any, self._of_brokers(), nodes)
        layers = replace(self.layers, broker=mine, cluster=common)
        if layers != self.layers:
            self.layers, self._common = layers, None
            self.settings = BrokerSettings.of(layers)
            self._topic_configs.clear()
            self._has_changed = True

    async def _reload(self, store: Store) -> list[str] | None:
        names = await store.children(paths.TOPIC_CONFIGS)
        wanted = [*self._of_brokers(), *map(paths.topic_config, names)]
        found = await store.get_many(wanted)
        self._use_layers(found[:2])
        own = map(self._decode_any, wanted[2:], found[2:])
        before, self.topics = self.topics, dict(zip(names, own, strict=True))
        self._topic_configs.clear()
        if self._has_changed:
            self._has_changed = False
            return None
        changed = dict.fromkeys((*before, *self.topics))
        return [name for name in changed if before.get(name) != self.topics.get(name)]

    def _decode_any(self, path: str, node: Node | None) -> dict[str, str]:
        return self._decode(path, node.data) if node is not None else {}

    def _decode(self, path: str, data: bytes) -> dict[str, str]:
        try:
            return decode_config(path, data)
        except DamagedNodeError as error:
            self._log.error("settings ignored", error=str(error))
            return {}
