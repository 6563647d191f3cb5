"""Finds the answer to a question of the page: what is asked, about which partition and broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.cluster.errors import ClusterError
from holdfast.model.trace import TraceEvent
from holdfast.web.console.answers.forecast import what_if_dies
from holdfast.web.console.answers.why import why_lost, why_offline, why_out
from holdfast.web.console.reading.observation import PartitionFacts
from holdfast.web.console.reading.trace_ring import MINUTES, MOST_EVENTS
from holdfast.web.console.watcher import Watcher


def ask(watcher: Watcher, asked: Mapping[str, str]) -> dict[str, Any]:
    """`asked` has `why` (offline, out, lost or dies) and its subject. ClusterError if wrong."""
    seen = watcher.seen
    match asked.get("why"):
        case "offline":
            partition = partition_of(watcher, asked)
            return why_offline(seen, partition, _events(watcher, partition)).to_dict()
        case "out":
            partition, broker = partition_of(watcher, asked), _number(asked, "broker")
            return why_out(seen, partition, broker, _events(watcher, partition)).to_dict()
        case "lost":
            partition = partition_of(watcher, asked)
            if watcher.ring is None:
                raise ClusterError("there is no trace: only a cluster of 'holdfast up' has one")
            since = f"what the console remembers: {MINUTES} minutes, {MOST_EVENTS:,} events at most"
            events = _events(watcher, partition)
            return why_lost(partition, _number(asked, "offset"), events, since).to_dict()
        case "dies":
            return what_if_dies(seen, _number(asked, "broker"))
        case _:
            raise ClusterError("why is offline, out, lost or dies")


def partition_of(watcher: Watcher, asked: Mapping[str, str]) -> PartitionFacts:
    """ClusterError if there is no such partition."""
    found = watcher.seen.partitions.get(asked.get("partition", ""))
    if found is None:
        raise ClusterError("there is no such partition")
    return found


def _number(asked: Mapping[str, str], name: str) -> int:
    text = asked.get(name, "")
    if not text.isdecimal() or len(text) > 18:
        raise ClusterError(f"{name} is a number")
    return int(text)


def _events(watcher: Watcher, partition: PartitionFacts) -> list[TraceEvent]:
    if watcher.ring is None:
        return []
    with watcher.replay_lock():
        return watcher.ring.all_events(partition.name)
