"""Loads the cluster state that a new controller finds in the store.

The controller epoch is raised first. From then on no other controller can write these nodes, so
separate reads give one consistent state.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.store_nodes import (
    BrokerNode,
    DamagedNodeError,
    TopicNode,
    UncleanElection,
    decode_broker,
    decode_config,
    decode_state,
    decode_topic,
    decode_unclean,
)
from holdfast.coordination import Node, Store, paths
from holdfast.model import BrokerEpoch, BrokerId, PartitionState, TopicPartition


@dataclass(slots=True)
class Loaded:
    """The cluster state in the store."""

    topics: dict[str, TopicNode] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    cluster: dict[str, str] = field(default_factory=dict)
    """The settings for all brokers."""
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    versions: dict[TopicPartition, int] = field(default_factory=dict)
    unclean: dict[TopicPartition, tuple[UncleanElection, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class LiveBrokers:
    """The brokers with a session."""

    nodes: dict[BrokerId, BrokerNode] = field(default_factory=dict)
    epochs: dict[BrokerId, BrokerEpoch] = field(default_factory=dict)


async def load_brokers(store: Store, log: LogLines) -> LiveBrokers:
    """The live brokers. A registration that cannot be read is skipped and logged."""
    names = await store.children(paths.BROKER_IDS)
    wanted = [f"{paths.BROKER_IDS}/{name}" for name in names]
    live = LiveBrokers()
    for path, node in zip(wanted, await store.get_many(wanted), strict=True):
        if node is None:
            continue
        try:
            known = decode_broker(path, node.data)
        except DamagedNodeError as error:
            log.error("broker ignored", error=str(error))
            continue
        live.nodes[known.broker] = known
        live.epochs[known.broker] = BrokerEpoch(node.created)
    return live


def _cluster_configs(node: Node | None, log: LogLines) -> dict[str, str]:
    path = paths.broker_config(paths.ALL_BROKERS)
    try:
        return decode_config(path, node.data) if node is not None else {}
    except DamagedNodeError as error:
        log.error("settings ignored", error=str(error))
        return {}


async def load(store: Store, log: LogLines) -> Loaded:
    """All topics and partitions. A damaged node is skipped and logged, never guessed."""
    loaded = Loaded()
    names = await store.children(paths.TOPICS)
    nodes = await store.get_many([paths.topic(name) for name in names])
    common = paths.broker_config(paths.ALL_BROKERS)
    *configs, cluster = await store.get_many([*map(paths.topic_config, names), common])
    loaded.cluster = _cluster_configs(cluster, log)
    for name, node, config in zip(names, nodes, configs, strict=True):
        if node is None:
            continue
        try:
            loaded.topics[name] = decode_topic(paths.topic(name), node.data)
            own = config.data if config is not None else b""
            loaded.configs[name] = decode_config(paths.topic_config(name), own)
        except DamagedNodeError as error:
            log.error("topic ignored", error=str(error))
            loaded.topics.pop(name, None)
    partitions = [
        TopicPartition(name, number)
        for name, topic in loaded.topics.items()
        for number in topic.replicas
    ]
    wanted = [paths.partition_state(*one) for one in partitions]
    for partition, path, node in zip(partitions, wanted, await store.get_many(wanted), strict=True):
        try:
            if node is None:
                raise DamagedNodeError(path, "it is missing")
            loaded.states[partition] = decode_state(path, node.data)
            loaded.unclean[partition] = decode_unclean(path, node.data)
            loaded.versions[partition] = node.version
        except DamagedNodeError as error:
            log.error("partition ignored", error=str(error))
    return loaded
