"""A change of topic settings, and what the store must confirm before its next step.

A replica outside the ISR is an eligible leader only because the high watermark does not move below
min.insync.replicas (KIP-966). So the controller lowers the minimum in this order:

1. It decides by the lower minimum itself, which clears the eligible leader replicas.
2. When the store has confirmed that for every partition, it lets the driver write the settings.
3. When the store has the settings, it decides by all of them. A higher minimum begins here, with a
   new leader epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from holdfast.core.controller.effects import Commands, StoreSettings
from holdfast.core.rules import Settings
from holdfast.model import TopicPartition


class SettingsChange:
    """The one change that is in progress."""

    __slots__ = ("is_sent", "topics", "uncleared", "waiter")

    topics: dict[str, Settings]
    uncleared: dict[TopicPartition, None]
    """Of these the store may still have eligible leaders by the higher minimum."""
    is_sent: bool
    """Whether the driver may write the settings."""

    def __init__(self, topics: Mapping[str, Settings], waiter: object) -> None:
        self.topics = dict(topics)
        self.waiter = waiter
        self.uncleared = {}
        self.is_sent = False

    def add(self, topic: str, settings: Settings) -> None:
        """The change concerns a topic that is about to be created."""
        self.topics[topic] = settings

    def begin(self, decided: Mapping[TopicPartition, Settings]) -> dict[TopicPartition, Settings]:
        """The settings to decide by meanwhile, for partitions whose minimum does not rise.

        An equal minimum counts, too: after an abandoned change the controller already decides by
        the lower one, and the store may not have confirmed yet that nobody is eligible.
        """
        interim = {
            partition: self.interim(partition, settings)
            for partition, settings in decided.items()
            if partition.topic in self.topics
            and self.topics[partition.topic].min_insync_replicas <= settings.min_insync_replicas
        }
        self.uncleared = dict.fromkeys(interim)
        return interim

    def interim(self, partition: TopicPartition, settings: Settings) -> Settings:
        """The settings to decide by until the store has the new ones: with the lower minimum."""
        new = self.topics.get(partition.topic, settings)
        minimum = min(new.min_insync_replicas, settings.min_insync_replicas)
        return replace(settings, min_insync_replicas=minimum)

    def cleared(self, partitions: Iterable[TopicPartition]) -> Commands:
        """The store has no needless eligible leaders of these; the settings follow the last one."""
        for partition in partitions:
            self.uncleared.pop(partition, None)
        if self.uncleared or self.is_sent:
            return ()
        self.is_sent = True
        return (StoreSettings(self.waiter),)
