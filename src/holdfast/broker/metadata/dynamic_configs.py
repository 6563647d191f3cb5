"""The settings in effect: those of the file, overridden by those in the coordination store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.store_nodes import DamagedNodeError, decode_config
from holdfast.broker.settings import BrokerSettings, Layers, TopicConfigs, TopicSettings
from holdfast.coordination import Store, paths
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
        """Read these topics' settings now: they are new, and the watch may be slower."""
        wanted = [paths.topic_config(name) for name in names]
        async with self._reading:
            found = await store.get_many(wanted)
            for name, path, node in zip(names, wanted, found, strict=True):
                self._topic_configs.pop(name, None)
                self.topics.pop(name, None)
                if node is not None:
                    self.topics[name] = self._decode(path, node.data)

    async def _reload(self, store: Store) -> list[str] | None:
        names = await store.children(paths.TOPIC_CONFIGS)
        mine, common = paths.broker_config(self._broker), paths.broker_config("<default>")
        wanted = [mine, common, *map(paths.topic_config, names)]
        found = await store.get_many(wanted)
        texts = [
            self._decode(path, node.data) if node is not None else {}
            for path, node in zip(wanted, found, strict=True)
        ]
        layers = replace(self.layers, broker=texts[0], cluster=texts[1])
        before, self.topics = self.topics, dict(zip(names, texts[2:], strict=True))
        self._topic_configs.clear()
        if layers != self.layers:
            self.layers, self._common = layers, None
            self.settings = BrokerSettings.of(layers)
            return None
        changed = dict.fromkeys((*before, *self.topics))
        return [name for name in changed if before.get(name) != self.topics.get(name)]

    def _decode(self, path: str, data: bytes) -> dict[str, str]:
        try:
            return decode_config(path, data)
        except DamagedNodeError as error:
            self._log.error("settings ignored", error=str(error))
            return {}
